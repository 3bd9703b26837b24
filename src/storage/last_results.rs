//! What the last computations have made of their operands. A loop computes again and again with the same
//! layouts and labels, and has the same dimensions, labels and memory to plan for each result.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;

use super::buffers::Residence;
use super::data::Storage;
use super::make::buffers;
use crate::alloc::{Fill, Plan};
use crate::dtype::DType;
use crate::error::Result;
use crate::field::{Field, Joined};
use crate::layout::Layout;
use crate::managed::Managed;

/// An operand that is a storage.
pub(crate) type Source<'a> = (&'a Managed, &'a Arc<Field>);

/// Number of results that are kept.
const KEPT: usize = 4;

/// A result, and the operands that it was for.
#[derive(Debug)]
pub(crate) struct LastResult {
    operands: SmallVec<[(Layout, Arc<Field>); 2]>,
    /// `None` for operands that all have the shape and field of the only one here.
    pub(crate) joined: Option<Rc<Joined>>,
    plan: Plan,
    labels: Arc<Field>,
}

thread_local! {
    /// The newest one first.
    static LAST: RefCell<Vec<Rc<LastResult>>> = const { RefCell::new(Vec::new()) };
}

impl LastResult {
    pub(super) fn new(
        operands: &[Source<'_>],
        joined: Option<&Rc<Joined>>,
        plan: Plan,
        labels: Arc<Field>,
    ) -> Self {
        let own = |&(memory, field): &Source<'_>| (memory.layout().clone(), Arc::clone(field));
        let operands = operands.iter().map(own).collect();
        Self { operands, joined: joined.cloned(), plan, labels }
    }

    /// The last result of such operands: of the type `dtype`, or of any.
    pub(crate) fn find(operands: &[Source<'_>], dtype: Option<DType>) -> Option<Rc<Self>> {
        let is_it = |last: &&Rc<Self>| {
            dtype.is_none_or(|dtype| last.plan.dtype == dtype) && last.is_of(operands)
        };
        let find = |last: &RefCell<Vec<_>>| last.borrow().iter().find(is_it).cloned();
        LAST.try_with(find).ok().flatten()
    }

    fn is_of(&self, operands: &[Source<'_>]) -> bool {
        let mut both = self.operands.iter().zip(operands);
        self.operands.len() == operands.len()
            && both.all(|((layout, labels), (memory, field))| {
                layout == memory.layout() && labels == *field
            })
    }

    /// Keeps it for the next call. A thread that is ending keeps none.
    pub(super) fn keep(self) -> Rc<Self> {
        let kept = Rc::new(self);
        let _ = LAST.try_with(|last| {
            let mut last = last.borrow_mut();
            last.truncate(KEPT - 1);
            last.insert(0, Rc::clone(&kept));
        });
        kept
    }

    /// Allocates the same result again.
    ///
    /// # Errors
    /// As [`Storage::allocate`].
    pub(crate) fn allocate(&self, residence: Residence) -> Result<Storage> {
        let made = buffers(&self.plan, residence, Fill::Nothing)?;
        Ok(Storage::new(made, Arc::clone(&self.labels)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::unlabelled;
    use crate::storage::Spec;

    #[test]
    fn a_result_is_found_by_all_of_its_operands_and_its_type() {
        let made = |shape: &[i64], dtype| {
            Storage::allocate(shape, dtype, &Spec::default(), Fill::Zeros).unwrap()
        };
        let (a, b) = (made(&[2, 3], DType::Float64), made(&[3], DType::Float64));
        let (fields, halo) = ([unlabelled(2), unlabelled(1)], Some([(1, 1)][..].into()));
        let (a, b) = ((a.managed(), &fields[0]), (b.managed(), &fields[1]));
        let plan = |dtype| crate::alloc::plan(&[2, 3], dtype, &[0, 1], 1, &[0, 0]).unwrap();
        for dtype in [DType::Float64, DType::Bool] {
            LastResult::new(&[a, b], None, plan(dtype), Arc::clone(&fields[0])).keep();
        }
        let found =
            |operands: &[_], dtype| LastResult::find(operands, dtype).map(|one| one.plan.dtype);
        assert_eq!(found(&[a, b], None), Some(DType::Bool));
        assert_eq!(found(&[a, b], Some(DType::Float64)), Some(DType::Float64));
        assert_eq!(found(&[a, b], Some(DType::Int8)), None);
        let with_halo = Arc::new(Field { halo, ..Field::clone(&fields[1]) });
        for others in [&[b, a][..], &[a], &[a, b, b], &[a, (b.0, &with_halo)], &[a, a]] {
            assert_eq!(found(others, None), None);
        }
    }

    #[test]
    fn the_oldest_result_gives_way() {
        let one = Storage::allocate(&[2], DType::Int8, &Spec::default(), Fill::Zeros).unwrap();
        let fields: Vec<_> =
            (0..=KEPT).map(|n| Field { alignment: n, ..Field::default() }).collect();
        let fields: Vec<_> = fields.into_iter().map(Arc::new).collect();
        for field in &fields {
            let plan = crate::alloc::plan(&[2], DType::Int8, &[0], 1, &[0]).unwrap();
            LastResult::new(&[(one.managed(), field)], None, plan, Arc::clone(field)).keep();
        }
        let found = |field| LastResult::find(&[(one.managed(), field)], None).is_some();
        assert_eq!(fields.iter().map(found).collect::<Vec<_>>(), [false, true, true, true, true]);
    }
}

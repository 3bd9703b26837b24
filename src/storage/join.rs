//! Allocates the results of computations with storages. `field` decides their labels, `compute` their
//! values.

use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;

use super::buffers::Residence;
use super::data::Storage;
use super::last_results::{LastResult, Source};
use super::make::buffers;
use crate::alloc::{Fill, Plan, common_multiple, plan};
use crate::dtype::DType;
use crate::error::Result;
use crate::field::{Field, Joined, Operand, Reduced, unlabelled};
use crate::layout::Extents;
use crate::managed::Managed;

impl Storage {
    /// Allocates a result of `operands` with their joined labels, the order of the first storage that
    /// has all dimensions, and an alignment that suits all. `ranks` has an entry for each operand,
    /// `None` unless it is a storage. The result is kept as that of `sources`, if these are all of them.
    ///
    /// # Errors
    /// As [`Storage::allocate`].
    pub(crate) fn for_result(
        joined: &Rc<Joined>,
        operands: &[Operand<'_>],
        ranks: &[Option<Extents>],
        sources: Option<&[Source<'_>]>,
        dtype: DType,
        residence: Residence,
    ) -> Result<Self> {
        let labels = labels_of_result(joined, operands, ranks, dtype);
        let plan = plan_of(&joined.shape, dtype, &labels)?;
        let labels = shared(labels, joined.shape.len());
        let result = LastResult::new(sources.unwrap_or_default(), Some(joined), plan, labels);
        let made = result.allocate(residence);
        if sources.is_some() {
            result.keep();
        }
        made
    }

    /// As [`Storage::for_result`], for operands that all have this shape and field.
    ///
    /// # Errors
    /// As [`Storage::allocate`].
    pub(crate) fn for_result_like(
        model: &Managed,
        field: &Arc<Field>,
        dtype: DType,
        residence: Residence,
    ) -> Result<Self> {
        let operands = [(model, field)];
        if let Some(last) = LastResult::find(&operands, Some(dtype)) {
            return last.allocate(residence);
        }
        let labels = labels_like(model, field, dtype)?;
        let plan = plan_of(model.layout().shape(), dtype, &labels)?;
        LastResult::new(&operands, None, plan, labels).keep().allocate(residence)
    }

    /// Allocates the result of a reduction of `operand`, with the labels, order and alignment that
    /// remain.
    ///
    /// # Errors
    /// As [`Storage::allocate`].
    pub(crate) fn for_reduction(
        operand: &Managed,
        field: &Field,
        reduced: &Reduced,
        dtype: DType,
        residence: Residence,
    ) -> Result<Self> {
        let ranks = operand.layout().ranks(field.order.as_deref().unwrap_or_default());
        let shape = reduced.shape(operand.layout().shape());
        let mut labels = reduced.field(field, &ranks);
        labels.alignment = shared_alignment(&[field], dtype);
        Self::allocate_labelled(&shape, dtype, labels, residence)
    }

    /// Allocates a storage with these labels, which fit the shape, in the order that they state.
    fn allocate_labelled(
        shape: &[i64],
        dtype: DType,
        labels: Field,
        residence: Residence,
    ) -> Result<Self> {
        let made = buffers(&plan_of(shape, dtype, &labels)?, residence, Fill::Nothing)?;
        Ok(Self::new(made, shared(labels, shape.len())))
    }
}

/// The labels of a result of operands, with its order and alignment.
fn labels_of_result(
    joined: &Joined,
    operands: &[Operand<'_>],
    ranks: &[Option<Extents>],
    dtype: DType,
) -> Field {
    let fields: SmallVec<[&Field; 4]> = operands.iter().filter_map(|one| one.field).collect();
    let in_c_order = || (0_i64..).take(joined.shape.len()).collect();
    let order = Some(joined.ranks(ranks).unwrap_or_else(in_c_order));
    let alignment = shared_alignment(&fields, dtype);
    Field { order, alignment, ..joined.field(operands) }
}

/// The plan of memory with these labels, in the order that they state.
fn plan_of(shape: &[i64], dtype: DType, labels: &Field) -> Result<Plan> {
    let order = labels.order.as_deref().unwrap_or_default();
    plan(shape, dtype, order, labels.alignment, &labels.aligned_index(shape.len()))
}

/// The labels in the form in which storages share them.
fn shared(labels: Field, ndim: usize) -> Arc<Field> {
    if labels.is_unlabelled() { unlabelled(ndim) } else { Arc::new(labels) }
}

/// The labels of a result of operands that all have this shape and field: the field itself, if it
/// states the order and a sufficient alignment.
fn labels_like(model: &Managed, field: &Arc<Field>, dtype: DType) -> Result<Arc<Field>> {
    let layout = model.layout();
    let ranks = layout.ranks(field.order.as_deref().unwrap_or_default());
    let same_alignment = shared_alignment(&[field], dtype) == field.alignment.max(1);
    if same_alignment && layout.ndim() > 0 && field.order.as_ref() == Some(&ranks) {
        return Ok(Arc::clone(field));
    }
    let operands = [Operand { shape: layout.shape(), field: Some(field) }];
    let joined = Joined::new(&operands)?;
    Ok(shared(labels_of_result(&joined, &operands, &[Some(ranks)], dtype), layout.ndim()))
}

/// The least common multiple of the alignments that the storages request, and of the item size if
/// items do not meet it.
fn shared_alignment(fields: &[&Field], dtype: DType) -> usize {
    let both = |a: usize, b: usize| common_multiple(a, b).unwrap_or(a);
    let shared = fields.iter().map(|field| field.alignment.max(1)).fold(1, both);
    let item = dtype.itemsize();
    if item.is_multiple_of(shared) { shared } else { both(shared, item) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Dim;
    use crate::storage::{Order, Spec};
    use smallvec::smallvec;

    #[test]
    fn the_alignment_is_the_least_common_multiple() {
        let field = |alignment| Field { alignment, ..Field::default() };
        let of = |one, two, dtype| shared_alignment(&[&field(one), &field(two)], dtype);
        assert_eq!(of(0, 1, DType::Float64), 1);
        assert_eq!(of(16, 24, DType::Float64), 48);
        assert_eq!(of(4, 1, DType::Float64), 4, "every item meets it");
        assert_eq!(of(12, 1, DType::Float64), 24, "a multiple of the item");
    }

    /// Fields that state an order or not, and more than the result keeps.
    fn fields() -> [Field; 7] {
        let named = |[a, b]: [Dim; 2]| Field { dims: Some(smallvec![a, b]), ..Field::default() };
        let halo = || Field { halo: Some(smallvec![(1, 0), (0, 2)]), ..named([Dim::I, Dim::K]) };
        [
            Field::default(),
            Field::clone(&unlabelled(2)),
            named([Dim::K, Dim::I]),
            halo(),
            Field { origin: Some(smallvec![2, 1]), alignment: 64, ..halo() },
            Field { aligned_index: Some(smallvec![0, 3]), alignment: 2, ..Field::default() },
            Field { order: Some(smallvec![1, 0]), ..halo() },
        ]
    }

    #[test]
    fn a_result_of_operands_that_are_alike_has_the_labels_of_all_joined() {
        let spec = Spec { layout: Order::Ranks(smallvec![1, 0]), ..Spec::default() };
        for spec in [Spec::default(), spec] {
            let made = Storage::allocate(&[5, 6], DType::Float64, &spec, Fill::Zeros).unwrap();
            let (layout, shape) = (made.managed().layout(), [5, 6]);
            for (field, dtype) in fields().iter().flat_map(|one| {
                [DType::Float64, DType::Bool, DType::Complex128].map(|dtype| (one, dtype))
            }) {
                let ranks = Some(layout.ranks(field.order.as_deref().unwrap_or_default()));
                let operands = [Operand { shape: &shape, field: Some(field) }; 2];
                let joined = Joined::new(&operands).unwrap();
                let all = labels_of_result(&joined, &operands, &[ranks.clone(), ranks], dtype);
                let found = labels_like(made.managed(), &Arc::new(field.clone()), dtype).unwrap();
                let found = Field { alignment: found.alignment.max(1), ..Field::clone(&found) };
                assert_eq!(found, all, "{field:?} {dtype:?}");
            }
        }
    }
}

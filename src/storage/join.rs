//! Allocates the results of computations with storages. `field` decides their labels, `compute` their
//! values.

use std::cell::RefCell;
use std::sync::Arc;

use smallvec::SmallVec;

use super::buffers::Residence;
use super::data::Storage;
use super::make::buffers;
use crate::alloc::{Fill, Plan, common_multiple, plan};
use crate::dtype::DType;
use crate::error::Result;
use crate::field::{Field, Joined, Operand, Reduced, unlabelled};
use crate::layout::{Extents, Layout};
use crate::managed::Managed;
use crate::short_ways::short_ways;

impl Storage {
    /// Allocates a result of `operands` with their joined labels, the order of the first storage that
    /// has all dimensions, and an alignment that suits all. `ranks` has an entry for each operand,
    /// `None` unless it is a storage.
    ///
    /// # Errors
    /// As [`Storage::allocate`].
    pub(crate) fn for_result(
        joined: &Joined,
        operands: &[Operand<'_>],
        ranks: &[Option<Extents>],
        dtype: DType,
        residence: Residence,
    ) -> Result<Self> {
        let fields: SmallVec<[&Field; 4]> = operands.iter().filter_map(|one| one.field).collect();
        let in_c_order = || (0_i64..).take(joined.shape.len()).collect();
        let order = Some(joined.ranks(ranks).unwrap_or_else(in_c_order));
        let alignment = shared_alignment(&fields, dtype);
        let labels = Field { order, alignment, ..joined.field(operands) };
        Self::allocate_labelled(&joined.shape, dtype, labels, residence)
    }

    /// As [`Storage::for_result`], for operands that all have this shape and field, which the result
    /// gets too. `None` if the items need another alignment, or the field does not tell the order.
    ///
    /// # Errors
    /// As [`Storage::allocate`].
    pub(crate) fn for_result_like(
        model: &Managed,
        field: &Arc<Field>,
        dtype: DType,
        residence: Residence,
    ) -> Result<Option<Self>> {
        if !short_ways() {
            return Ok(None);
        }
        let Some(plan) = plan_like(model, field, dtype)? else { return Ok(None) };
        let made = buffers(&plan, residence, Fill::Nothing)?;
        Ok(Some(Self::new(made, Arc::clone(field))))
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
        let order = labels.order.as_deref().unwrap_or_default();
        let index = labels.aligned_index(shape.len());
        let plan = plan(shape, dtype, order, labels.alignment, &index)?;
        let made = buffers(&plan, residence, Fill::Nothing)?;
        let plain = labels.is_unlabelled();
        let field = if plain { unlabelled(shape.len()) } else { Arc::new(labels) };
        Ok(Self::new(made, field))
    }
}

thread_local! {
    /// Layout and field of the last model, and the plan of its result. In a loop the next call often
    /// repeats them.
    static LAST: RefCell<Option<(Layout, Arc<Field>, Plan)>> = const { RefCell::new(None) };
}

/// The plan of a result with the shape, field and order of `model`; `None` if they do not decide.
fn plan_like(model: &Managed, field: &Arc<Field>, dtype: DType) -> Result<Option<Plan>> {
    let is_same = |(layout, labels, plan): &&(Layout, Arc<Field>, Plan)| {
        plan.dtype == dtype && layout == model.layout() && labels == field
    };
    let known =
        |last: &RefCell<Option<_>>| last.borrow().as_ref().filter(is_same).map(|one| one.2.clone());
    if let Ok(Some(plan)) = LAST.try_with(known) {
        return Ok(Some(plan));
    }
    let (shape, alignment) = (model.layout().shape(), field.alignment.max(1));
    let order = field.order.as_ref().filter(|order| !order.is_empty());
    let Some(order) = order else { return Ok(None) };
    let same_alignment = shared_alignment(&[field], dtype) == alignment;
    if !same_alignment || model.layout().ranks(order) != *order {
        return Ok(None);
    }
    let index = field.aligned_index(shape.len());
    let plan = plan(shape, dtype, order, alignment, &index)?;
    let new = Some((model.layout().clone(), Arc::clone(field), plan.clone()));
    let _ = LAST.try_with(|last| last.replace(new)); // a thread that is ending keeps none
    Ok(Some(plan))
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

    #[test]
    fn the_alignment_is_the_least_common_multiple() {
        let field = |alignment| Field { alignment, ..Field::default() };
        let of = |one, two, dtype| shared_alignment(&[&field(one), &field(two)], dtype);
        assert_eq!(of(0, 1, DType::Float64), 1);
        assert_eq!(of(16, 24, DType::Float64), 48);
        assert_eq!(of(4, 1, DType::Float64), 4, "every item meets it");
        assert_eq!(of(12, 1, DType::Float64), 24, "a multiple of the item");
    }
}

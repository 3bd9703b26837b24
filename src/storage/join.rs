//! Memory for what is computed from several storages.

use std::sync::Arc;

use smallvec::SmallVec;

use super::buffers::{Buffers, Residence};
use super::data::Storage;
use super::spec::{Order, Spec};
use crate::alloc::{Fill, allocate, common_multiple, plan};
use crate::dtype::DType;
use crate::error::Result;
use crate::field::{Field, Joined, Operand};
use crate::layout::Extents;
use crate::managed::Managed;

impl Storage {
    /// Allocates host memory for a result of `operands`, labelled and laid out by what they have in
    /// common. `ranks` are those of the operands that are storages.
    ///
    /// # Errors
    /// As [`Storage::allocate`].
    pub(crate) fn for_result(
        joined: &Joined,
        operands: &[Operand<'_>],
        ranks: &[Option<Extents>],
        dtype: DType,
    ) -> Result<Self> {
        let fields: SmallVec<[&Field; 4]> = operands.iter().filter_map(|one| one.field).collect();
        let identity = |ranks: &Extents| ranks.iter().copied().eq((0..).take(ranks.len()));
        if fields.iter().all(|field| says_nothing(field)) && ranks.iter().flatten().all(identity) {
            return Self::allocate(&joined.shape, dtype, &Spec::default(), Fill::Nothing);
        }
        let alignment = shared_alignment(&fields, dtype);
        let mut spec = Spec::like(joined.field(operands), Residence::Host);
        spec.alignment = Some(alignment);
        if let Some(ranks) = joined.ranks(ranks) {
            spec.layout = Order::Ranks(ranks);
        }
        Self::allocate(&joined.shape, dtype, &spec, Fill::Nothing)
    }

    /// As [`Storage::for_result`], for operands that all have this shape and field: the result has
    /// them too. `None` if [`Storage::for_result`] is to decide: for items of another size, and where
    /// the field does not say the order.
    ///
    /// # Errors
    /// As [`Storage::allocate`].
    pub(crate) fn for_result_like(
        model: &Managed,
        field: &Arc<Field>,
        dtype: DType,
    ) -> Result<Option<Self>> {
        let (shape, alignment) = (model.layout().shape(), field.alignment.max(1));
        let order = field.order.as_ref().filter(|order| !order.is_empty());
        let Some(order) = order.filter(|_| field.aligned_index.is_none()) else {
            return Ok(None);
        };
        let same_size = dtype.itemsize() == model.dtype().itemsize();
        if (!same_size && alignment > 1) || model.layout().ranks(order) != *order {
            return Ok(None);
        }
        let index = field.aligned_index(shape.len());
        let plan = plan(shape, dtype, order, alignment, &index)?;
        let made = allocate(&plan, Fill::Nothing)?;
        Ok(Some(Self::new(Buffers::Host(made), Arc::clone(field))))
    }
}

/// True for the field of a storage without names and halo in C order.
fn says_nothing(field: &Field) -> bool {
    let Field { dims, halo, aligned_index, alignment, origin, order } = field;
    let no_halo = halo.as_ref().is_some_and(|halo| halo.iter().all(|width| *width == (0, 0)));
    let others = dims.is_none() && origin.is_none() && aligned_index.is_none() && *alignment <= 1;
    no_halo && others && order.is_some()
}

/// The least common multiple of what the storages request, which items of the result can meet.
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

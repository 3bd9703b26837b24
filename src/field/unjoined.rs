//! Operands that are placed without joining their names: those whose dimensions the caller has matched,
//! and masks.

use super::joining::{Joined, Operand, by_position};
use super::matching::Axes;
use crate::error::Result;

impl Joined {
    /// Joins operands whose dimensions the caller has matched, as NumPy broadcasts. The names are those
    /// of the first operand that has as many dimensions as the result.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) for shapes that cannot be broadcast together.
    pub(crate) fn by_position(operands: &[Operand<'_>]) -> Result<Self> {
        let joined = by_position(operands)?;
        let mut named = operands.iter().filter(|one| one.shape.len() == joined.shape.len());
        let dims = named.find_map(|one| one.field?.dims.clone());
        Ok(Self { dims, ..joined })
    }

    /// The axes of an operand, such as a mask, that has no other dimensions, in any order; `None` if it
    /// is to be joined.
    pub(crate) fn axes_of(&self, operand: Operand<'_>) -> Option<Axes> {
        let (own, dims) = (operand.names()?, self.dims.as_ref()?);
        let axes: Axes = dims.iter().map(|dim| own.iter().position(|one| one == dim)).collect();
        let fits = |(axis, extent): (&Option<usize>, &i64)| {
            axis.is_none_or(|axis| operand.shape.get(axis) == Some(extent))
        };
        let all = own.iter().all(|dim| dims.contains(dim));
        (all && axes.iter().zip(&self.shape).all(fits)).then_some(axes)
    }
}

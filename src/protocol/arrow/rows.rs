//! Reads a layout as a list of tensors. Pure.

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::layout::Layout;

/// A layout without gaps, as a list along the axis that is outermost in memory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rows {
    /// The axis of the list.
    pub(super) axis: usize,
    /// The other axes, outermost in memory first.
    pub(super) inner: SmallVec<[usize; 4]>,
}

impl Rows {
    /// Checks that elements have no gaps. Axes without a meaningful stride follow `order`.
    ///
    /// # Errors
    /// [`Error::Buffer`] for a layout without dimensions, or with gaps.
    pub(super) fn new(layout: &Layout, order: &[i64]) -> Result<Self> {
        let ranks = layout.ranks(order);
        let mut axes: SmallVec<[usize; 4]> = (0..layout.ndim()).collect();
        axes.sort_by_key(|&axis| ranks.get(axis).copied());
        let Some((&axis, inner)) = axes.split_first() else {
            return Err(Error::Buffer(
                "Arrow export: expected at least 1 dimension, got none; add one first (in Python \
                 storage[None])"
                    .into(),
            ));
        };
        let Some((axis, expected)) = layout.first_gap(axes.iter().rev().copied()) else {
            return Ok(Self { axis, inner: inner.into() });
        };
        Err(Error::Buffer(format!(
            "Arrow export: expected elements that follow each other in memory, with a stride of \
             {expected} elements on axis {axis}, got shape {:?} with strides of {:?} elements; \
             copy them without padding first: copy_without_padding(), in Python \
             to_arrow(copy=True)",
            layout.shape(),
            layout.strides()
        )))
    }

    /// Position in memory of each inner axis, in the order of the field.
    pub(super) fn permutation(&self) -> SmallVec<[usize; 4]> {
        let mut places: SmallVec<[usize; 4]> = (0..self.inner.len()).collect();
        places.sort_by_key(|&place| self.inner.get(place).copied());
        places
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    fn rows(shape: &[i64], strides: &[i64]) -> Result<Rows> {
        Rows::new(&Layout::new(shape.into(), strides.into(), 8).unwrap(), &[])
    }

    #[test]
    fn the_list_runs_along_the_outermost_axis_in_memory() {
        assert_eq!(rows(&[2, 3, 4], &[12, 4, 1]), Ok(Rows { axis: 0, inner: smallvec![1, 2] }));
        assert_eq!(rows(&[2, 3, 4], &[1, 2, 6]), Ok(Rows { axis: 2, inner: smallvec![1, 0] }));
        assert_eq!(rows(&[2, 3, 4], &[1, 8, 2]), Ok(Rows { axis: 1, inner: smallvec![2, 0] }));
    }

    #[test]
    fn the_permutation_maps_axes_of_the_field_to_memory() {
        let four = rows(&[2, 3, 4, 5], &[3, 1, 30, 6]).unwrap();
        assert_eq!((four.axis, four.inner.as_slice()), (2, &[3, 0, 1][..]));
        assert_eq!(four.permutation().as_slice(), [1, 2, 0]);
    }

    #[test]
    fn gaps_steps_and_reversals_are_refused_with_the_wrong_stride() {
        for strides in [[8, 1], [6, 2], [-3, 1], [0, 1]] {
            let error = rows(&[2, 3], &strides).unwrap_err().to_string();
            assert!(error.contains("stride of") && error.contains("copy=True"), "{error}");
        }
        assert!(rows(&[], &[]).unwrap_err().to_string().contains("storage[None]"));
    }

    #[test]
    fn meaningless_strides_do_not_matter() {
        assert!(rows(&[1, 3], &[77, 1]).is_ok());
        assert!(rows(&[3, 1], &[1, 77]).is_ok());
        assert!(rows(&[0, 3], &[77, 5]).is_ok());
    }
}

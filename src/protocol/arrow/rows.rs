//! How a field is a list of tensors: pure, of its layout alone.

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::layout::Layout;

/// A layout without gaps, read as a list along the axis that is outermost in memory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rows {
    /// The axis of the list.
    pub(super) axis: usize,
    /// The other axes, outermost in memory first.
    pub(super) inner: SmallVec<[usize; 4]>,
}

impl Rows {
    /// # Errors
    /// [`Error::Buffer`] for a number, and for elements that do not follow each other in memory.
    pub(super) fn of(layout: &Layout, order: &[i64]) -> Result<Self> {
        let ranks = layout.ranks(order);
        let mut axes: SmallVec<[usize; 4]> = (0..layout.ndim()).collect();
        axes.sort_by_key(|&axis| ranks.get(axis).copied());
        let Some((&axis, inner)) = axes.split_first() else {
            return Err(Error::Buffer(
                "Arrow export: expected at least 1 dimension, got none, which Arrow has no array for; take \
                 storage[None], which has one"
                    .into(),
            ));
        };
        check_without_gaps(layout, &axes)?;
        Ok(Self { axis, inner: inner.into() })
    }

    /// Where in memory each of the other axes is, in the order of the field.
    pub(super) fn permutation(&self) -> SmallVec<[usize; 4]> {
        let mut places: SmallVec<[usize; 4]> = (0..self.inner.len()).collect();
        places.sort_by_key(|&place| self.inner.get(place).copied());
        places
    }
}

/// `axes`: outermost in memory first.
fn check_without_gaps(layout: &Layout, axes: &[usize]) -> Result<()> {
    if layout.size() == 0 {
        return Ok(());
    }
    let mut expected: i64 = 1;
    for &axis in axes.iter().rev() {
        let extent = layout.shape().get(axis).copied().unwrap_or(1);
        let stride = layout.strides().get(axis).copied().unwrap_or(1);
        if extent != 1 && stride != expected {
            return Err(gap(layout, axis, expected));
        }
        expected = expected.saturating_mul(extent);
    }
    Ok(())
}

fn gap(layout: &Layout, axis: usize, expected: i64) -> Error {
    Error::Buffer(format!(
        "Arrow export: expected elements that follow each other in memory, with a stride of {expected} elements on \
         axis {axis}, got shape {:?} with strides of {:?} elements; copy them into memory without padding first: \
         to_arrow(copy=True), in Rust copy_without_padding()",
        layout.shape(),
        layout.strides()
    ))
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    fn rows(shape: &[i64], strides: &[i64]) -> Result<Rows> {
        Rows::of(&Layout::new(shape.into(), strides.into(), 8).unwrap(), &[])
    }

    #[test]
    fn the_list_runs_along_the_axis_that_is_outermost_in_memory() {
        assert_eq!(rows(&[2, 3, 4], &[12, 4, 1]), Ok(Rows { axis: 0, inner: smallvec![1, 2] }));
        assert_eq!(rows(&[2, 3, 4], &[1, 2, 6]), Ok(Rows { axis: 2, inner: smallvec![1, 0] }));
        assert_eq!(rows(&[2, 3, 4], &[1, 8, 2]), Ok(Rows { axis: 1, inner: smallvec![2, 0] }));
    }

    #[test]
    fn the_permutation_leads_from_the_order_of_the_field_into_memory() {
        let four = rows(&[2, 3, 4, 5], &[3, 1, 30, 6]).unwrap();
        assert_eq!((four.axis, four.inner.as_slice()), (2, &[3, 0, 1][..]));
        assert_eq!(four.permutation().as_slice(), [1, 2, 0]);
    }

    #[test]
    fn gaps_steps_and_reversals_are_refused_with_the_stride_that_is_wrong() {
        for strides in [[8, 1], [6, 2], [-3, 1], [0, 1]] {
            let error = rows(&[2, 3], &strides).unwrap_err().to_string();
            assert!(error.contains("stride of") && error.contains("copy=True"), "{error}");
        }
        assert!(rows(&[], &[]).unwrap_err().to_string().contains("storage[None]"));
    }

    #[test]
    fn strides_that_no_element_needs_do_not_count() {
        assert!(rows(&[1, 3], &[77, 1]).is_ok());
        assert!(rows(&[3, 1], &[1, 77]).is_ok());
        assert!(rows(&[0, 3], &[77, 5]).is_ok());
    }
}

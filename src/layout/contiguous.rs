//! Elements without gaps, and the order of the dimensions in memory.

use smallvec::SmallVec;

use super::geometry::Layout;
use super::order::{Extents, falls_along, places, ranks_of_strides};

impl Layout {
    /// As [`Layout::is_c_contiguous`], in Fortran order.
    #[must_use]
    pub fn is_f_contiguous(&self) -> bool {
        self.first_gap(0..self.ndim()).is_none()
    }

    /// Finds the first axis whose stride leaves a gap or an overlap when the dimensions are laid
    /// out in the order `fastest_first`. Returns the axis and the stride that it should have.
    pub(crate) fn first_gap(
        &self,
        fastest_first: impl Iterator<Item = usize>,
    ) -> Option<(usize, i64)> {
        let mut expected = 1_i64;
        for axis in fastest_first {
            let extent = *self.shape().get(axis)?;
            if extent > 1 && self.size() > 0 && self.strides().get(axis) != Some(&expected) {
                return Some((axis, expected));
            }
            expected = expected.saturating_mul(extent.max(1));
        }
        None
    }

    /// True if the elements fill their span in some order of the dimensions, without gaps.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        let filled = self.span().low == 0 && self.span().len() == self.nbytes();
        self.size() == 0 || (filled && self.is_nested())
    }

    /// True if each axis steps over everything that the axes with smaller strides reach. Distinct
    /// indices of such a layout name distinct elements; interleaved axes may do so as well.
    pub(crate) fn is_nested(&self) -> bool {
        let axes = self.axes().filter(|axis| axis.0 > 1);
        let mut axes: SmallVec<[(u64, u64); 6]> =
            axes.map(|(extent, stride)| (stride.unsigned_abs(), extent.unsigned_abs())).collect();
        axes.sort_unstable();
        let mut reach = 0_u64; // of the smaller strides, in elements
        axes.into_iter().all(|(stride, extent)| {
            let nested = stride > reach;
            reach = reach.saturating_add(stride.saturating_mul(extent.saturating_sub(1)));
            nested
        })
    }

    /// Rank of each dimension's stride, regardless of sign: 0 is the largest, `ndim - 1` the
    /// smallest (GDP-3 "layout").
    ///
    /// The ranks follow `order`, of which only the relative order counts, unless a meaningful
    /// stride contradicts it. Without a usable order, equal strides rank in C order.
    #[must_use]
    pub fn ranks(&self, order: &[i64]) -> Extents {
        if order.len() == self.ndim() && falls_along(order, self.axes()) {
            return places(order.iter());
        }
        ranks_of_strides(self.strides())
    }
}

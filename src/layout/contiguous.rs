//! Whether elements lie without gaps, and in which order the dimensions lie in memory.

use smallvec::SmallVec;

use super::order::{falls_along, places, ranks_of_strides};
use super::{Extents, Layout};

impl Layout {
    /// Whether the elements fill their span in C order. Dimensions of extent 1 do not matter, and
    /// an empty layout is contiguous.
    #[must_use]
    pub fn is_c_contiguous(&self) -> bool {
        self.is_contiguous_along((0..self.ndim()).rev())
    }

    /// As [`Layout::is_c_contiguous`], in Fortran order.
    #[must_use]
    pub fn is_f_contiguous(&self) -> bool {
        self.is_contiguous_along(0..self.ndim())
    }

    fn is_contiguous_along(&self, fastest_first: impl Iterator<Item = usize>) -> bool {
        let mut expected = 1_i64;
        for axis in fastest_first {
            let (Some(&extent), Some(&stride)) = (self.0.shape.get(axis), self.0.strides.get(axis))
            else {
                return false;
            };
            if extent > 1 && stride != expected && self.size() > 0 {
                return false;
            }
            expected = expected.saturating_mul(extent.max(1));
        }
        true
    }

    /// Whether the elements fill their span in some order of the dimensions, without a gap.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        let ranks = self.ranks(&[]);
        let mut axes: SmallVec<[usize; 6]> = (0..self.ndim()).collect();
        axes.sort_by_key(|&axis| std::cmp::Reverse(ranks.get(axis).copied()));
        self.is_contiguous_along(axes.into_iter())
    }

    /// Rank of each dimension's stride: 0 is the largest, `ndim - 1` the smallest (GDP-3
    /// "layout"). The sign does not matter. They are as in `order`, of which only the order counts,
    /// unless the strides contradict it; those of extents of 1 or less do not, nor do any where there
    /// is no element. Without an order that holds, equal strides count in C order.
    #[must_use]
    pub fn ranks(&self, order: &[i64]) -> Extents {
        if order.len() == self.ndim() && falls_along(order, self.axes()) {
            return places(order.iter());
        }
        ranks_of_strides(&self.0.strides)
    }
}

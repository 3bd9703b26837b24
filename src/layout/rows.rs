//! Rows, the elements along the axis with the smallest stride, and the boundaries they lie on.

use super::Layout;

impl Layout {
    /// True if the element at `index` of every row lies on a boundary of that many bytes, in memory
    /// that begins at `address`. An empty layout has no row that does not.
    #[must_use]
    pub(crate) fn rows_are_on_boundary(
        &self,
        address: usize,
        index: &[i64],
        boundary: usize,
    ) -> bool {
        if boundary <= 1 || self.size() == 0 {
            return true;
        }
        let inner = self.axes().filter(|axis| axis.0 > 1).map(|axis| axis.1.unsigned_abs()).min();
        let bytes = i64::try_from(boundary).unwrap_or(i64::MAX);
        let rows = self.axes().zip(self.byte_strides()).all(|((extent, stride), between)| {
            let within = extent <= 1 || Some(stride.unsigned_abs()) == inner;
            within || between.checked_rem(bytes) == Some(0)
        });
        rows && self.bytes_behind_boundary(address, index, boundary) == 0
    }

    /// Distance in bytes of the element at `index` from the last boundary before it.
    #[must_use]
    pub(crate) fn bytes_behind_boundary(
        &self,
        address: usize,
        index: &[i64],
        boundary: usize,
    ) -> i128 {
        let boundary = i128::try_from(boundary).unwrap_or(i128::MAX);
        self.address_of(address, index).checked_rem_euclid(boundary).unwrap_or(0)
    }

    /// Address of the element at `index`, which may lie outside.
    #[must_use]
    pub(crate) fn address_of(&self, address: usize, index: &[i64]) -> i128 {
        let offset = |(&stride, &at): (&i64, &i64)| i128::from(stride).saturating_mul(at.into());
        let offsets = self.byte_strides().iter().zip(index).map(offset);
        offsets.fold(address as i128, i128::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    fn rows(stride: i64) -> Layout {
        Layout::new(smallvec![4, 6], smallvec![stride, 1], 8).unwrap()
    }

    #[test]
    fn every_row_counts_and_not_only_the_first() {
        assert!(rows(8).rows_are_on_boundary(0x1000, &[0, 0], 64));
        assert!(!rows(7).rows_are_on_boundary(0x1000, &[0, 0], 64));
    }

    #[test]
    fn the_element_at_the_index_counts_and_not_the_first_one() {
        assert!(rows(8).rows_are_on_boundary(0x1000 - 16, &[1, 2], 64));
        assert!(!rows(8).rows_are_on_boundary(0x1000, &[1, 2], 64));
        assert_eq!(rows(8).bytes_behind_boundary(0x1000, &[1, 2], 64), 16);
        assert_eq!(rows(8).bytes_behind_boundary(0x1000, &[0, -1], 64), 56);
    }

    #[test]
    fn strides_of_single_rows_and_of_empty_memory_do_not_matter() {
        let one = Layout::new(smallvec![1, 6], smallvec![7, 1], 8).unwrap();
        assert!(one.rows_are_on_boundary(0x1000, &[0, 0], 64));
        let none = Layout::new(smallvec![0, 6], smallvec![7, 1], 8).unwrap();
        assert!(none.rows_are_on_boundary(0x1001, &[0, 0], 64));
    }
}

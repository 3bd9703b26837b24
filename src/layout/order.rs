//! From a shape and an order of its dimensions to strides, and back.

use smallvec::SmallVec;

use super::Extents;

/// Strides in elements of `shape` in C order; `None` where the number of elements overflows.
#[must_use]
pub(crate) fn compact_strides(shape: &[i64]) -> Option<Extents> {
    let ranks: Extents = (0_i64..).take(shape.len()).collect();
    strides_by_rank(shape, &ranks)
}

/// Strides in elements of unpadded memory in which dimension `d` has rank `ranks[d]`: 0 is the
/// largest stride, the highest rank is contiguous. `None` where the number of elements overflows
/// or `ranks` is no permutation.
#[must_use]
pub(crate) fn strides_by_rank(shape: &[i64], ranks: &[i64]) -> Option<Extents> {
    let mut strides = Extents::from_elem(0, shape.len());
    let mut step = 1_i64;
    for rank in (0_i64..).take(shape.len()).collect::<Extents>().into_iter().rev() {
        let axis = ranks.iter().position(|&r| r == rank)?;
        *strides.get_mut(axis)? = step;
        step = step.checked_mul((*shape.get(axis)?).max(1))?;
    }
    Some(strides)
}

/// Rank of each stride by size, 0 for the largest. Of equal strides the one with the smaller `tie`
/// counts as the larger; those whose ties are equal too, or missing, count in C order.
#[must_use]
pub(crate) fn ranks_of_strides(strides: &[i64], ties: &[i64]) -> Extents {
    let mut axes: SmallVec<[usize; 6]> = (0..strides.len()).collect();
    axes.sort_by_key(|&axis| {
        let size = strides.get(axis).map_or(0, |stride| stride.unsigned_abs());
        (std::cmp::Reverse(size), ties.get(axis).copied())
    });
    let mut ranks = Extents::from_elem(0, strides.len());
    for (rank, axis) in (0_i64..).zip(axes) {
        if let Some(slot) = ranks.get_mut(axis) {
            *slot = rank;
        }
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_and_ranks_lead_back_to_each_other() {
        for ranks in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
            let strides = strides_by_rank(&[4, 5, 6], &ranks).unwrap();
            assert_eq!(ranks_of_strides(&strides, &[]).as_slice(), ranks);
        }
    }

    #[test]
    fn equal_strides_count_as_told_and_otherwise_in_c_order() {
        let strides = strides_by_rank(&[6, 1, 7], &[2, 1, 0]).unwrap();
        assert_eq!(ranks_of_strides(&strides, &[]).as_slice(), [2, 0, 1]);
        assert_eq!(ranks_of_strides(&strides, &[2, 1, 0]).as_slice(), [2, 1, 0]);
    }

    #[test]
    fn a_repeated_rank_is_no_order() {
        assert_eq!(strides_by_rank(&[4, 5], &[0, 0]), None);
    }

    #[test]
    fn the_number_of_elements_may_not_overflow() {
        assert_eq!(compact_strides(&[1 << 40, 1 << 40]), None);
    }
}

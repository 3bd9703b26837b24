//! Converts a shape and an order of its dimensions into strides, and back.

use std::cmp::Reverse;

use smallvec::SmallVec;

/// Extents, strides or ranks of a field; up to six dimensions need no allocation.
pub type Extents = SmallVec<[i64; 6]>;

/// Strides of `shape` in C order, in elements. `None` if the number of elements overflows.
pub(crate) fn compact_strides(shape: &[i64]) -> Option<Extents> {
    let mut strides = Extents::from_elem(1, shape.len());
    let mut step = 1_i64;
    for (stride, &extent) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.checked_mul(extent.max(1))?;
    }
    Some(strides)
}

/// Strides in elements of unpadded memory in which dimension `d` has rank `ranks[d]`: rank 0 has
/// the largest stride, the highest rank is contiguous. `None` if the number of elements overflows
/// or `ranks` is not a permutation.
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

/// True if the strides of `axes`, pairs of extent and stride, never grow from one rank to the next.
/// Signs and axes of extent 1 do not matter; without elements, no stride does.
pub(crate) fn falls_along(ranks: &[i64], axes: impl Iterator<Item = (i64, i64)>) -> bool {
    let mut ranked: SmallVec<[(i64, u64); 6]> = SmallVec::new();
    for (&rank, (extent, stride)) in ranks.iter().zip(axes) {
        match extent {
            0 => return true,
            1 => {}
            _ => ranked.push((rank, stride.unsigned_abs())),
        }
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.is_sorted_by_key(|(_, stride)| Reverse(*stride))
}

/// Rank of each stride by size, 0 for the largest. Equal strides rank in C order.
pub(crate) fn ranks_of_strides(strides: &[i64]) -> Extents {
    places(strides.iter().map(|stride| Reverse(stride.unsigned_abs())))
}

/// Place of each key in sorted order, from 0 on. Equal keys keep their order.
pub(crate) fn places<Key: Ord>(keys: impl Iterator<Item = Key>) -> Extents {
    let mut keyed: SmallVec<[(Key, usize); 6]> = keys.zip(0..).collect();
    keyed.sort();
    let mut places = Extents::from_elem(0, keyed.len());
    for (place, (_, at)) in (0_i64..).zip(keyed) {
        if let Some(slot) = places.get_mut(at) {
            *slot = place;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_become_strides_and_strides_become_the_same_ranks() {
        for ranks in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
            let strides = strides_by_rank(&[4, 5, 6], &ranks).unwrap();
            assert_eq!(ranks_of_strides(&strides).as_slice(), ranks);
        }
    }

    #[test]
    fn equal_strides_rank_in_c_order() {
        let strides = strides_by_rank(&[6, 1, 7], &[2, 1, 0]).unwrap();
        assert_eq!(ranks_of_strides(&strides).as_slice(), [2, 0, 1]);
    }

    #[test]
    fn strides_fall_along_ranks_unless_a_meaningful_one_grows() {
        let falls = |axes: &[(i64, i64)]| falls_along(&[1, 0], axes.iter().copied());
        assert!(falls(&[(4, 1), (5, 4)]) && falls(&[(4, -1), (5, -4)]) && falls(&[(4, 3), (5, 3)]));
        assert!(!falls(&[(4, 5), (5, 1)]) && !falls(&[(4, -5), (5, 1)]));
        assert!(falls(&[(1, 5), (5, 1)]), "an extent of 1 does not matter");
        assert!(falls(&[(4, 5), (0, 1)]), "without elements no stride matters");
    }

    #[test]
    fn a_repeated_rank_is_not_an_order() {
        assert_eq!(strides_by_rank(&[4, 5], &[0, 0]), None);
    }

    #[test]
    fn the_number_of_elements_may_not_overflow() {
        assert_eq!(compact_strides(&[1 << 40, 1 << 40]), None);
    }
}

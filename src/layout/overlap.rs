//! Finds out if two fields, or two indices of one field, share a byte.
//!
//! Two views of one array interleave more often than they overlap (the two components of a wind
//! field with a data dimension, for instance), so comparing spans would refuse good calls. The
//! exact question is whether a bounded linear equation has a solution. The search below answers
//! it, and gives up on the safe side if it takes long.

use smallvec::SmallVec;

use super::geometry::Layout;

/// A coefficient, and the largest value of its unknown.
type Term = (i128, i128);

/// The first byte, and one past the last.
type Bounds = (i128, i128);

/// Number of values that the search tries before it answers "may overlap".
const BUDGET: u32 = 100_000;

impl Layout {
    /// True if two different indices may name the same element, as in a broadcast array.
    #[inline]
    #[must_use]
    pub fn overlaps_itself(&self) -> bool {
        // The usual cases first.
        !self.is_c_contiguous() && !self.is_nested() && self.size() > 0 && repeats_an_element(self)
    }
}

/// True if `a`, with its first element at address `a_at`, and `b` at `b_at` may share a byte.
/// Exact, unless the layouts are so contrived that the search gives up and answers `true`.
#[inline]
#[must_use]
pub(crate) fn may_overlap(a: &Layout, a_at: usize, b: &Layout, b_at: usize) -> bool {
    let (a_bounds, b_bounds) = (bounds(a, a_at), bounds(b, b_at));
    let apart = a_bounds.0 >= b_bounds.1 || b_bounds.0 >= a_bounds.1;
    !(apart || a.span().is_empty() || b.span().is_empty()) && share_a_byte(a, a_bounds, b, b_bounds)
}

/// The exact answer for layouts between these bounds.
fn share_a_byte(a: &Layout, (a_low, _): Bounds, b: &Layout, (_, b_high): Bounds) -> bool {
    // With each index of b counted from its far end, "a byte of a is a byte of b" becomes:
    // sum(terms of a) + sum(terms of b) = distance from the first byte of a to the last of b.
    let mut terms: SmallVec<[Term; 16]> = terms_of(a).chain(terms_of(b)).collect();
    merge_equal(&mut terms);
    let mut budget = BUDGET;
    solvable(&terms, b_high.saturating_sub(1).saturating_sub(a_low), &mut budget)
}

/// True if two different indices of `layout` name the same element, or if the search gives up.
fn repeats_an_element(layout: &Layout) -> bool {
    let axes: SmallVec<[Term; 8]> = layout
        .axes()
        .filter(|axis| axis.0 > 1)
        .map(|(extent, stride)| (i128::from(stride.unsigned_abs()), i128::from(extent)))
        .collect();
    let mut budget = BUDGET;
    (0..axes.len())
        .any(|first| differs_first_in(axes.get(first..).unwrap_or_default(), &mut budget))
}

/// True if two indices meet that differ in the first of `axes`, and perhaps in later ones.
///
/// Let `d` be the difference of the indices: d0 runs from 1 to n0 - 1, the others from -(n - 1) to
/// n - 1. They meet if the sum of stride * d is 0. Counted from the far ends, each unknown starts
/// at 0 and each coefficient is positive.
fn differs_first_in(axes: &[Term], budget: &mut u32) -> bool {
    let Some((&(stride, extent), rest)) = axes.split_first() else { return false };
    if stride == 0 {
        return true;
    }
    let mut terms: SmallVec<[Term; 16]> = SmallVec::new();
    terms.push((stride, extent.saturating_sub(2)));
    let mut target = stride.saturating_mul(extent.saturating_sub(1));
    for &(stride, extent) in rest.iter().filter(|axis| axis.0 > 0) {
        terms.push((stride, extent.saturating_sub(1).saturating_mul(2)));
        target = target.saturating_add(stride.saturating_mul(extent.saturating_sub(1)));
    }
    merge_equal(&mut terms);
    solvable(&terms, target, budget)
}

/// True if all bytes from the lowest to the highest element of `inner`, with its first element at
/// address `inner_at`, are among those of `outer` at `outer_at`.
pub(crate) fn lies_within(
    inner: &Layout,
    inner_at: usize,
    outer: &Layout,
    outer_at: usize,
) -> bool {
    let (inner_low, inner_high) = bounds(inner, inner_at);
    let (outer_low, outer_high) = bounds(outer, outer_at);
    outer_low <= inner_low && inner_high <= outer_high
}

/// Lowest byte and one past the highest; equal for an empty layout.
fn bounds(layout: &Layout, at: usize) -> Bounds {
    let (at, span) = (at as i128, layout.span());
    (at.saturating_add(span.low as i128), at.saturating_add(span.high as i128))
}

/// One term for each dimension with a second element, and one for the bytes of an item.
fn terms_of(layout: &Layout) -> impl Iterator<Item = Term> {
    let item = layout.itemsize() as i128;
    let last = |extent: i64| i128::from(extent.saturating_sub(1));
    layout
        .axes()
        .filter(|&(extent, stride)| extent > 1 && stride != 0)
        .map(move |(extent, stride)| {
            (i128::from(stride.unsigned_abs()).saturating_mul(item), last(extent))
        })
        .chain([(1, item.saturating_sub(1))])
}

/// Sorts terms, the largest first, and joins those of equal coefficients: two views of one array
/// have the same strides.
fn merge_equal(terms: &mut SmallVec<[Term; 16]>) {
    terms.sort_unstable_by_key(|term| std::cmp::Reverse(term.0));
    terms.dedup_by(|next, last| {
        let equal = next.0 == last.0;
        if equal {
            last.1 = last.1.saturating_add(next.1);
        }
        equal
    });
}

/// True if `target` is a sum of `coefficient * x` with `0 <= x <= bound`. Largest term first.
fn solvable(terms: &[Term], target: i128, budget: &mut u32) -> bool {
    let Some((&(coefficient, bound), rest)) = terms.split_first() else {
        return target == 0;
    };
    let reach =
        rest.iter().fold(0_i128, |sum, term| sum.saturating_add(term.0.saturating_mul(term.1)));
    let least = target.saturating_sub(reach).saturating_add(coefficient).saturating_sub(1);
    let from = least.checked_div_euclid(coefficient).unwrap_or(0).max(0);
    let to = target.checked_div_euclid(coefficient).unwrap_or(0).min(bound);
    (from..=to).any(|x| {
        *budget = budget.saturating_sub(1);
        *budget == 0 || solvable(rest, target.saturating_sub(coefficient.saturating_mul(x)), budget)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(shape: &[i64], strides: &[i64]) -> Layout {
        Layout::new(shape.into(), strides.into(), 8).unwrap()
    }

    #[test]
    fn neighbouring_blocks_do_not_overlap_and_shifted_ones_do() {
        let block = layout(&[4, 5], &[5, 1]);
        assert!(!may_overlap(&block, 1000, &block, 1160));
        assert!(may_overlap(&block, 1000, &block, 1152));
        assert!(may_overlap(&block, 1000, &block, 1000));
    }

    #[test]
    fn interleaved_components_do_not_overlap() {
        let component = layout(&[8, 8], &[16, 2]);
        assert!(!may_overlap(&component, 0x1000, &component, 0x1008));
        assert!(may_overlap(&component, 0x1000, &component, 0x1010));
    }

    #[test]
    fn the_left_and_right_halves_of_an_array_do_not_overlap() {
        let half = layout(&[8, 4], &[8, 1]);
        assert!(!may_overlap(&half, 0x1000, &half, 0x1000 + 32));
        assert!(may_overlap(&half, 0x1000, &half, 0x1000 + 24));
    }

    #[test]
    fn a_reversed_view_overlaps_its_array() {
        let (forward, backward) = (layout(&[8], &[1]), layout(&[8], &[-1]));
        assert!(may_overlap(&forward, 0x1000, &backward, 0x1000 + 56));
        assert!(!may_overlap(&forward, 0x1000, &backward, 0x1000 - 8));
    }

    #[test]
    fn an_element_is_repeated_exactly_if_two_indices_give_one_offset() {
        for strides in [[1, 1], [2, 3], [0, 1], [3, 1], [-1, 2], [5, 2], [7, 7], [2, 0]] {
            let candidate = layout(&[4, 3], &strides);
            let mut offsets: Vec<i64> =
                (0..12).map(|n| n / 3 * strides[0] + n % 3 * strides[1]).collect();
            offsets.sort_unstable();
            let repeated = offsets.windows(2).any(|pair| pair[0] == pair[1]);
            assert_eq!(repeats_an_element(&candidate), repeated, "{strides:?}");
        }
    }

    #[test]
    fn the_answer_agrees_with_counting_bytes() {
        let bytes = |l: &Layout, at: i64| -> std::collections::BTreeSet<i64> {
            let mut all = vec![at];
            for (extent, stride) in l.axes() {
                all = all
                    .iter()
                    .flat_map(|&b| (0..extent).map(move |x| b + x * stride * 8))
                    .collect();
            }
            all.into_iter().flat_map(|b| b..b + 8).collect()
        };
        for (s0, s1) in [(1, 3), (3, 1), (2, 5), (-4, 1), (7, -2)] {
            for at in (0..30).map(|x| 4096 + 4 * x) {
                let (a, b) = (layout(&[3, 2], &[s0, s1]), layout(&[2, 2], &[s1, s0]));
                let shared = !bytes(&a, 4096).is_disjoint(&bytes(&b, at));
                let at = usize::try_from(at).unwrap();
                assert_eq!(may_overlap(&a, 4096, &b, at), shared, "{s0} {s1} {at}");
            }
        }
    }
}

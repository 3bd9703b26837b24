//! Layouts that must be refused, and properties of valid ones.

use smallvec::smallvec;

use super::geometry::{Layout, Span};
use crate::error::Result;

fn layout(shape: &[i64], strides: &[i64]) -> Result<Layout> {
    Layout::new(shape.into(), strides.into(), 8)
}

#[test]
fn sizes_distances_and_sums_that_overflow_are_refused() {
    let big = 1_i64 << 62;
    for (shape, strides) in [
        (vec![1 << 33, 1 << 33], vec![1, 1]),
        (vec![1 << 32, 1 << 32, 16], vec![1, 1, 1]),
        (vec![i64::MAX], vec![1]),
        (vec![0, big, big], vec![1, 1, 1]),
        (vec![2], vec![big]),
        (vec![2], vec![i64::MIN]),
        (vec![2, 2], vec![big / 8, -big / 8]),
        (vec![-1], vec![1]),
        (vec![-1, -4], vec![1, 1]),
    ] {
        assert!(layout(&shape, &strides).is_err(), "{shape:?} {strides:?}");
    }
}

#[test]
fn an_item_larger_than_any_memory_is_refused() {
    assert!(Layout::new(smallvec![], smallvec![], usize::MAX).is_err());
}

#[test]
fn the_stride_of_a_dimension_without_a_second_element_has_no_meaning() {
    let odd = layout(&[1, 3], &[i64::MAX, 1]).unwrap();
    assert!(odd.is_c_contiguous() && odd.is_f_contiguous());
    assert_eq!(odd.span(), Span { low: 0, high: 24 });
    assert!(layout(&[0, 5], &[1, i64::MIN]).unwrap().is_c_contiguous());
}

#[test]
fn the_span_runs_from_the_lowest_to_the_highest_byte() {
    assert_eq!(layout(&[3, 4], &[-4, 1]).unwrap().span(), Span { low: -64, high: 32 });
    assert_eq!(layout(&[0, 4], &[4, 1]).unwrap().span().len(), 0);
    assert_eq!(layout(&[], &[]).unwrap().span().len(), 8);
}

#[test]
fn a_permutation_moves_shape_and_strides_together() {
    let kji = Layout::compact(smallvec![2, 3, 4], 8).unwrap().permute(&[2, 1, 0]).unwrap();
    assert_eq!((kji.shape(), kji.strides()), (&[4, 3, 2][..], &[1, 4, 12][..]));
    assert!(kji.is_f_contiguous());
    assert!(kji.permute(&[0, 0, 1]).is_err() && kji.permute(&[0, 1]).is_err());
}

#[test]
fn ranks_follow_the_given_order_unless_strides_contradict_it() {
    let strange = layout(&[4, 1, 5], &[5, 99, 1]).unwrap();
    assert_eq!(strange.ranks(&[3, 9, 7]).as_slice(), [0, 2, 1], "only the order of ranks counts");
    assert_eq!(strange.ranks(&[2, 1, 0]).as_slice(), [1, 0, 2], "the strides say otherwise");
    assert_eq!(strange.ranks(&[0, 1]).as_slice(), [1, 0, 2], "an order of other dimensions");
}

#[test]
fn narrowing_moves_the_first_element_and_stays_inside() {
    let (inner, moved) = Layout::compact(smallvec![4, 5], 8).unwrap().narrow(0, 1, 2).unwrap();
    assert_eq!((inner.shape(), moved), (&[2, 5][..], 40));
    assert!(inner.narrow(1, 3, 3).is_err() && inner.narrow(1, -1, 1).is_err());
}

#[test]
fn a_broadcast_overlaps_itself_and_a_padded_field_does_not() {
    assert!(layout(&[4, 5], &[0, 1]).unwrap().overlaps_itself());
    assert!(layout(&[4, 5], &[4, 1]).unwrap().overlaps_itself());
    assert!(!layout(&[4, 5], &[8, 1]).unwrap().overlaps_itself());
    assert!(!layout(&[1, 5], &[0, -1]).unwrap().overlaps_itself());
}

#[test]
fn a_dense_layout_rises_without_gaps_in_some_order_of_its_axes() {
    let dense = |shape: &[i64], strides: &[i64]| layout(shape, strides).unwrap().is_dense();
    assert!(dense(&[4, 5], &[1, 4]) && dense(&[4, 1, 5], &[5, 99, 1]) && dense(&[0, 5], &[1, 9]));
    assert!(!dense(&[4, 5], &[8, 1]) && !dense(&[4, 5], &[-5, 1]) && !dense(&[4, 5], &[0, 1]));
}

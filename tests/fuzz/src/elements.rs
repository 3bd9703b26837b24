//! The elements of a layout, one by one.

use std::iter::successors;

use arbitrary::{Result, Unstructured};
use dlfield::Layout;
use smallvec::SmallVec;

/// An index without memory of its own: a run makes thousands of them.
pub type Index = SmallVec<[i64; 4]>;

/// Every index within a shape, in C order.
pub fn indices(shape: &[i64]) -> impl Iterator<Item = Index> + '_ {
    let first = (!shape.contains(&0)).then(|| Index::from_elem(0, shape.len()));
    successors(first, move |index| {
        let mut next = index.clone();
        for (at, &extent) in next.iter_mut().zip(shape).rev() {
            *at += 1;
            if *at < extent {
                return Some(next);
            }
            *at = 0;
        }
        None
    })
}

/// Distance in bytes of the element at an index from the first one.
pub fn distance(layout: &Layout, index: &[i64]) -> i64 {
    let item = i64::try_from(layout.itemsize()).expect("a small item");
    index.iter().zip(layout.strides()).map(|(at, stride)| at * stride * item).sum()
}

/// The distances of all elements, in C order.
pub fn distances(layout: &Layout) -> Vec<i64> {
    if layout.size() == 0 {
        return vec![];
    }
    let axes = layout.shape().iter().zip(layout.byte_strides());
    axes.fold(vec![0], |all, (&extent, &stride)| {
        let along = |from: i64| (0..extent).map(move |at| from + at * stride);
        all.into_iter().flat_map(along).collect()
    })
}

/// Some order of the numbers below `length`.
pub fn permutation(input: &mut Unstructured<'_>, length: usize) -> Result<Vec<usize>> {
    let mut order: Vec<usize> = (0..length).collect();
    for last in (1..length).rev() {
        order.swap(last, input.choose_index(last + 1)?);
    }
    Ok(order)
}

//! Words: shape and strides, and every question that can be answered from them alone.
//!
//! A [`Layout`] is checked when it is made: each extent is at least 0, the bytes of all elements
//! and the distance from the lowest to the highest of them fit an `isize`. What follows needs no
//! second thought about overflow. Extents and strides are in elements, spans in bytes.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

mod order;
mod overlap;
mod select;

use smallvec::SmallVec;

use crate::error::{Error, Result};
use order::{places, ranks_of_strides};

pub(crate) use order::{compact_strides, falls_along, strides_by_rank};
pub use overlap::may_overlap;
pub use select::Item;
pub(crate) use select::{Step, steps};

/// Extents, strides or ranks of a field; up to six dimensions need no allocation.
pub type Extents = SmallVec<[i64; 6]>;

/// The most dimensions a layout has, as in NumPy 2 and the buffer protocol.
pub const MAX_NDIM: usize = 64;

/// Shape and strides (in elements) of items of one size (in bytes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    shape: Extents,
    strides: Extents,
    itemsize: usize,
}

/// The bytes from `low` to `high` (exclusive), relative to the first element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// At most 0: how far negative strides reach below the first element.
    pub low: isize,
    /// At least 0: one past the last byte of the highest element.
    pub high: isize,
}

impl Span {
    /// Length in bytes; never negative.
    #[must_use]
    pub fn len(self) -> usize {
        self.high.abs_diff(self.low)
    }

    /// Whether there is no element at all.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.low == self.high
    }
}

impl Layout {
    /// Takes extents and strides in elements and checks them.
    ///
    /// The stride of a dimension of extent 0 or 1 is kept as it is and has no meaning.
    ///
    /// # Errors
    /// [`Error::Buffer`] for more than [`MAX_NDIM`] dimensions, a negative extent, or bytes or
    /// distances beyond `isize::MAX`.
    pub fn new(shape: Extents, strides: Extents, itemsize: usize) -> Result<Self> {
        if shape.len() > MAX_NDIM || shape.len() != strides.len() {
            return Err(Error::Buffer(format!(
                "layout: expected at most {MAX_NDIM} dimensions with a stride each, got {} extents \
                 and {} strides",
                shape.len(),
                strides.len()
            )));
        }
        let layout = Self { shape, strides, itemsize };
        layout.check_extents()?;
        layout.checked_span().ok_or_else(|| layout.too_large("a distance"))?;
        Ok(layout)
    }

    /// The C-order layout of `shape`.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn compact(shape: Extents, itemsize: usize) -> Result<Self> {
        let strides = compact_strides(&shape).ok_or_else(|| {
            Error::Buffer(format!(
                "shape {:?}: the number of elements overflows 64 bits",
                shape.as_slice()
            ))
        })?;
        Self::new(shape, strides, itemsize)
    }

    fn check_extents(&self) -> Result<()> {
        let mut bytes = i64::try_from(self.itemsize).ok();
        for (axis, &extent) in self.shape.iter().enumerate() {
            if extent < 0 {
                return Err(Error::Buffer(format!(
                    "shape: expected extents of at least 0, got {extent} on axis {axis}"
                )));
            }
            bytes = bytes.and_then(|bytes| bytes.checked_mul(extent.max(1)));
        }
        let fits = bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok());
        if fits { Ok(()) } else { Err(self.too_large("a size")) }
    }

    fn too_large(&self, what: &str) -> Error {
        Error::Buffer(format!(
            "shape {:?} with strides {:?} and items of {} bytes: expected sizes and distances up \
             to {} bytes, got {what} beyond that",
            self.shape.as_slice(),
            self.strides.as_slice(),
            self.itemsize,
            isize::MAX
        ))
    }

    fn checked_span(&self) -> Option<Span> {
        let item = i64::try_from(self.itemsize).ok()?;
        let (mut low, mut high) = (0_i64, 0_i64);
        if self.size() > 0 {
            high = item;
            for (extent, stride) in self.axes() {
                let reach = extent
                    .checked_sub(1)?
                    .checked_mul(if extent > 1 { stride } else { 0 })?
                    .checked_mul(item)?;
                low = low.checked_add(reach.min(0))?;
                high = high.checked_add(reach.max(0))?;
            }
        }
        isize::try_from(high.checked_sub(low)?).ok()?;
        Some(Span { low: isize::try_from(low).ok()?, high: isize::try_from(high).ok()? })
    }

    /// From the lowest to the highest byte that an element occupies. Empty for size 0.
    #[must_use]
    pub fn span(&self) -> Span {
        self.checked_span().unwrap_or(Span { low: 0, high: 0 }) // cannot overflow: checked by new
    }

    /// Extents, in elements.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Strides, in elements.
    #[must_use]
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// `(extent, stride)` of each dimension, in elements.
    pub fn axes(&self) -> impl Iterator<Item = (i64, i64)> {
        self.shape.iter().copied().zip(self.strides.iter().copied())
    }

    /// Strides, in bytes. Those of dimensions that have one are exact; others saturate.
    #[must_use]
    pub fn byte_strides(&self) -> Extents {
        let item = i64::try_from(self.itemsize).unwrap_or(i64::MAX);
        self.strides.iter().map(|stride| stride.saturating_mul(item)).collect()
    }

    /// Size of an item, in bytes.
    #[must_use]
    pub fn itemsize(&self) -> usize {
        self.itemsize
    }

    /// Number of dimensions, 0 to [`MAX_NDIM`].
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements.
    #[must_use]
    pub fn size(&self) -> usize {
        let size = self.shape.iter().fold(1_i64, |size, &extent| size.saturating_mul(extent));
        usize::try_from(size).unwrap_or(0)
    }

    /// Bytes of all elements, without padding.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.size().saturating_mul(self.itemsize) // cannot saturate: checked by new
    }

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
            let (Some(&extent), Some(&stride)) = (self.shape.get(axis), self.strides.get(axis))
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

    /// Whether elements of both are equally far apart. Strides that mean nothing do not count.
    #[must_use]
    pub fn places_like(&self, other: &Self) -> bool {
        let pairs = self.axes().zip(other.strides());
        self.shape == other.shape
            && pairs.into_iter().all(|((extent, stride), &other)| {
                extent <= 1 || stride == other || self.size() == 0
            })
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
        ranks_of_strides(&self.strides)
    }

    /// Whether two different indices may name the same byte, as in a broadcast array.
    #[must_use]
    pub fn overlaps_itself(&self) -> bool {
        if self.is_c_contiguous() {
            return false; // the usual case
        }
        let mut axes: SmallVec<[(u64, i64); 6]> = self
            .axes()
            .filter(|axis| axis.0 > 1)
            .map(|(extent, stride)| (stride.unsigned_abs(), extent))
            .collect();
        axes.sort_unstable();
        let mut reach = 0_u64; // of the smaller strides, in elements
        for (stride, extent) in axes {
            if stride <= reach {
                return self.size() > 0 && overlap::repeats_an_element(self); // or only interleaved
            }
            reach = reach
                .saturating_add(stride.saturating_mul(extent.saturating_sub(1).unsigned_abs()));
        }
        false
    }

    /// The same elements with the dimensions in the order of `axes`, a permutation.
    ///
    /// # Errors
    /// [`Error::Argument`] where `axes` is no permutation of `0..ndim`.
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        let mut seen: SmallVec<[bool; MAX_NDIM]> = SmallVec::from_elem(false, self.ndim());
        for &axis in axes {
            match seen.get_mut(axis) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(self.no_permutation(axes)),
            }
        }
        if axes.len() != self.ndim() {
            return Err(self.no_permutation(axes));
        }
        let pick =
            |from: &Extents| axes.iter().filter_map(|&axis| from.get(axis).copied()).collect();
        Ok(Self { shape: pick(&self.shape), strides: pick(&self.strides), itemsize: self.itemsize })
    }

    fn no_permutation(&self, axes: &[usize]) -> Error {
        let all: Vec<_> = (0..self.ndim()).collect();
        Error::Argument(format!("axes: expected a permutation of {all:?}, got {axes:?}"))
    }

    /// Keeps `length` elements of `axis` from `start` on. Also gives the distance of the new first
    /// element from the old one, in bytes.
    ///
    /// # Errors
    /// [`Error::Argument`] where the range leaves the axis.
    pub fn narrow(&self, axis: usize, start: i64, length: i64) -> Result<(Self, isize)> {
        let outside = || {
            Error::Argument(format!(
                "axis {axis}: elements {start} to {start} + {length} lie outside {:?}",
                self.shape()
            ))
        };
        let (extent, stride) = self.axes().nth(axis).ok_or_else(outside)?;
        if start < 0 || length < 0 || start.checked_add(length).is_none_or(|end| end > extent) {
            return Err(outside());
        }
        let mut narrowed = self.clone();
        if let Some(extent) = narrowed.shape.get_mut(axis) {
            *extent = length;
        }
        let item = i64::try_from(self.itemsize).unwrap_or(i64::MAX);
        let moved = if narrowed.size() == 0 {
            0
        } else {
            start.saturating_mul(stride).saturating_mul(item)
        };
        Ok((narrowed, isize::try_from(moved).map_err(|_| outside())?))
    }
}

#[cfg(test)]
mod tests;

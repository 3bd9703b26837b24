//! Words: shape and strides, and every question that can be answered from them alone.
//!
//! A [`Layout`] is checked when it is made: each extent is at least 0, the bytes of all elements
//! and the distance from the lowest to the highest of them fit an `isize`. What follows needs no
//! second thought about overflow. Extents and strides are in elements, spans in bytes.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

mod order;
mod contiguous;
mod overlap;
mod select;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::{Error, Result};

use order::compact_strides;

pub(crate) use order::{falls_along, strides_by_rank};
pub use overlap::may_overlap;
pub use select::Item;
pub(crate) use select::{Step, steps};

/// Extents, strides or ranks of a field; up to six dimensions need no allocation.
pub type Extents = SmallVec<[i64; 6]>;

/// The most dimensions a layout has, as in NumPy 2 and the buffer protocol.
pub const MAX_NDIM: usize = 64;

/// Shape and strides (in elements) of items of one size (in bytes).
///
/// Never changes, so that all who describe the same memory share one: cloning copies no numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout(Arc<Known>);

/// What was checked, and what was found out by it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Known {
    shape: Extents,
    strides: Extents,
    byte_strides: Extents,
    itemsize: usize,
    size: usize,
    span: Span,
}

/// The bytes from `low` to `high` (exclusive), relative to the first element.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

/// Extents and strides that are not checked yet.
struct Axes<'a> {
    shape: &'a [i64],
    strides: &'a [i64],
    itemsize: usize,
}

impl Axes<'_> {
    /// The number of elements.
    fn checked_size(&self) -> Result<usize> {
        let mut bytes = i64::try_from(self.itemsize).ok();
        let mut size = 1_i64;
        for (axis, &extent) in self.shape.iter().enumerate() {
            if extent < 0 {
                return Err(Error::Buffer(format!(
                    "shape: expected extents of at least 0, got {extent} on axis {axis}"
                )));
            }
            bytes = bytes.and_then(|bytes| bytes.checked_mul(extent.max(1)));
            size = size.saturating_mul(extent);
        }
        let fits = bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok());
        let size = usize::try_from(size).ok().filter(|_| fits);
        size.ok_or_else(|| self.too_large("a size"))
    }

    fn too_large(&self, what: &str) -> Error {
        Error::Buffer(format!(
            "shape {:?} with strides {:?} and items of {} bytes: expected sizes and distances up \
             to {} bytes, got {what} beyond that",
            self.shape,
            self.strides,
            self.itemsize,
            isize::MAX
        ))
    }

    fn checked_span(&self, size: usize) -> Option<Span> {
        let item = i64::try_from(self.itemsize).ok()?;
        let (mut low, mut high) = (0_i64, 0_i64);
        if size > 0 {
            high = item;
            for (&extent, &stride) in self.shape.iter().zip(self.strides) {
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
}

fn check_lengths(extents: usize, strides: usize) -> Result<()> {
    if extents <= MAX_NDIM && extents == strides {
        return Ok(());
    }
    Err(Error::Buffer(format!(
        "layout: expected at most {MAX_NDIM} dimensions with a stride each, got {extents} extents and {strides} strides"
    )))
}

impl Known {
    /// DLPack, and so dlfield, counts strides in elements. Those that have no meaning need not fit.
    fn strides_in_elements(&mut self) -> Result<()> {
        let item = i64::try_from(self.itemsize).unwrap_or(i64::MAX).max(1);
        let empty = self.shape.contains(&0);
        for (axis, (stride, &extent)) in self.strides.iter_mut().zip(&self.shape).enumerate() {
            let bytes = *stride;
            // Nearly every size is a power of two, for which nothing has to be divided.
            let power = self.itemsize.is_power_of_two();
            *stride = if power { bytes >> item.trailing_zeros() } else { bytes.div_euclid(item) };
            if extent > 1 && !empty && stride.wrapping_mul(item) != bytes {
                return Err(Error::Buffer(format!(
                    "stride of axis {axis}: expected a multiple of the item size {item}, got {bytes} \
                     bytes; dlfield counts in elements, as DLPack does: copy the array with storage(...)"
                )));
            }
        }
        Ok(())
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
        check_lengths(shape.len(), strides.len())?;
        Self::of(itemsize, |known| {
            known.shape = shape;
            known.strides = strides;
            Ok(())
        })
    }

    /// As [`Layout::new`], with strides in bytes.
    ///
    /// # Errors
    /// As [`Layout::new`]; [`Error::Buffer`] for a stride that counts and is no multiple of the item size.
    pub(crate) fn of_byte_strides(
        shape: &[i64],
        byte_strides: &[i64],
        itemsize: usize,
    ) -> Result<Self> {
        check_lengths(shape.len(), byte_strides.len())?;
        Self::of(itemsize, |known| {
            known.shape.extend_from_slice(shape);
            known.strides.extend_from_slice(byte_strides);
            known.strides_in_elements()
        })
    }

    /// What `fill` fills in, checked. It is filled where it stays: what was just written is slow to move.
    fn of(itemsize: usize, fill: impl FnOnce(&mut Known) -> Result<()>) -> Result<Self> {
        let mut layout = Arc::new(Known { itemsize, ..Known::default() });
        if let Some(known) = Arc::get_mut(&mut layout) {
            fill(known)?;
            let axes = Axes { shape: &known.shape, strides: &known.strides, itemsize };
            let size = axes.checked_size()?;
            let span = axes.checked_span(size).ok_or_else(|| axes.too_large("a distance"))?;
            (known.size, known.span) = (size, span);
            let item = i64::try_from(itemsize).unwrap_or(i64::MAX);
            known.byte_strides.clone_from(&known.strides);
            for stride in &mut known.byte_strides {
                *stride = stride.saturating_mul(item);
            }
        }
        Ok(Self(layout))
    }

    fn too_large(&self, what: &str) -> Error {
        let Known { shape, strides, itemsize, .. } = &*self.0;
        Axes { shape, strides, itemsize: *itemsize }.too_large(what)
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

    /// From the lowest to the highest byte that an element occupies. Empty for size 0.
    #[must_use]
    pub fn span(&self) -> Span {
        self.0.span
    }

    /// Extents, in elements.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.0.shape
    }

    /// Strides, in elements.
    #[must_use]
    pub fn strides(&self) -> &[i64] {
        &self.0.strides
    }

    /// `(extent, stride)` of each dimension, in elements.
    pub fn axes(&self) -> impl Iterator<Item = (i64, i64)> {
        self.0.shape.iter().copied().zip(self.0.strides.iter().copied())
    }

    /// Strides, in bytes. Those of dimensions that have one are exact; others saturate.
    #[must_use]
    pub fn byte_strides(&self) -> &[i64] {
        &self.0.byte_strides
    }

    /// Size of an item, in bytes.
    #[must_use]
    pub fn itemsize(&self) -> usize {
        self.0.itemsize
    }

    /// Number of dimensions, 0 to [`MAX_NDIM`].
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.0.shape.len()
    }

    /// Number of elements.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.size
    }

    /// Bytes of all elements, without padding.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.size().saturating_mul(self.0.itemsize) // cannot saturate: checked by new
    }

    /// Whether elements of both are equally far apart. Strides that mean nothing do not count.
    #[must_use]
    pub fn places_like(&self, other: &Self) -> bool {
        let pairs = self.axes().zip(other.strides());
        self.0.shape == other.0.shape
            && pairs.into_iter().all(|((extent, stride), &other)| {
                extent <= 1 || stride == other || self.size() == 0
            })
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
        Self::new(pick(&self.0.shape), pick(&self.0.strides), self.0.itemsize)
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
        let mut shape = self.0.shape.clone();
        if let Some(extent) = shape.get_mut(axis) {
            *extent = length;
        }
        let narrowed = Self::new(shape, self.0.strides.clone(), self.0.itemsize)?;
        let item = i64::try_from(self.0.itemsize).unwrap_or(i64::MAX);
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

//! The checked layout itself.

use std::sync::Arc;

use super::order::{Extents, compact_strides};
use crate::error::{Error, Result};

/// Maximum number of dimensions, as in NumPy 2 and the buffer protocol.
pub const MAX_NDIM: usize = 64;

/// Shape and strides (in elements) of items of one size (in bytes).
///
/// A layout is immutable and shared: cloning it copies no numbers.
///
/// # Example
///
/// ```
/// use dlfield::Layout;
///
/// let rows = Layout::new([3, 4].as_slice().into(), [8, 1].as_slice().into(), size_of::<f64>())?;
/// assert_eq!((rows.size(), rows.span().len()), (12, (2 * 8 + 4) * 8));
/// assert!(!rows.is_c_contiguous()); // each row is padded to 8 elements
/// # Ok::<(), dlfield::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout(Arc<Geometry>);

/// Checked numbers, and what follows from them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Geometry {
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
    /// Distance that negative strides reach below the first element; at most 0.
    pub low: isize,
    /// One past the last byte of the highest element; at least 0.
    pub high: isize,
}

impl Span {
    /// Length in bytes; never negative.
    #[must_use]
    pub fn len(self) -> usize {
        self.high.abs_diff(self.low)
    }

    /// True if there are no elements.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.low == self.high
    }
}

impl Geometry {
    /// Returns the number of elements.
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
            self.shape.as_slice(),
            self.strides.as_slice(),
            self.itemsize,
            isize::MAX
        ))
    }

    fn checked_span(&self) -> Option<Span> {
        let item = i64::try_from(self.itemsize).ok()?;
        let (mut low, mut high) = (0_i64, 0_i64);
        if self.size > 0 {
            high = item;
            for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
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

    /// Divides byte strides by the item size. Meaningless strides need not be divisible.
    fn strides_in_elements(&mut self) -> Result<()> {
        let item = i64::try_from(self.itemsize).unwrap_or(i64::MAX).max(1);
        let empty = self.shape.contains(&0);
        for (axis, (stride, &extent)) in self.strides.iter_mut().zip(&self.shape).enumerate() {
            let bytes = *stride;
            // Nearly every item size is a power of two, which needs no division.
            let power = self.itemsize.is_power_of_two();
            *stride = if power { bytes >> item.trailing_zeros() } else { bytes.div_euclid(item) };
            if extent > 1 && !empty && stride.wrapping_mul(item) != bytes {
                return Err(Error::Buffer(format!(
                    "stride of axis {axis}: expected a multiple of the item size {item}, got \
                     {bytes} bytes; dlfield counts in elements, as DLPack does; copy the array \
                     first"
                )));
            }
        }
        Ok(())
    }
}

fn check_lengths(extents: usize, strides: usize) -> Result<()> {
    if extents <= MAX_NDIM && extents == strides {
        return Ok(());
    }
    Err(Error::Buffer(format!(
        "layout: expected at most {MAX_NDIM} dimensions with a stride each, got {extents} extents \
         and {strides} strides"
    )))
}

impl Layout {
    /// Checks extents and strides, both in elements.
    ///
    /// The stride of a dimension of extent 0 or 1 is kept and has no meaning.
    ///
    /// # Errors
    /// [`Error::Buffer`] for more than [`MAX_NDIM`] dimensions, a negative extent, or bytes or
    /// distances beyond `isize::MAX`.
    pub fn new(shape: Extents, strides: Extents, itemsize: usize) -> Result<Self> {
        check_lengths(shape.len(), strides.len())?;
        Self::build(itemsize, |geometry| {
            geometry.shape = shape;
            geometry.strides = strides;
            Ok(())
        })
    }

    /// As [`Layout::new`], with strides in bytes.
    ///
    /// # Errors
    /// As [`Layout::new`]; [`Error::Buffer`] for a meaningful stride that is not a multiple of the
    /// item size.
    pub(crate) fn from_byte_strides(
        shape: &[i64],
        byte_strides: &[i64],
        itemsize: usize,
    ) -> Result<Self> {
        check_lengths(shape.len(), byte_strides.len())?;
        Self::build(itemsize, |geometry| {
            geometry.shape = Extents::from_slice(shape);
            geometry.strides = Extents::from_slice(byte_strides);
            geometry.strides_in_elements()
        })
    }

    /// Checks what `fill` writes. It writes in place, because moving fresh numbers is slow.
    fn build(itemsize: usize, fill: impl FnOnce(&mut Geometry) -> Result<()>) -> Result<Self> {
        let mut layout = Arc::new(Geometry { itemsize, ..Geometry::default() });
        if let Some(geometry) = Arc::get_mut(&mut layout) {
            fill(geometry)?;
            geometry.size = geometry.checked_size()?;
            let span = geometry.checked_span();
            geometry.span = span.ok_or_else(|| geometry.too_large("a distance"))?;
            let item = i64::try_from(itemsize).unwrap_or(i64::MAX);
            geometry.byte_strides = Extents::from_slice(&geometry.strides);
            for stride in &mut geometry.byte_strides {
                *stride = stride.saturating_mul(item);
            }
        }
        Ok(Self(layout))
    }

    pub(super) fn too_large(&self, what: &str) -> Error {
        self.0.too_large(what)
    }

    /// Returns the C-order layout of `shape`.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn compact(shape: Extents, itemsize: usize) -> Result<Self> {
        check_lengths(shape.len(), shape.len())?;
        Self::build(itemsize, |geometry| {
            geometry.shape = shape;
            let shape = geometry.shape.as_slice();
            geometry.strides = compact_strides(shape).ok_or_else(|| {
                let most = i64::MAX;
                Error::Buffer(format!(
                    "shape {shape:?}: expected at most {most} elements, got more"
                ))
            })?;
            Ok(())
        })
    }

    /// Bytes from the lowest to the highest element. Empty for size 0.
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

    /// Strides, in bytes. Meaningful strides are exact, others saturate.
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
        self.size().saturating_mul(self.0.itemsize) // never saturates (checked by new)
    }

    /// True if both shapes and all meaningful strides are equal.
    #[must_use]
    pub fn places_like(&self, other: &Self) -> bool {
        let pairs = self.axes().zip(other.strides());
        self.0.shape == other.0.shape
            && pairs.into_iter().all(|((extent, stride), &other)| {
                extent <= 1 || stride == other || self.size() == 0
            })
    }
}

//! The checked layout itself.

use std::cell::Cell;
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
    /// Strides in bytes as NumPy's buffers show them, if those are others.
    shown_strides: Option<Box<[i64]>>,
    itemsize: usize,
    size: usize,
    span: Span,
    is_c_contiguous: bool,
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
    /// Computes what follows from extents, strides (in elements) and the size of an item.
    fn measure(&mut self) -> Result<()> {
        if let Some((axis, extent)) = (0..).zip(&self.shape).find(|(_, extent)| **extent < 0) {
            return Err(Error::Buffer(format!(
                "shape: expected extents of at least 0, got {extent} on axis {axis}"
            )));
        }
        let item = i64::try_from(self.itemsize).map_err(|_| self.too_large("a size"))?;
        self.size = self.checked_size(item).ok_or_else(|| self.too_large("a size"))?;
        self.span = self.checked_span(item).ok_or_else(|| self.too_large("a distance"))?;
        self.byte_strides = self.strides.iter().map(|stride| stride.wrapping_mul(item)).collect();
        let is_any = |&extent: &i64| extent <= 1;
        if self.is_c_contiguous && self.shape.iter().any(is_any) {
            let shown = self.strides_without_gaps(item);
            self.shown_strides = Some(shown).filter(|shown| **shown != *self.byte_strides);
        }
        Ok(())
    }

    /// The strides of C order in bytes, in which an empty dimension makes those before it 0.
    fn strides_without_gaps(&self, item: i64) -> Box<[i64]> {
        let mut strides: Box<[i64]> = self.shape.iter().copied().collect();
        let mut next = item;
        for stride in strides.iter_mut().rev() {
            let extent = std::mem::replace(stride, next);
            next = next.saturating_mul(extent);
        }
        strides
    }

    /// Returns the number of elements, and notes if they lie in C order.
    fn checked_size(&mut self, item: i64) -> Option<usize> {
        let (mut at_least_one, mut in_order) = (1_i64, true);
        for (&extent, &stride) in self.shape.iter().zip(&self.strides).rev() {
            in_order &= extent <= 1 || stride == at_least_one;
            at_least_one = at_least_one.checked_mul(extent.max(1))?;
        }
        isize::try_from(at_least_one.checked_mul(item)?).ok()?;
        let empty = self.shape.contains(&0);
        self.is_c_contiguous = in_order || empty;
        if empty { Some(0) } else { usize::try_from(at_least_one).ok() }
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

    fn checked_span(&self, item: i64) -> Option<Span> {
        let (mut low, mut high) = (0_i64, 0_i64);
        if self.size > 0 {
            high = item;
            for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
                if extent > 1 {
                    let steps = extent.checked_sub(1)?;
                    let reach = steps.checked_mul(stride)?.checked_mul(item)?;
                    low = low.checked_add(reach.min(0))?;
                    high = high.checked_add(reach.max(0))?;
                }
            }
        }
        isize::try_from(high.checked_sub(low)?).ok()?;
        Some(Span { low: isize::try_from(low).ok()?, high: isize::try_from(high).ok()? })
    }
}

/// How many layouts a thread remembers.
const RECENT_LAYOUTS: usize = 8;

thread_local! {
    /// Layouts that the thread has made lately: the fields of a model have few different ones, and
    /// to check one anew takes longer than the rest of an import.
    static RECENT: [Cell<Option<Layout>>; RECENT_LAYOUTS] =
        const { [const { Cell::new(None) }; RECENT_LAYOUTS] };
}

/// The place of a layout among the recent ones; others may have the same.
fn recent_place(shape: &[i64], strides: &[i64]) -> usize {
    let mix = |sum: u64, number: &i64| sum.wrapping_mul(31).wrapping_add(number.cast_unsigned());
    let sum = shape.iter().chain(strides).fold(0, mix);
    usize::try_from(sum ^ (sum >> 32)).unwrap_or(0) % RECENT_LAYOUTS
}

/// Divides byte strides by the item size. Meaningless strides need not be divisible.
fn strides_in_elements(shape: &[i64], byte_strides: &[i64], itemsize: usize) -> Result<Extents> {
    let item = i64::try_from(itemsize).unwrap_or(i64::MAX).max(1);
    let mut strides = Extents::from_slice(byte_strides);
    for (axis, (stride, &extent)) in strides.iter_mut().zip(shape).enumerate() {
        let bytes = *stride;
        // Nearly every item size is a power of two, which needs no division.
        let power = itemsize.is_power_of_two();
        *stride = if power { bytes >> item.trailing_zeros() } else { bytes.div_euclid(item) };
        if extent > 1 && stride.wrapping_mul(item) != bytes && !shape.contains(&0) {
            return Err(Error::Buffer(format!(
                "stride of axis {axis}: expected a multiple of the item size {item}, got {bytes} \
                 bytes; dlfield counts in elements, as DLPack does; copy the array first"
            )));
        }
    }
    Ok(strides)
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
        let place = recent_place(&shape, &strides);
        match Self::recent(place, |known| known.has(&shape, &strides, itemsize)) {
            Some(known) => Ok(known),
            None => Self::made(place, shape, strides, itemsize),
        }
    }

    /// As [`Layout::new`]; copies the numbers only if the layout is not among the recent ones.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub(crate) fn from_numbers(shape: &[i64], strides: &[i64], itemsize: usize) -> Result<Self> {
        let place = recent_place(shape, strides);
        match Self::recent(place, |known| known.has(shape, strides, itemsize)) {
            Some(known) => Ok(known),
            None => Self::made(
                place,
                Extents::from_slice(shape),
                Extents::from_slice(strides),
                itemsize,
            ),
        }
    }

    fn has(&self, shape: &[i64], strides: &[i64], itemsize: usize) -> bool {
        self.shape() == shape && self.strides() == strides && self.itemsize() == itemsize
    }

    /// A new layout, which is kept at a place among the recent ones.
    fn made(place: usize, shape: Extents, strides: Extents, itemsize: usize) -> Result<Self> {
        check_lengths(shape.len(), strides.len())?;
        let mut geometry = Geometry { shape, strides, itemsize, ..Geometry::default() };
        geometry.measure()?;
        let layout = Self(Arc::new(geometry));
        layout.remember(place);
        Ok(layout)
    }

    /// The layout at a place among those that the thread has made lately, if it is the one.
    fn recent(place: usize, is_same: impl Fn(&Self) -> bool) -> Option<Self> {
        let look = |cell: &Cell<Option<Self>>| {
            let known = cell.take();
            let found = known.as_ref().filter(|known| is_same(known)).cloned();
            cell.set(known);
            found
        };
        RECENT.try_with(|recent| recent.get(place).and_then(look)).ok().flatten()
    }

    /// Keeps the layout at a place. A thread that is ending keeps none.
    fn remember(&self, place: usize) {
        let _ = RECENT.try_with(|recent| recent.get(place)?.replace(Some(self.clone())));
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
        let place = recent_place(shape, byte_strides);
        let is_same = |known: &Self| {
            known.shape() == shape
                && known.byte_strides() == byte_strides
                && known.itemsize() == itemsize
        };
        if let Some(known) = Self::recent(place, is_same) {
            return Ok(known);
        }
        let strides = strides_in_elements(shape, byte_strides, itemsize)?;
        let layout = Self::new(Extents::from_slice(shape), strides, itemsize)?;
        layout.remember(place);
        Ok(layout)
    }

    pub(super) fn too_large(&self, what: &str) -> Error {
        self.0.too_large(what)
    }

    /// Returns the C-order layout of `shape`.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn compact(shape: Extents, itemsize: usize) -> Result<Self> {
        let strides = compact_strides(&shape).ok_or_else(|| {
            let (most, shape) = (i64::MAX, shape.as_slice());
            Error::Buffer(format!("shape {shape:?}: expected at most {most} elements, got more"))
        })?;
        Self::new(shape, strides, itemsize)
    }

    /// Bytes from the lowest to the highest element. Empty for size 0.
    #[must_use]
    pub fn span(&self) -> Span {
        self.0.span
    }

    /// True if no element lies at NULL or outside the address space, with the first one at
    /// `address`.
    #[must_use]
    pub(crate) fn lies_in_memory(&self, address: usize) -> bool {
        let span = self.0.span;
        let low = address.checked_add_signed(span.low);
        let ends = || low.is_some_and(|low| low > 0 && low.checked_add(span.len()).is_some());
        span.is_empty() || (address != 0 && ends())
    }

    /// True if the elements fill their span in C order. Dimensions of extent 1 do not matter, and
    /// an empty layout is contiguous.
    #[must_use]
    pub fn is_c_contiguous(&self) -> bool {
        self.0.is_c_contiguous
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

    /// Strides in bytes as the buffers of NumPy's arrays show them: of elements in C order those without
    /// gaps, also along dimensions whose strides mean nothing.
    pub(crate) fn shown_strides(&self) -> &[i64] {
        self.0.shown_strides.as_deref().unwrap_or(&self.0.byte_strides)
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

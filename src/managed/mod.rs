//! Stage 2 of 4. Takes an [`Imported`] from a door, gives a [`Managed`] to Storage.
//!
//! ```text
//! foreign object ──door──▶ Imported ──validate()──▶ Managed ──▶ Storage
//! ```
//!
//! Trust is a type. An [`Imported`] is what a producer claims; nothing in it can be reached. A
//! [`Managed`] has been checked once, and nobody behind it checks again: its elements lie in
//! memory that its owner keeps, its arithmetic does not overflow, its type and device are known.

mod foreign;
mod on_device;
mod imported;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::cuda::Timeline;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::{Layout, Span, Step};

#[cfg(feature = "python")]
pub(crate) use imported::read_prototype;
pub use imported::{Described, Imported};

/// Keeps memory alive. Dropping the last clone frees it, on whichever thread that happens.
pub type Owner = Arc<dyn Any + Send + Sync>;

/// A validated, owning tensor: DLPack's managed tensor with its promises checked.
///
/// Cloning copies no element. Every clone, view and export holds one reference to the owner; the
/// producer's deleter runs when the last of them is gone.
#[derive(Clone)]
pub struct Managed {
    data: *mut u8,
    layout: Layout,
    dtype: DType,
    device: Device,
    readonly: bool,
    owner: Owner,
    timeline: Option<Arc<Timeline>>,
}

// SAFETY: the pointer is only an address; whoever reads or writes through it says why it may
// (unsafe code elsewhere), and the owner behind it is Send by its type.
unsafe impl Send for Managed {}
// SAFETY: no method writes through the pointer, and the owner is Sync by its type.
unsafe impl Sync for Managed {}

impl Managed {
    /// Describes memory that dlfield itself allocated.
    ///
    /// # Safety
    /// Every byte of `layout`'s span, counted from `data`, lies in memory that `owner` keeps
    /// valid, reachable as `device` says, until it is dropped. No two indices of `layout` name the same
    /// element: several threads may write different ones.
    #[must_use]
    pub unsafe fn from_owned(
        data: *mut u8,
        layout: Layout,
        dtype: DType,
        device: Device,
        owner: Owner,
    ) -> Self {
        Self { data, layout, dtype, device, readonly: false, owner, timeline: None }
    }

    /// The same memory, on which work is in flight as `timeline` says.
    #[must_use]
    pub(crate) fn with_timeline(self, timeline: Arc<Timeline>) -> Self {
        Self { timeline: Some(timeline), ..self }
    }

    /// What may be in flight on the memory: known of memory of a device, and of host memory that
    /// dlfield has made for copies to a device.
    pub(crate) fn timeline(&self) -> Option<&Arc<Timeline>> {
        self.timeline.as_ref()
    }

    /// Waits until nothing that dlfield knows of is in flight on the memory any more.
    ///
    /// # Errors
    /// [`crate::Error::Device`]: what an earlier operation has failed with.
    pub(crate) fn wait(&self) -> Result<()> {
        self.timeline.as_ref().map_or(Ok(()), |timeline| timeline.wait())
    }

    /// Address of the first element (the one with index 0 in every dimension), which is not the
    /// lowest where strides are negative. Of no meaning for size 0.
    #[must_use]
    pub fn data(&self) -> *mut u8 {
        self.data
    }

    /// The address of [`Managed::data`] as a number.
    #[must_use]
    pub fn address(&self) -> usize {
        self.data.addr()
    }

    /// Shape and strides.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Type of an element.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Where the memory lives.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device
    }

    /// The same memory under another name for its device: of memory that both sides reach, that of the
    /// side it is for.
    #[must_use]
    pub(crate) fn seen_at(self, device: Device) -> Self {
        Self { device, ..self }
    }

    /// Refuses memory for the host that the driver has allocated, and that is there no more: it went
    /// with its context, or stays with the process that this one was forked from.
    ///
    /// # Errors
    /// [`crate::Error::Device`].
    pub(crate) fn check_there(&self) -> Result<()> {
        if self.timeline.is_none() || self.layout.size() == 0 {
            return Ok(());
        }
        on_device::check_there(self.address())
    }

    /// Refuses memory that the host cannot reach.
    ///
    /// # Errors
    /// [`crate::Error::Device`].
    pub fn check_on_host(&self) -> Result<()> {
        self.device.check_on_host()
    }

    /// Whether the memory must not be written through this description.
    #[must_use]
    pub fn readonly(&self) -> bool {
        self.readonly
    }

    /// Whether every element lies where typed access needs it. True for size 0.
    #[must_use]
    pub fn is_aligned(&self) -> bool {
        self.layout.size() == 0 || self.address().is_multiple_of(self.dtype.alignment())
    }

    /// Whether both describe the same elements in the same order.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        let address = self.layout.size() == 0 || self.address() == other.address();
        address && self.dtype == other.dtype && self.layout.places_like(&other.layout)
    }

    /// Bytes from the lowest to the highest element.
    #[must_use]
    pub fn span(&self) -> Span {
        self.layout.span()
    }

    /// A further reference to what keeps the memory alive.
    #[must_use]
    pub fn owner(&self) -> Owner {
        Arc::clone(&self.owner)
    }

    /// The same memory, which keeps `companion` alive too: it is dropped with the last reference,
    /// before the memory goes.
    #[must_use]
    pub fn along_with(self, companion: impl Any + Send + Sync) -> Self {
        Self { owner: Arc::new((companion, self.owner)), ..self } // dropped in this order
    }

    /// The same memory, not to be written.
    #[must_use]
    pub fn into_readonly(self) -> Self {
        Self { readonly: true, ..self }
    }

    /// The same bytes read as another type of the same size. Copies nothing.
    ///
    /// # Errors
    /// [`crate::Error::Argument`] where the sizes differ.
    pub fn reinterpret(self, dtype: DType) -> Result<Self> {
        if dtype.itemsize() != self.dtype.itemsize() {
            return Err(crate::error::Error::Argument(format!(
                "dtype: expected items of {} bytes, got {dtype}",
                self.dtype.itemsize()
            )));
        }
        Ok(Self { dtype, ..self })
    }

    /// A block of bytes without gaps as elements of another type, laid out as `layout` says. Copies
    /// nothing.
    ///
    /// # Errors
    /// [`crate::Error::Argument`] where this is no such block, or has another number of bytes.
    #[cfg(feature = "python")]
    pub(crate) fn retyped(self, dtype: DType, layout: Layout) -> Result<Self> {
        let (span, block) = (layout.span(), self.layout.nbytes());
        let inside = span.low == 0 && span.len() <= block && layout.nbytes() == block;
        if inside && self.layout.is_c_contiguous() && layout.itemsize() == dtype.itemsize() {
            return Ok(Self { dtype, layout, ..self });
        }
        Err(crate::error::Error::Argument(format!(
            "bytes: expected {} of them without gaps, got {block}",
            layout.nbytes()
        )))
    }

    /// A view with the dimensions in the order of `axes`. Copies nothing.
    ///
    /// # Errors
    /// As [`Layout::permute`].
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        Ok(Self { layout: self.layout.permute(axes)?, ..self.clone() })
    }

    /// A view of `length` elements of `axis` from `start` on. Copies nothing.
    ///
    /// # Errors
    /// As [`Layout::narrow`].
    pub fn narrow(&self, axis: usize, start: i64, length: i64) -> Result<Self> {
        let (layout, moved) = self.layout.narrow(axis, start, length)?;
        Ok(Self { data: self.data.wrapping_byte_offset(moved), layout, ..self.clone() })
    }

    /// A view of the elements that `steps` select. Copies nothing.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub(crate) fn select(&self, steps: &[Step]) -> Result<Self> {
        let (layout, moved) = self.layout.select(steps)?;
        Ok(Self { data: self.data.wrapping_byte_offset(moved), layout, ..self.clone() })
    }

    /// A view with dimensions taken from `axes`, see [`Layout::align`]. Copies nothing.
    ///
    /// # Errors
    /// As [`Layout::align`].
    pub fn align(&self, axes: &[Option<usize>]) -> Result<Self> {
        Ok(Self { layout: self.layout.align(axes)?, ..self.clone() })
    }

    /// A read-only view of another shape, as NumPy broadcasts. Copies nothing.
    ///
    /// # Errors
    /// As [`Layout::broadcast_to`].
    pub fn broadcast_to(&self, shape: &[i64]) -> Result<Self> {
        let layout = self.layout.broadcast_to(shape)?;
        Ok(Self { layout, readonly: true, ..self.clone() })
    }
}

impl fmt::Debug for Managed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Managed")
            .field("data", &self.data)
            .field("shape", &self.layout.shape())
            .field("strides", &self.layout.strides())
            .field("dtype", &self.dtype)
            .field("device", &self.device)
            .field("readonly", &self.readonly)
            .finish_non_exhaustive()
    }
}

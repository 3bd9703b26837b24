//! A tensor whose claims were checked, and views of it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::checked::Facts;
use super::owner::Owner;
use crate::cuda::{Timeline, device_count, locate};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Layout, Step, may_overlap};

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

// SAFETY: the pointer is only an address: unsafe code elsewhere reads or writes through it and
// justifies it there. The owner is Send by its type.
unsafe impl Send for Managed {}
// SAFETY: no method writes through the pointer, and the owner is Sync by its type.
unsafe impl Sync for Managed {}

impl Facts {
    /// Trusts the memory, which `owner` keeps: the caller has located it.
    pub(super) fn owned_by(self, owner: Owner) -> Managed {
        let Self { data, layout, dtype, device, readonly } = self;
        let readonly = readonly || layout.overlaps_itself();
        Managed { data, layout, dtype, device, readonly, owner, timeline: None }
    }
}

impl Managed {
    /// Describes memory that dlfield itself allocated.
    ///
    /// # Safety
    /// Every byte of `layout`'s span, counted from `data`, lies in memory that `owner` keeps valid,
    /// reachable as `device` says, until it is dropped. No two indices of `layout` name the same
    /// element: several threads may write different ones.
    pub(crate) unsafe fn from_owned(
        data: *mut u8,
        layout: Layout,
        dtype: DType,
        device: Device,
        owner: Owner,
    ) -> Self {
        Self { data, layout, dtype, device, readonly: false, owner, timeline: None }
    }

    /// Adds the timeline of the work in flight on the memory.
    #[must_use]
    pub(crate) fn with_timeline(self, timeline: Arc<Timeline>) -> Self {
        Self { timeline: Some(timeline), ..self }
    }

    /// The order of work on the memory. Memory of a device has one, and host memory that dlfield
    /// allocated for copies to a device.
    pub(crate) fn timeline(&self) -> Option<&Arc<Timeline>> {
        self.timeline.as_ref()
    }

    /// True if others may use the memory on the host at any time: they know nothing of work in
    /// flight, which has to be waited for.
    pub(crate) fn is_shared_with_host(&self) -> bool {
        self.device().is_host() && self.timeline().is_none_or(|timeline| timeline.is_exposed())
    }

    /// Waits for all work in flight on the memory that dlfield knows of.
    ///
    /// # Errors
    /// [`crate::Error::Device`]: the failure of an earlier operation.
    pub(crate) fn wait(&self) -> Result<()> {
        self.timeline.as_ref().map_or(Ok(()), |timeline| timeline.wait())
    }

    /// Address of the first element (the one with index 0 in every dimension), which is not the
    /// lowest if strides are negative. Meaningless for size 0.
    ///
    /// An address leaves dlfield here alone. Memory of a GPU is marked as exposed: before it is
    /// freed, dlfield waits for all work of its device.
    #[must_use]
    pub fn data(&self) -> *mut u8 {
        if let Some(timeline) = &self.timeline {
            timeline.expose();
        }
        self.data
    }

    /// The address of [`Managed::data`] as a number.
    #[must_use]
    pub fn address(&self) -> usize {
        self.data().addr()
    }

    /// The address for dlfield's own work, which the timeline orders, and for comparisons.
    pub(crate) fn start(&self) -> *mut u8 {
        self.data
    }

    /// The address of [`Managed::start`] as a number.
    pub(crate) fn position(&self) -> usize {
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

    /// The device that has the memory.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device
    }

    /// Relabels memory that host and device both reach, for a consumer on the host.
    #[must_use]
    pub(crate) fn for_host(self) -> Self {
        let device = if self.device.is_host() { Device::CPU } else { self.device };
        Self { device, ..self }
    }

    /// Relabels memory that host and device both reach, for a consumer on its device.
    #[must_use]
    pub(crate) fn for_device(self) -> Self {
        let device = self.device.announced();
        Self { device, ..self }
    }

    /// Refuses host memory of the driver that no longer exists: it was freed with its context, or
    /// belongs to the process that this one was forked from.
    ///
    /// # Errors
    /// [`crate::Error::Device`].
    pub(crate) fn check_there(&self) -> Result<()> {
        if self.timeline.is_none() || self.layout.size() == 0 {
            return Ok(());
        }
        device_count()?;
        match locate(self.position()) {
            Ok(None) => Err(Error::Device(
                "host buffer: expected memory that CUDA has allocated, got an address that it no \
                 longer knows; the device's context was reset: make the storage anew"
                    .into(),
            )),
            _ => Ok(()), // a device that has failed leaves it alone
        }
    }

    /// True if the memory must not be written through this description.
    #[must_use]
    pub fn readonly(&self) -> bool {
        self.readonly
    }

    /// True if every element is aligned for typed access, also for size 0.
    #[must_use]
    pub fn is_aligned(&self) -> bool {
        self.layout.size() == 0 || self.position().is_multiple_of(self.dtype.alignment())
    }

    /// True if both describe the same elements in the same order.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        let address = self.layout.size() == 0 || self.position() == other.position();
        address && self.dtype == other.dtype && self.layout.places_like(&other.layout)
    }

    /// True if an element of one may share a byte with an element of the other.
    pub(crate) fn may_overlap(&self, other: &Self) -> bool {
        may_overlap(&self.layout, self.position(), &other.layout, other.position())
    }

    /// A further reference to what keeps the memory alive.
    pub(crate) fn owner(&self) -> Owner {
        self.owner.clone()
    }

    /// The number of tensors that hold the memory: views and exports are some.
    #[cfg(feature = "python")]
    pub(crate) fn holders(&self) -> usize {
        self.owner.count()
    }

    /// Keeps `companion` alive with the memory: the last reference drops it, before the memory.
    pub(crate) fn along_with(self, companion: impl Any + Send + Sync) -> Self {
        Self { owner: Owner::new((companion, self.owner)), ..self } // dropped in this order
    }

    /// Makes the memory read-only.
    #[must_use]
    pub fn into_readonly(self) -> Self {
        Self { readonly: true, ..self }
    }

    /// The same bytes read as another type of the same size. Copies nothing.
    ///
    /// # Errors
    /// [`crate::Error::Argument`] if the sizes differ.
    pub fn reinterpret(self, dtype: DType) -> Result<Self> {
        if dtype.itemsize() != self.dtype.itemsize() {
            return Err(Error::Argument(format!(
                "dtype: expected items of {} bytes, got {dtype}",
                self.dtype.itemsize()
            )));
        }
        Ok(Self { dtype, ..self })
    }

    /// A block of bytes without gaps as elements of another type in another layout. Copies nothing.
    ///
    /// # Errors
    /// [`crate::Error::Argument`] for memory with gaps, or with another number of bytes.
    pub(crate) fn retyped(self, dtype: DType, layout: Layout) -> Result<Self> {
        let (span, block) = (layout.span(), self.layout.nbytes());
        let inside = span.low == 0 && span.len() <= block && layout.nbytes() == block;
        if inside && self.layout.is_c_contiguous() && layout.itemsize() == dtype.itemsize() {
            return Ok(Self { dtype, layout, ..self });
        }
        Err(Error::Argument(format!(
            "bytes: expected {} of them without gaps, got {block} in shape {:?} with strides {:?}",
            layout.nbytes(),
            self.layout.shape(),
            self.layout.strides()
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

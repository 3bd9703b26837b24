//! A storage: memory and what is known of it as a field.

use std::sync::{Arc, PoisonError, RwLock};

use super::buffers::{Buffers, Residence};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::field::{Dims, Field, Halo};
use crate::layout::Extents;
use crate::managed::Managed;
use crate::sync::{Dirty, Mirrored, SyncState};

/// A field: memory with named dimensions, halo and alignment.
///
/// Cloning and viewing copy no element. The memory is freed, or given back to its producer, when
/// the last storage, view and export of it is gone.
///
/// # Example
///
/// ```
/// use dlfield::{DType, Field, Fill, Preset, Spec, Storage};
///
/// let field = Field { halo: Some([(3, 3), (3, 3), (0, 0)].into_iter().collect()), ..Field::default() };
/// let spec = Spec { preset: Some(Preset::from_name("gt:cpu_ifirst")?), field, ..Spec::default() };
/// let storage = Storage::allocate(&[70, 70, 40], DType::Float64, &spec, Fill::Zeros)?;
///
/// assert_eq!(storage.managed().layout().strides(), [1, 70, 4900]); // in elements: I is contiguous
/// assert_eq!(storage.domain_view()?.managed().layout().shape(), [64, 64, 40]);
/// # Ok::<(), dlfield::Error>(())
/// ```
#[derive(Debug)]
pub struct Storage {
    /// Never changes: consumers point into it.
    pub(super) buffers: Buffers,
    /// Replaced as a whole when the halo is set.
    pub(super) field: RwLock<Arc<Field>>,
}

impl Clone for Storage {
    fn clone(&self) -> Self {
        Self::new(self.buffers.clone(), self.field())
    }
}

impl Storage {
    pub(super) fn new(buffers: Buffers, field: Arc<Field>) -> Self {
        Self { buffers, field: RwLock::new(field) }
    }

    /// The memory as it is: that of the host if there is one, else that of the device. To read
    /// values, ask for [`Storage::host`] or [`Storage::device`].
    #[must_use]
    pub fn managed(&self) -> &Managed {
        self.buffers.managed()
    }

    /// The buffer of the host, up to date and with nothing in flight. May copy from the device, and
    /// wait.
    ///
    /// # Errors
    /// [`Error::NoBuffer`] if there is none, [`Error::Device`] if CUDA fails.
    pub fn host(&self) -> Result<&Managed> {
        if let Buffers::Mirrored(pair) | Buffers::HostOf(pair) = &self.buffers {
            pair.to_host(false)?;
        }
        let host = self.host_as_is().ok_or_else(|| {
            Error::NoBuffer(
                "expected a storage with a buffer on the host, got one on a GPU alone; copy it to \
                 the host, or have dlfield or CUDA keep both sides in step"
                    .into(),
            )
        })?;
        host.wait()?; // WAIT before the host reads or writes what a device may be working on
        host.check_there()?;
        Ok(host)
    }

    /// The buffer of the device, up to date once the work in flight on it is done. May copy from
    /// the host.
    ///
    /// # Errors
    /// As [`Storage::host`].
    pub fn device(&self) -> Result<&Managed> {
        if let Buffers::Mirrored(pair) | Buffers::DeviceOf(pair) = &self.buffers {
            pair.to_device(false)?;
        }
        self.device_as_is().ok_or_else(|| {
            Error::NoBuffer(
                "expected a storage with a buffer on a GPU, got one in host memory; make it on \
                 the GPU"
                    .into(),
            )
        })
    }

    /// The buffer with the newest values, as a copy would read it: the device's if both are new.
    /// Copies nothing, unless this is one side of a pair and the other side is newer.
    ///
    /// # Errors
    /// What CUDA refuses.
    pub fn newest(&self) -> Result<&Managed> {
        match &self.buffers {
            Buffers::HostOf(_) => self.host(),
            Buffers::DeviceOf(_) => self.device(),
            Buffers::Mirrored(pair) if self.is_device_newest() => Ok(pair.device()),
            buffers => Ok(buffers.managed()),
        }
    }

    /// The buffer of the host as it is, perhaps older than that of the device.
    #[must_use]
    pub fn host_as_is(&self) -> Option<&Managed> {
        self.buffers.host_as_is()
    }

    /// The buffer of the device as it is, perhaps older than that of the host.
    #[must_use]
    pub fn device_as_is(&self) -> Option<&Managed> {
        self.buffers.device_as_is()
    }

    /// The host's memory of a storage that has no other, if no work can be in flight on it.
    pub(crate) fn plain_host(&self) -> Option<&Managed> {
        match &self.buffers {
            Buffers::Host(one) if one.timeline().is_none() => Some(one),
            _ => None,
        }
    }

    /// True if the newest values are on the device, which counts then for a consumer that asks for
    /// no device; of a clean pair they are on both sides.
    pub(crate) fn is_device_newest(&self) -> bool {
        match &self.buffers {
            Buffers::Host(_) | Buffers::HostOf(_) => false,
            Buffers::Device(_) | Buffers::DeviceOf(_) | Buffers::Unified(_) => true,
            Buffers::Mirrored(pair) => pair.state().dirty() != Dirty::Host,
        }
    }

    /// The device that exports announce: that of the buffer with the newest values.
    #[must_use]
    pub fn announced(&self) -> Device {
        let device = self.device_as_is().filter(|_| self.is_device_newest());
        device.unwrap_or(self.managed()).device().announced()
    }

    /// Copies the host's buffer to the device if it is newer, or in any case with `force`, and
    /// waits for it. Storages with one buffer wait for the work that is in flight on it.
    ///
    /// # Errors
    /// What CUDA refuses.
    pub fn host_to_device(&self, force: bool) -> Result<()> {
        match &self.buffers {
            Buffers::Mirrored(pair) | Buffers::DeviceOf(pair) => {
                pair.to_device(force)?;
                pair.device().wait() // WAIT since the caller's stream is not known
            }
            buffers => buffers.managed().wait(), // WAIT since the caller's stream is not known
        }
    }

    /// Copies the host's buffer to the device if it is newer, before other work that is in order
    /// with the device's buffer. The host does not wait for the device.
    ///
    /// # Errors
    /// What CUDA refuses.
    pub(crate) fn host_to_device_in_order(&self) -> Result<()> {
        match &self.buffers {
            Buffers::Mirrored(pair) | Buffers::DeviceOf(pair) => pair.to_device(false),
            _ => Ok(()),
        }
    }

    /// Copies the device's buffer to the host if it is newer, or in any case with `force`, and
    /// waits for it. Storages with one buffer wait for the work that is in flight on it.
    ///
    /// # Errors
    /// What CUDA refuses.
    pub fn device_to_host(&self, force: bool) -> Result<()> {
        match &self.buffers {
            Buffers::Mirrored(pair) | Buffers::HostOf(pair) => {
                pair.to_host(force)?;
                pair.host().wait() // WAIT before the host reads
            }
            buffers => buffers.managed().wait(), // WAIT since the caller's stream is not known
        }
    }

    /// Which buffers there are.
    #[must_use]
    pub fn residence(&self) -> Residence {
        self.buffers.residence()
    }

    /// True for memory managed by CUDA.
    pub(crate) fn is_unified(&self) -> bool {
        matches!(self.residence(), Residence::Unified(_))
    }

    /// Marks one buffer of a pair as written. Other storages have nothing to mark.
    pub fn set_dirty(&self, dirty: Dirty) {
        if let Some(state) = self.sync_state() {
            state.set(dirty);
        }
    }

    /// The state that all views of a pair of buffers share.
    #[must_use]
    pub fn sync_state(&self) -> Option<&Arc<SyncState>> {
        self.buffers.pair().map(Mirrored::state)
    }

    /// Extents of the dimensions, in elements.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        self.managed().layout().shape()
    }

    /// Type of an element.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.managed().dtype()
    }

    /// Names of the dimensions; `None` if they have none.
    #[must_use]
    pub fn dims(&self) -> Option<Dims> {
        self.field().dims.clone()
    }

    /// Points at the lower and upper end of each dimension that lie outside the domain; `None` if
    /// that is unknown.
    #[must_use]
    pub fn halo(&self) -> Option<Halo> {
        self.field().halo.clone()
    }

    /// Names, halo and alignment, as they are now.
    #[must_use]
    pub fn field(&self) -> Arc<Field> {
        Arc::clone(&self.field.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Rank of each dimension in memory, 0 = the largest stride (GDP-3 "layout"): as requested,
    /// unless the strides contradict it.
    #[must_use]
    pub fn ranks(&self) -> Extents {
        self.managed().layout().ranks(self.field().order.as_deref().unwrap_or_default())
    }

    /// Refuses a storage that must not be written.
    ///
    /// # Errors
    /// [`Error::Buffer`].
    pub fn check_writable(&self) -> Result<()> {
        if !self.managed().readonly() {
            return Ok(());
        }
        Err(Error::Buffer(
            "expected a writable storage, got a read-only one; write into a copy()".into(),
        ))
    }
}

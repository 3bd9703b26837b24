//! Storages to and from raw DLPack tensors, for those who have no Python between them.

use std::ptr::NonNull;

use dlpark::ffi::DLManagedTensorVersioned;

use super::to_versioned;
use crate::error::Result;
use crate::managed::Imported;
use crate::storage::{Residence, Spec, Storage};

impl Storage {
    /// A versioned DLPack tensor over the memory: the host's where there is one, up to date, else the device's with
    /// nothing in flight. Copies no element. Names and halo have no place in it.
    ///
    /// Its deleter gives the memory up; dropped, or once somebody has called it.
    ///
    /// # Errors
    /// [`crate::Error::Buffer`] for negative strides, [`crate::Error::Device`] where CUDA fails.
    ///
    /// # Example
    ///
    /// ```
    /// use std::ptr::NonNull;
    ///
    /// use dlfield::Storage;
    ///
    /// let field = Storage::builder([4, 3]).full(1.5_f32)?;
    /// let raw = NonNull::new(field.to_dlpack()?.into_raw()).unwrap(); // for a function of C
    ///
    /// // SAFETY: a tensor that nobody else owns.
    /// let back = unsafe { Storage::from_dlpack(raw) }?;
    /// assert_eq!(back.managed().address(), field.managed().address());
    /// # Ok::<(), dlfield::Error>(())
    /// ```
    pub fn to_dlpack(&self) -> Result<dlpark::Managed<DLManagedTensorVersioned>> {
        let memory = match self.residence() {
            Residence::Device(_) => {
                let memory = self.on_device()?;
                memory.wait()?; // WAIT of the host: there is no stream that could wait
                memory
            }
            _ => self.on_host()?,
        };
        if let Some(timeline) = memory.timeline() {
            timeline.hand_out(); // others may work on it where nobody is told
        }
        to_versioned(&memory, false)
    }

    /// A storage over a raw DLPack tensor, whose deleter is called when the last view of it is gone, or now
    /// where it is refused. Copies no element.
    ///
    /// # Errors
    /// [`crate::Error::Buffer`] that names the first claim of the tensor that cannot hold.
    ///
    /// # Safety
    /// As [`Imported::from_versioned`]; nothing is in flight on memory of a device.
    pub unsafe fn from_dlpack(tensor: NonNull<DLManagedTensorVersioned>) -> Result<Self> {
        // SAFETY: the caller's promise.
        let memory = unsafe { Imported::from_versioned(tensor) }.validate()?;
        let near = Residence::of(memory.device());
        Self::wrap(memory, &Spec { near, ..Spec::default() })
    }
}

//! Storages to and from raw DLPack tensors, without Python.

use std::ptr::NonNull;

use dlpark::ffi::DLManagedTensorVersioned;

use super::tensor::to_versioned;
use crate::error::Result;
use crate::managed::Untrusted;
use crate::storage::{Residence, Spec, Storage};

impl Storage {
    /// A versioned DLPack tensor over the memory: the host's, up to date, if there is one, else the
    /// device's with no work in flight. Copies no element. The tensor has neither names nor halo.
    ///
    /// The memory is released by its deleter, which a drop calls.
    ///
    /// # Errors
    /// [`crate::Error::Buffer`] for negative strides, [`crate::Error::Device`] if CUDA fails.
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
    /// // SAFETY: into_raw above gave up the only reference.
    /// let back = unsafe { Storage::from_dlpack(raw) }?;
    /// assert_eq!(back.managed().address(), field.managed().address());
    /// # Ok::<(), dlfield::Error>(())
    /// ```
    pub fn to_dlpack(&self) -> Result<dlpark::Managed<DLManagedTensorVersioned>> {
        let memory = match self.residence() {
            Residence::Device(_) => self.device()?,
            _ => self.host()?,
        };
        memory.wait()?; // WAIT of the host: there is no consumer's stream that could wait
        to_versioned(memory, false)
    }

    /// A storage over a raw DLPack tensor. Its deleter is called when the last view is gone, or now
    /// if the tensor is refused. Copies no element.
    ///
    /// # Errors
    /// [`crate::Error::Buffer`] that names the first claim of the tensor that cannot hold.
    ///
    /// # Safety
    /// As [`Untrusted::from_versioned`]; no work is in flight on memory of a device.
    pub unsafe fn from_dlpack(tensor: NonNull<DLManagedTensorVersioned>) -> Result<Self> {
        // SAFETY: the caller gives a tensor that from_versioned takes.
        let memory = unsafe { Untrusted::from_versioned(tensor) }.validate()?;
        let default_residence = Residence::for_memory_on(memory.device());
        Self::wrap(memory, &Spec { default_residence, ..Spec::default() })
    }
}

//! An owned DLPack tensor of which nothing has been read. Its deleter runs exactly once, whatever
//! else the producer claims.
//!
//! Two promises of a producer are trusted: the pointer points to a managed tensor of the kind that
//! the protocol names, and its deleter may be called once, from any thread. Both structs keep the
//! fields up to the deleter in place forever (dlpack.h, `DLManagedTensor` and
//! `DLManagedTensorVersioned`), so a tensor of an unknown major version can be released too.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use dlpark::DlpackFlags;
use dlpark::ffi::{
    DLManagedTensor, DLManagedTensorVersioned, DLPACK_MAJOR_VERSION, DLPackVersion, DLTensor,
};

use crate::error::{Error, Result};

/// The fields that every major version of the versioned struct begins with.
#[repr(C)]
#[derive(Clone, Copy)]
struct Header {
    version: DLPackVersion,
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
}

/// A tensor from outside, with unchecked claims. Dropping it releases the producer's memory.
///
/// [`Untrusted::validate`] checks the claims and gives a [`crate::Managed`].
#[must_use = "dropping a tensor releases the producer's memory"]
#[derive(Debug)]
pub struct Untrusted(RawTensor);

#[derive(Debug)]
enum RawTensor {
    Versioned(NonNull<DLManagedTensorVersioned>),
    Legacy(NonNull<DLManagedTensor>),
}

// SAFETY: DLPack lets a deleter run on any thread (python_spec.rst, "the deleter"), and nothing
// else is done with the pointer but reading the constant descriptor.
unsafe impl Send for Untrusted {}
// SAFETY: shared access only reads the constant descriptor.
unsafe impl Sync for Untrusted {}

impl Untrusted {
    /// Takes ownership of a versioned DLPack tensor and reads nothing of it.
    ///
    /// # Safety
    /// `tensor` points to a `DLManagedTensorVersioned` (of any version) that the caller owns, whose
    /// deleter may be called once from any thread. If the major version is 1, shape and strides
    /// point to `ndim` numbers, or are caught by the checks of [`Untrusted::validate`], and the
    /// elements stay valid until the deleter is called.
    pub unsafe fn from_versioned(tensor: NonNull<DLManagedTensorVersioned>) -> Self {
        Self(RawTensor::Versioned(tensor))
    }

    /// Takes ownership of a legacy DLPack tensor and reads nothing of it.
    ///
    /// # Safety
    /// As [`Untrusted::from_versioned`], for a `DLManagedTensor`.
    pub unsafe fn from_legacy(tensor: NonNull<DLManagedTensor>) -> Self {
        Self(RawTensor::Legacy(tensor))
    }

    /// Reads the descriptor, and whether the producer forbids writing. Those of a versioned tensor
    /// are read only after its major version is known.
    pub(super) fn descriptor(&self) -> Result<(DLTensor, bool)> {
        match self.0 {
            RawTensor::Legacy(tensor) => {
                // SAFETY: from_legacy demands a legacy managed tensor, which is owned here.
                let managed = unsafe { tensor.read() };
                Ok((managed.dl_tensor, false))
            }
            RawTensor::Versioned(tensor) => {
                check_version(header(tensor).version)?;
                // SAFETY: from_versioned demands a versioned managed tensor, which is owned here;
                // its major version is ours, so the whole struct is there.
                let managed = unsafe { tensor.read() };
                Ok((managed.dl_tensor, managed.flags.contains(DlpackFlags::READ_ONLY)))
            }
        }
    }

    /// Leaves the tensor to its previous owner: nothing is released.
    pub(super) fn leave(self) {
        let _not_dropped = ManuallyDrop::new(self);
    }
}

fn header(tensor: NonNull<DLManagedTensorVersioned>) -> Header {
    // SAFETY: every major version begins with these fields (dlpack.h), and from_versioned demands
    // a pointer to such a struct, which is owned here.
    unsafe { tensor.cast::<Header>().read() }
}

fn check_version(version: DLPackVersion) -> Result<()> {
    if version.major == DLPACK_MAJOR_VERSION {
        return Ok(());
    }
    Err(Error::Buffer(format!(
        "DLPack version: expected major version {DLPACK_MAJOR_VERSION}, got {}.{}; ask the \
         producer for max_version=(1, 0)",
        version.major, version.minor
    )))
}

impl Drop for Untrusted {
    fn drop(&mut self) {
        match self.0 {
            RawTensor::Versioned(tensor) => {
                if let Some(deleter) = header(tensor).deleter {
                    // SAFETY: the tensor is owned here, so this is the one call; the producer
                    // promises that its deleter takes the tensor it belongs to, on any thread.
                    unsafe { deleter(tensor.as_ptr()) };
                }
            }
            RawTensor::Legacy(tensor) => {
                // SAFETY: from_legacy demands a legacy managed tensor, which is owned here.
                let deleter = unsafe { tensor.read() }.deleter;
                if let Some(deleter) = deleter {
                    // SAFETY: as for the versioned deleter: one call, of the tensor's own deleter.
                    unsafe { deleter(tensor.as_ptr()) };
                }
            }
        }
    }
}

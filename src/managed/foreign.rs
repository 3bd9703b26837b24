//! Ownership of a foreign DLPack tensor: its deleter runs exactly once, whatever else it says.
//!
//! Only two things are believed of a producer: that the pointer points to a managed tensor of the
//! kind that the door says, and that its deleter may be called once, from any thread. Both
//! structs keep the fields up to the deleter in place for ever (dlpack.h, `DLManagedTensor` and
//! `DLManagedTensorVersioned`), so a tensor of an unknown major version can be released too.

use std::ffi::c_void;
use std::ptr::NonNull;

use dlpark::DlpackFlags;
use dlpark::ffi::{
    DLManagedTensor, DLManagedTensorVersioned, DLPACK_MAJOR_VERSION, DLPackVersion, DLTensor,
};

use crate::error::{Error, Result};

/// What never changes between major versions of the versioned struct.
#[repr(C)]
#[derive(Clone, Copy)]
struct Header {
    version: DLPackVersion,
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
}

/// An owned DLPack tensor of which nothing has been read.
#[derive(Debug)]
pub(super) enum Foreign {
    Versioned(NonNull<DLManagedTensorVersioned>),
    Legacy(NonNull<DLManagedTensor>),
}

// SAFETY: DLPack lets a deleter run on any thread (python_spec.rst, "the deleter"), and nothing
// else is done with the pointer but reading the constant descriptor.
unsafe impl Send for Foreign {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Foreign {}

/// A copy of the descriptor, and whether the producer forbids writing.
pub(super) struct Claim {
    pub(super) tensor: DLTensor,
    pub(super) readonly: bool,
}

impl Foreign {
    /// Reads the descriptor; of a versioned tensor only after its major version is known.
    pub(super) fn claim(&self) -> Result<Claim> {
        match self {
            Self::Legacy(managed) => {
                // SAFETY: the door established that this is a legacy managed tensor, owned here.
                let managed = unsafe { managed.read() };
                Ok(Claim { tensor: managed.dl_tensor, readonly: false })
            }
            Self::Versioned(managed) => {
                check_version(header(*managed).version)?;
                // SAFETY: the door established that this is a versioned managed tensor; its major
                // version is ours, so that the whole struct is there.
                let managed = unsafe { managed.read() };
                let readonly = managed.flags.contains(DlpackFlags::READ_ONLY);
                Ok(Claim { tensor: managed.dl_tensor, readonly })
            }
        }
    }
}

fn header(managed: NonNull<DLManagedTensorVersioned>) -> Header {
    // SAFETY: every major version starts with these fields (dlpack.h promises it), and the door
    // established that the pointer is to such a struct, owned here.
    unsafe { managed.cast::<Header>().read() }
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

impl Drop for Foreign {
    fn drop(&mut self) {
        match self {
            Self::Versioned(managed) => {
                if let Some(deleter) = header(*managed).deleter {
                    // SAFETY: owned here, so this is the one call; the producer promises that its
                    // deleter takes the tensor it belongs to, on any thread.
                    unsafe { deleter(managed.as_ptr()) };
                }
            }
            Self::Legacy(managed) => {
                // SAFETY: the door established that this is a legacy managed tensor, owned here.
                let deleter = unsafe { managed.read() }.deleter;
                if let Some(deleter) = deleter {
                    // SAFETY: as for the versioned deleter.
                    unsafe { deleter(managed.as_ptr()) };
                }
            }
        }
    }
}

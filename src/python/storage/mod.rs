//! The classes: `Storage` with the attributes of every storage, its kinds with the doors of their
//! memory. A door that only some memory can serve lives on the classes that have it, so that
//! `hasattr` is right.
//!
//! ```text
//! class ── sides ──▶ key, assign, pickle, transpose ──▶ attributes (Storage)
//!   └──── doors (the classes of each kind of memory) ──▶ exchange (Storage)
//! ```

mod class;
mod sides;
mod key;
mod assign;
mod pickle;
mod transpose;
mod attributes;
mod doors;
mod exchange;
#[cfg(feature = "arrow")]
mod arrow;

pub(crate) use class::{
    CpuStorage, CudaManagedGpuStorage, GpuStorage, HostBacked, PyStorage,
    SoftwareManagedGpuStorage, copy_with, introduce, references,
};
pub(crate) use pickle::rebuild_storage;
pub(crate) use sides::{OTHER_LIBRARIES, converted, cupy_module, cupy_to_read};

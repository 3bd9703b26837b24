//! The classes: `Storage` with the attributes of every storage, its kinds with the doors of their
//! memory. A door that only some memory can serve lives on the classes that have it, so that
//! `hasattr` is right.
//!
//! ```text
//! class ── sides ──▶ key, assign, pickle, transpose ──▶ attributes, memory (Storage)
//!   └──── doors ──▶ exchange (Storage), kinds (the classes of each kind of memory)
//! ```

mod class;
mod sides;
mod key;
mod assign;
mod pickle;
mod transpose;
mod attributes;
mod memory;
mod doors;
mod exchange;
#[cfg(feature = "arrow")]
mod arrow;
mod kinds;

pub(super) use class::{
    CpuStorage, CudaManagedGpuStorage, GpuStorage, HostBacked, PyStorage,
    SoftwareManagedGpuStorage, copy_with, introduce,
};
pub(super) use pickle::rebuild_storage;
pub(super) use sides::{converted, cupy_module, cupy_to_read};

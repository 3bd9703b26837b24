//! The classes: `Storage` with what every storage knows, its kinds with the doors of their memory. A
//! door that only some memory can serve lives on the classes that have it, so that `hasattr` tells the
//! truth.
//!
//! ```text
//! class ── source, sides ──▶ key, assign, pickle, transpose ──▶ attributes (Storage)
//!   └──── doors ──▶ exchange (Storage), host (CPUStorage), device (the classes for GPUs)
//! ```

mod class;
mod source;
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
mod host;
mod device;

use pyo3::prelude::*;

pub(super) use class::{CpuStorage, PyStorage, copy_with};
pub(super) use source::{Held, Source, arrival};

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStorage>()?;
    module.add_class::<class::HostBacked>()?;
    module.add_class::<CpuStorage>()?;
    module.add_class::<class::GpuStorage>()?;
    module.add_class::<class::SoftwareManagedGpuStorage>()?;
    module.add_class::<class::CudaManagedGpuStorage>()?;
    pickle::register(module)
}

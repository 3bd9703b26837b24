//! The classes: `Storage` with what every storage knows, `CPUStorage` with the doors of host
//! memory. Doors live on the class that can serve them, so that `hasattr` tells the truth.
//!
//! ```text
//! class ── source ──▶ key, assign, pickle, transpose ──▶ attributes (Storage), host (CPUStorage)
//! ```

mod class;
mod source;
mod key;
mod assign;
mod pickle;
mod transpose;
mod attributes;
mod host;

use pyo3::prelude::*;

pub(super) use class::{CpuStorage, PyStorage, copy_with};
pub(super) use source::{Source, arrival};

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStorage>()?;
    module.add_class::<CpuStorage>()?;
    module.add_class::<class::GpuStorage>()?;
    module.add_class::<class::SoftwareManagedGpuStorage>()?;
    module.add_class::<class::CudaManagedGpuStorage>()?;
    pickle::register(module)
}

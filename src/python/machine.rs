//! What the extension was built with, and what it finds on this machine: the facts of
//! `dlfield.show_versions` that only Rust knows.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::Error;
use crate::{copy, cuda};

type Device = (String, usize, (i32, i32));

/// Return the features of the crate that this build has, in the order of Cargo.toml.
#[pyfunction]
pub(crate) fn build_features(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    let features = [
        ("python", cfg!(feature = "python")),
        ("cuda", cfg!(feature = "cuda")),
        ("arrow", cfg!(feature = "arrow")),
        ("ndarray", cfg!(feature = "ndarray")),
    ];
    let built: Vec<_> = features.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    PyTuple::new(py, built)
}

/// Name the processor's registers that copies use: avx512, avx2, sse2, neon or plain.
#[pyfunction]
pub(crate) fn copy_registers() -> &'static str {
    copy::registers()
}

/// Ask the CUDA driver for its version and devices. Starts the driver.
///
/// Returns
/// -------
/// tuple
///     The newest version of CUDA that the driver has, and for each device its name, memory in bytes
///     and compute capability.
///
/// Raises
/// ------
/// DeviceUnavailable
///     Without a driver or a device, or with a driver that is too old.
#[pyfunction]
pub(crate) fn cuda_driver(py: Python<'_>) -> PyResult<((i32, i32), Vec<Device>)> {
    let found = py.detach(|| {
        let device = |ordinal| {
            let found = cuda::properties(ordinal)?;
            Ok((found.name, found.bytes, found.compute_capability))
        };
        let devices = (0..cuda::device_count()?).map(device).collect::<Result<_, Error>>()?;
        Ok::<_, Error>((cuda::version()?, devices))
    })?;
    Ok(found)
}

//! The two sides of a storage from Python: arrays of the host for reading, arrays of the device.

use pyo3::exceptions::PyBufferError;
use pyo3::intern;
use pyo3::prelude::*;

use super::class::{PyStorage, copy_with};
use crate::dtype::DType;
use crate::interpreter::Inside;
use crate::managed::Managed;
use crate::protocol::{Request, import};
use crate::python::library::missing;
use crate::python::numpy::{array_over, dtype_to};
use crate::storage::{Spec, Storage};

/// Memory that the host can read: the same, or a copy of memory on a device.
pub(super) fn on_host(py: Python<'_>, memory: &Managed) -> PyResult<Managed> {
    if memory.device().is_host() {
        py.detach(|| memory.wait())?; // WAIT before the host reads
        return Ok(memory.clone());
    }
    Ok(copy_with(py, memory, &Spec::default())?.managed().clone())
}

/// The values in another type, in the same order of axes, converted by NumPy's rules.
pub(crate) fn converted(py: Python<'_>, managed: &Managed, dtype: DType) -> PyResult<Managed> {
    let host = on_host(py, managed)?; // NumPy converts on the host alone
    let array = array_over(py, &host, true)?.call_method1("astype", (dtype_to(py, dtype)?,))?;
    Ok(import(&array, Request::SHARED)?.memory)
}

/// A NumPy array of the values, for reading once: over the buffer of the host, or over a copy.
pub(super) fn numpy_of<'py>(py: Python<'py>, storage: &Storage) -> PyResult<Bound<'py, PyAny>> {
    if let Some(host) = storage.plain_host() {
        return array_over(py, host, true);
    }
    array_over(py, &py.detach(|| storage.values_on_host())?, true)
}

/// The device's buffer alone, up to date, as a storage that speaks the protocols of devices.
pub(super) fn device_side(slf: &Bound<'_, PyStorage>, what: &str) -> PyResult<Py<PyStorage>> {
    let (py, object) = (slf.py(), slf.get());
    let side = py.detach(|| object.storage().device_side().map_err(|error| error.about(what)))?;
    object.view(py, side)
}

/// A CuPy array over the device's buffer.
pub(super) fn cupy<'py>(slf: &Bound<'py, PyStorage>, what: &str) -> PyResult<Bound<'py, PyAny>> {
    if slf.get().storage().managed().readonly() {
        slf.get().device(slf.py(), what)?; // a missing buffer takes precedence over read-only
        return Err(PyBufferError::new_err(format!(
            "{what}: expected a writable storage, got a read-only one, which CuPy would write; use \
             copy()"
        )));
    }
    cupy_to_read(slf, what)
}

/// As `cupy`, for a caller that does not write the array.
pub(crate) fn cupy_to_read<'py>(
    slf: &Bound<'py, PyStorage>,
    what: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    let _inside = Inside::enter(py);
    let side = device_side(slf, what)?;
    let cupy = cupy_module(py, what, OTHER_LIBRARIES)?;
    // Only the CUDA array interface can express negative strides, and memory that is read-only.
    let memory = slf.get().storage().managed();
    let reversed = memory.layout().strides().iter().any(|&stride| stride < 0);
    let by_interface = reversed || memory.readonly();
    let take = if by_interface { intern!(py, "asarray") } else { intern!(py, "from_dlpack") };
    cupy.call_method1(take, (side,))
}

/// The way out for exchange without CuPy.
pub(crate) const OTHER_LIBRARIES: &str =
    "pass the storage itself to a library that takes DLPack or __cuda_array_interface__";

/// Imports CuPy for `what`, which without it can be done by `way_out`.
pub(crate) fn cupy_module<'py>(
    py: Python<'py>,
    what: &str,
    way_out: &str,
) -> PyResult<Bound<'py, PyModule>> {
    let way_out = format!("pip install cupy-cuda12x, or {way_out}");
    py.import(intern!(py, "cupy")).map_err(|error| missing(error, py, what, "CuPy", &way_out))
}

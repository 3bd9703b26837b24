//! Handing a field to JAX. JAX asks for the legacy DLPack capsule, which cannot say that memory
//! is read-only; since JAX never writes, it gets one all the same. JAX copies silently where it
//! cannot share (misaligned, or 64-bit types while x64 is off), so that is asked first.

use pyo3::exceptions::PyBufferError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::numpy::{array_over, dtype_to};
use crate::alloc::HOST_ALIGNMENT;
use crate::device::Device;
use crate::managed::Managed;
use crate::protocol::dlpack;

/// Speaks the part of DLPack that JAX asks for.
#[pyclass(frozen, module = "dlfield._core")]
struct ForJax(Managed);

#[pymethods]
impl ForJax {
    fn __dlpack_device__(&self) -> (i64, i32) {
        let device = self.0.device().announced();
        (device.code(), device.ordinal)
    }

    #[pyo3(signature = (*, stream = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let device = self.0.device().announced();
        let request =
            dlpack::ExportRequest { stream, max_version: None, dl_device: None, copy: None };
        let answer = request.check(device, Some(device))?;
        dlpack::legacy_for_reader(py, &self.0, answer)
    }
}

/// A JAX array over the memory, or with `copy=True` over a copy that JAX makes.
///
/// # Errors
/// `BufferError` where JAX could not share the memory; `ImportError` without JAX.
pub(super) fn to_jax<'py>(
    py: Python<'py>,
    managed: &Managed,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let jax = py.import(intern!(py, "jax"))?;
    check_wide_types(&jax, managed)?;
    if copy == Some(true) && managed.device().announced() == Device::CPU {
        let array =
            jax.getattr("numpy")?.call_method1("array", (array_over(py, managed, true)?,))?;
        return check_dtype(array, managed);
    }
    check_layout(managed)?;
    let door = Bound::new(py, ForJax(managed.clone()))?;
    let keywords = pyo3::types::PyDict::new(py);
    keywords.set_item("copy", false)?;
    let array = py.import("jax.dlpack")?.call_method("from_dlpack", (door,), Some(&keywords))?;
    let array = check_address(check_dtype(array, managed)?, managed)?;
    if copy == Some(true) { array.call_method0("copy") } else { Ok(array) }
}

/// JAX narrows 64-bit types silently unless it is told to keep them.
fn check_wide_types(jax: &Bound<'_, PyModule>, managed: &Managed) -> PyResult<()> {
    let wide = ["float64", "int64", "uint64", "complex128"].contains(&managed.dtype().name());
    if !wide || jax.getattr("config")?.getattr("jax_enable_x64")?.is_truthy()? {
        return Ok(());
    }
    Err(PyBufferError::new_err(format!(
        "to_jax: expected JAX with 64-bit types for {}, got jax_enable_x64=False, which would convert the values; \
         call jax.config.update('jax_enable_x64', True) first",
        managed.dtype()
    )))
}

fn check_layout(managed: &Managed) -> PyResult<()> {
    if !managed.layout().is_dense() {
        return Err(PyBufferError::new_err(format!(
            "to_jax: expected memory without gaps in some order of the axes, got shape {:?} with strides of {:?} \
             elements; pass copy=True",
            managed.layout().shape(),
            managed.layout().strides()
        )));
    }
    if managed.layout().size() > 0 && !managed.address().is_multiple_of(HOST_ALIGNMENT) {
        return Err(PyBufferError::new_err(format!(
            "to_jax: expected the first element on a boundary of {HOST_ALIGNMENT} bytes, got address {:#x}; pass copy=True",
            managed.address()
        )));
    }
    Ok(())
}

fn check_dtype<'py>(array: Bound<'py, PyAny>, managed: &Managed) -> PyResult<Bound<'py, PyAny>> {
    if array.getattr("dtype")?.eq(dtype_to(array.py(), managed.dtype())?)? {
        return Ok(array);
    }
    Err(PyBufferError::new_err(format!(
        "to_jax: expected {} to stay, got {}",
        managed.dtype(),
        array.getattr("dtype")?
    )))
}

/// What JAX's own word for "no copy" is worth is measured, not believed.
fn check_address<'py>(array: Bound<'py, PyAny>, managed: &Managed) -> PyResult<Bound<'py, PyAny>> {
    let shared = managed.layout().size() == 0
        || array.call_method0("unsafe_buffer_pointer")?.extract::<usize>()? == managed.address();
    if shared {
        return Ok(array);
    }
    Err(PyBufferError::new_err(
        "to_jax: expected JAX to share the memory, got a copy of it; pass copy=True to allow that",
    ))
}

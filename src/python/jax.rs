//! Exports to JAX. JAX asks for the legacy DLPack capsule, which cannot say that memory is
//! read-only; it gets one nevertheless, since it never writes. JAX copies silently what it cannot
//! share (misaligned memory, and 64-bit types while x64 is off), so this is checked first.

use pyo3::exceptions::PyBufferError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyCapsule};

use super::library::missing;
use super::numpy::{array_over, dtype_to};
use crate::alloc::HOST_ALIGNMENT;
use crate::device::Device;
use crate::interpreter::Inside;
use crate::managed::Managed;
use crate::protocol::dlpack;

/// The part of DLPack that JAX asks for.
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

/// Makes a JAX array over the memory, or with `copy=True` over a copy that JAX makes.
///
/// # Errors
/// `BufferError` if JAX cannot share the memory, `ImportError` without JAX.
pub(super) fn to_jax<'py>(
    py: Python<'py>,
    managed: &Managed,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let _inside = Inside::enter(py);
    let jax = py.import(intern!(py, "jax")).map_err(|error| {
        missing(error, py, "to_jax", "JAX", "pip install jax, or use to_numpy()")
    })?;
    check_wide_types(&jax, managed)?;
    if copy == Some(true) && managed.device().announced() == Device::CPU {
        let array =
            jax.getattr("numpy")?.call_method1("array", (array_over(py, managed, true)?,))?;
        return check_dtype(array, managed);
    }
    check_layout(managed)?;
    check_order(&jax, managed)?;
    let door = Bound::new(py, ForJax(managed.clone()))?;
    let keywords = [("copy", false)].into_py_dict(py)?;
    let array = py.import("jax.dlpack")?.call_method("from_dlpack", (door,), Some(&keywords))?;
    let array = check_address(check_dtype(array, managed)?, managed)?;
    if copy == Some(true) { array.call_method0("copy") } else { Ok(array) }
}

/// Refuses 64-bit types while JAX is set to narrow them, which it does silently.
fn check_wide_types(jax: &Bound<'_, PyModule>, managed: &Managed) -> PyResult<()> {
    let wide = ["float64", "int64", "uint64", "complex128"].contains(&managed.dtype().name());
    if !wide || jax.getattr("config")?.getattr("jax_enable_x64")?.is_truthy()? {
        return Ok(());
    }
    Err(PyBufferError::new_err(format!(
        "to_jax: expected JAX with 64-bit types for {}, got jax_enable_x64=False, which would \
         convert the values; call jax.config.update('jax_enable_x64', True) first",
        managed.dtype()
    )))
}

fn check_layout(managed: &Managed) -> PyResult<()> {
    let (layout, address) = (managed.layout(), managed.position());
    if !layout.is_dense() {
        return Err(PyBufferError::new_err(format!(
            "to_jax: expected memory without gaps in some order of the axes, got shape {:?} with \
             strides of {:?} elements; pass copy=True",
            layout.shape(),
            layout.strides()
        )));
    }
    if layout.size() == 0 || address.is_multiple_of(HOST_ALIGNMENT) {
        return Ok(());
    }
    Err(PyBufferError::new_err(format!(
        "to_jax: expected the first element on a boundary of {HOST_ALIGNMENT} bytes, got address \
         {address:#x}; pass copy=True"
    )))
}

/// Refuses axes in another order than C before JAX 0.8. Versions 0.6.1 to 0.7.1 share such memory
/// and read it in C order; others fail while they take it or compute with it.
fn check_order(jax: &Bound<'_, PyModule>, managed: &Managed) -> PyResult<()> {
    if managed.layout().is_c_contiguous() || jax.getattr("__version_info__")?.ge((0, 8))? {
        return Ok(());
    }
    Err(PyBufferError::new_err(format!(
        "to_jax: expected JAX 0.8 or newer for axes in another order than C, got JAX {}, which may \
         read them in C order; update JAX, or pass copy=True for memory of the host",
        jax.getattr("__version__")?
    )))
}

fn check_dtype<'py>(array: Bound<'py, PyAny>, managed: &Managed) -> PyResult<Bound<'py, PyAny>> {
    let (own, got) = (managed.dtype(), array.getattr("dtype")?);
    if got.eq(dtype_to(array.py(), own)?)? {
        return Ok(array);
    }
    Err(PyBufferError::new_err(format!("to_jax: expected {own} to stay, got {got}")))
}

/// Refuses a copy that JAX has made against its own `copy=False`.
fn check_address<'py>(array: Bound<'py, PyAny>, managed: &Managed) -> PyResult<Bound<'py, PyAny>> {
    let shared = managed.layout().size() == 0
        || array.call_method0("unsafe_buffer_pointer")?.extract::<usize>()? == managed.position();
    if shared {
        return Ok(array);
    }
    Err(PyBufferError::new_err(
        "to_jax: expected JAX to share the memory, got a copy of it; pass copy=True to allow that",
    ))
}

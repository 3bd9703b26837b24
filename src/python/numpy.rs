//! NumPy at the border: dtypes in both directions, and arrays over a field's memory. NumPy is
//! imported when it is first needed, `ml_dtypes` only for types that NumPy lacks.

use pyo3::exceptions::PyImportError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

use crate::dtype::DType;
use crate::error::Error;
use crate::managed::Managed;
use crate::protocol::buffer::ByteView;

/// Reads anything that `np.dtype(...)` takes, and the names of `ml_dtypes` without it.
///
/// # Errors
/// `ValueError` for a type that no storage can hold; NumPy's `TypeError` for no type at all.
pub(super) fn dtype_from(obj: &Bound<'_, PyAny>) -> PyResult<DType> {
    let py = obj.py();
    if let Some(known) = obj.cast::<PyString>().ok().and_then(|name| by_name(name)) {
        return Ok(known);
    }
    let dtype = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "dtype"), (obj,))?;
    if !dtype.getattr(intern!(py, "names"))?.is_none() {
        let text = format!(
            "dtype: expected one type of numbers, got a type with fields, {dtype}; make a storage for each field"
        );
        return Err(Error::Argument(text).into());
    }
    let name = dtype.getattr(intern!(py, "name"))?.cast_into::<PyString>()?;
    if !dtype.getattr(intern!(py, "isnative"))?.is_truthy()? {
        let text = format!(
            "dtype: expected native byte order, got {}; use newbyteorder('=')",
            dtype.repr()?
        );
        return Err(Error::Argument(text).into());
    }
    // What is no name of a type of ours is shown as NumPy writes it.
    DType::from_name(&name.to_cow()?).or_else(|_| Ok(DType::from_name(&dtype.to_string())?))
}

/// As `dtype_from`, for types whose items are arrays: the type of an element, and the extents of an
/// item.
///
/// # Errors
/// As `dtype_from`.
pub(super) fn dtype_and_extents(obj: &Bound<'_, PyAny>) -> PyResult<(DType, Vec<i64>)> {
    let py = obj.py();
    if let Some(known) = obj.cast::<PyString>().ok().and_then(|name| by_name(name)) {
        return Ok((known, Vec::new()));
    }
    let dtype = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "dtype"), (obj,))?;
    let base = dtype.getattr(intern!(py, "base"))?;
    Ok((dtype_from(&base)?, dtype.getattr(intern!(py, "shape"))?.extract()?))
}

fn by_name(name: &Bound<'_, PyString>) -> Option<DType> {
    DType::from_name(&name.to_cow().ok()?).ok()
}

/// The NumPy dtype of a type, from `ml_dtypes` where NumPy has none.
///
/// # Errors
/// `ImportError` where `ml_dtypes` is needed and not installed.
pub(super) fn dtype_to(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    let numpy = py.import(intern!(py, "numpy"))?;
    let name = match dtype.format() {
        Some(_) => PyString::intern(py, dtype.name()).into_any(),
        None => ml_dtypes(py, dtype)?.getattr(dtype.name())?,
    };
    numpy.call_method1(intern!(py, "dtype"), (name,))
}

fn ml_dtypes(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyModule>> {
    py.import(intern!(py, "ml_dtypes")).map_err(|_| {
        PyImportError::new_err(format!(
            "dtype: expected ml_dtypes, which names {dtype} for NumPy, got no such module; pip install ml_dtypes"
        ))
    })
}

/// `numpy.asarray`, looked up once.
fn asarray(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    ASARRAY.import(py, "numpy", "asarray")
}

/// A NumPy array over the memory, in the same axis order. Zero-copy; the array holds a reference.
/// It is writable or not as `readonly` says, whatever `managed` says.
pub(super) fn array_over<'py>(
    py: Python<'py>,
    managed: &Managed,
    readonly: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let view = Bound::new(py, ByteView::new(managed.clone(), readonly)?)?;
    let array = asarray(py)?.call1((view,))?;
    if managed.dtype().format().is_some() {
        return Ok(array);
    }
    array.call_method1(intern!(py, "view"), (dtype_to(py, managed.dtype())?,))
}

//! Arrays of other libraries beside storages: which of them decide what the result is.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// How arrays of libraries with universal functions of their own are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// They decide what the result is: NumPy and Python ask them next.
    Decide,
    /// They are read like any other array, by name if they have names.
    AreRead,
}

/// A class of NumPy.
pub(super) fn numpys_class<'py>(
    py: Python<'py>,
    name: &'static str,
) -> PyResult<&'py Bound<'py, PyType>> {
    static GENERIC: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static ARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = if name == "generic" { &GENERIC } else { &ARRAY };
    class.import(py, "numpy", name)
}

/// True for an array that decides itself what a function of it and a storage is: one with universal
/// functions of its own (xarray, Dask, pandas), and a field of `gt4py.next`. Arrays of CuPy are
/// operands like any other, and so are those of polars, whose functions take no storages.
pub(super) fn has_the_last_word(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let (py, class) = (object.py(), object.get_type());
    if is_of_library(object, "gt4py.next")? {
        return Ok(true);
    }
    let name = intern!(py, "__array_ufunc__");
    let Some(own) = class.getattr_opt(name)? else { return Ok(false) };
    let is_operand = is_of_library(object, "cupy")? || is_of_library(object, "polars")?;
    Ok(!is_operand && !own.is(&numpys_class(py, "ndarray")?.getattr(name)?))
}

/// True for a masked array of NumPy, whose mask is beside its memory.
pub(super) fn is_masked(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let module = object.py().import(intern!(object.py(), "numpy.ma"))?;
    object.is_instance(&module.getattr(intern!(object.py(), "MaskedArray"))?)
}

/// True if the class of an object is of a package.
pub(super) fn is_of_library(object: &Bound<'_, PyAny>, package: &str) -> PyResult<bool> {
    let module = object.get_type().getattr_opt(intern!(object.py(), "__module__"))?;
    let module = module.and_then(|module| module.extract::<String>().ok()).unwrap_or_default();
    Ok(module.strip_prefix(package).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

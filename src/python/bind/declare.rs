//! What a stencil declares, from the tuples that `dlfield.gt4py` reads off it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::protocol::gt4py;
use crate::python::numpy::dtype_from;
use crate::python::options::ints;
use crate::stencil::{Access, FieldSpec};

/// Name, dtype, whether it is used, and the default in a tuple.
pub(super) type DeclaredParameter = (String, Py<PyAny>, bool, Option<(Py<PyAny>,)>);

/// A scalar of the stencil.
pub(super) struct Parameter {
    /// Where it stands among the names.
    pub(super) at: usize,
    pub(super) name: String,
    pub(super) dtype: Py<PyAny>,
    pub(super) used: bool,
    pub(super) default: Option<Py<PyAny>>,
}

impl Parameter {
    pub(super) fn new(at: usize, declared: DeclaredParameter) -> PyResult<Self> {
        let (name, dtype, used, default) = declared;
        Ok(Self { at, name, dtype, used, default: default.map(|one| one.0) })
    }
}

/// Where `name` stands in the order of the arguments.
pub(super) fn position(order: &[Bound<'_, PyString>], name: &str) -> PyResult<usize> {
    let found = order.iter().position(|one| one.to_cow().is_ok_and(|one| one == name));
    found.ok_or_else(|| {
        PyValueError::new_err(format!(
            "bind: expected '{name}' among the stencil's arguments, got none"
        ))
    })
}

/// Name, dims, data shape, dtype, access and reach of a field.
pub(super) fn field_spec(field: &Bound<'_, PyAny>) -> PyResult<FieldSpec> {
    type Declared<'py> =
        (String, Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>, String, [(i64, i64); 3]);
    let (name, dims, data_shape, dtype, access, reach): Declared<'_> = field.extract()?;
    let access = match access.as_str() {
        "read" => Access::Read,
        "write" => Access::Write,
        _ => Access::Unused,
    };
    let (dims, data_shape) = (gt4py::names(&dims)?, ints("data_dims", &data_shape)?);
    Ok(FieldSpec { name, dims, data_shape, dtype: dtype_from(&dtype)?, access, reach })
}

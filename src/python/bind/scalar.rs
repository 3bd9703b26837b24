//! The scalars of a call.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use super::BoundStencil;
use super::declare::Parameter;
use super::read::Values;
use crate::dtype::DType;

impl BoundStencil {
    /// The parameters in their own order, checked; `None` for an unused one that is missing.
    pub(super) fn scalars<'py>(
        &self,
        py: Python<'py>,
        values: &Values<'py>,
    ) -> PyResult<Values<'py>> {
        self.declared.parameters.iter().map(|one| self.scalar(py, one, values)).collect()
    }

    fn scalar<'py>(
        &self,
        py: Python<'py>,
        parameter: &Parameter,
        values: &Values<'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        // GT4Py gives every parameter without a default the default None.
        let given = values.get(parameter.at).cloned().flatten().filter(|value| !value.is_none());
        match given.or_else(|| parameter.default.as_ref().map(|one| one.bind(py).clone())) {
            Some(value) if parameter.used => check(parameter, &value).map(|()| Some(value)),
            None if parameter.used => Err(self.missing(py, &parameter.name)),
            unused => Ok(unused),
        }
    }
}

/// GT4Py's own rule: the type of the value has the declared dtype. Nothing is converted.
fn check(parameter: &Parameter, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let Some(expected) = &parameter.dtype else { return refuse_array(parameter, value) };
    let py = value.py();
    match parameter.known {
        Some(DType::Float64) if value.is_exact_instance_of::<PyFloat>() => return Ok(()),
        Some(DType::Int64) if value.is_exact_instance_of::<PyInt>() && fits_int64(value) => {
            return Ok(());
        }
        Some(DType::Bool) if value.is_exact_instance_of::<PyBool>() => return Ok(()),
        _ => {}
    }
    let kind = value.get_type();
    let dtype = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "dtype"), (&kind,));
    let too_large = value.is_exact_instance_of::<PyInt>() && !fits_int64(value);
    if dtype.is_ok_and(|dtype| dtype.eq(expected).unwrap_or(false)) && !too_large {
        return Ok(());
    }
    if (parameter.weak || is_int_enum(value)?) && fits(expected.bind(py), value)? {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "argument '{}': expected a scalar of {expected}, got {} of type {}; convert it, for example with \
         numpy.{expected}(...)",
        parameter.name,
        shortened(value)?,
        kind.name()?
    )))
}

fn fits_int64(value: &Bound<'_, PyAny>) -> bool {
    value.extract::<i64>().is_ok()
}

/// What is not declared passes as it is, but for an array: it would go in unchecked.
fn refuse_array(parameter: &Parameter, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let ndim = value.getattr_opt(intern!(value.py(), "ndim"))?;
    if ndim.is_none_or(|ndim| ndim.extract::<usize>().unwrap_or(0) == 0) {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!(
        "argument '{}': expected a scalar, as it is not declared to be a field, got an array of type {}; annotate \
         the parameter with dlfield.annotations.Field, or pass fields= to bind",
        parameter.name,
        value.get_type().name()?
    )))
}

/// A member of an `enum.IntEnum`, which `gtscript.enum` makes parameters of, is the int that it names.
fn is_int_enum(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    if !value.is_instance_of::<PyInt>() || value.is_exact_instance_of::<PyInt>() {
        return Ok(false);
    }
    value.is_instance(&py.import(intern!(py, "enum"))?.getattr(intern!(py, "IntEnum"))?)
}

/// Whether a Python number has its value in `dtype` too: an int in a type of ints that is wide enough,
/// a float in one of floats.
fn fits(dtype: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    let kind: String = dtype.getattr(intern!(py, "kind"))?.extract()?;
    let expected = match kind.as_str() {
        "i" | "u" => value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>(),
        "f" => value.is_exact_instance_of::<PyFloat>(),
        _ => false,
    };
    if !expected {
        return Ok(false);
    }
    let Ok(converted) = dtype.getattr(intern!(py, "type"))?.call1((value,)) else {
        return Ok(false); // too large a number
    };
    let is_finite =
        |number: &Bound<'_, PyAny>| number.extract::<f64>().map_or(true, f64::is_finite);
    Ok(is_finite(&converted) || !is_finite(value))
}

/// A value in a message; a whole array would hide the rest.
fn shortened(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let shown = value.repr()?.to_string();
    Ok(if shown.len() > 60 || shown.contains('\n') { "a value".into() } else { shown })
}

//! Reads the scalars of a call. No value is converted.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use super::declared::{Declared, DeclaredScalar};
use crate::dtype::DType;
use crate::protocol::read::{class_name, shown};

/// The scalars in their own order, checked; `None` for an unused one that is missing.
pub(super) fn read<'py>(
    py: Python<'py>,
    declared: &Declared,
    values: &[Option<Bound<'py, PyAny>>],
) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
    let scalar = |(at, scalar): &(usize, DeclaredScalar)| {
        // GT4Py gives every parameter without a default the default None.
        let typed = scalar.dtype.is_some();
        let default = scalar.default.first().filter(|value| !(typed && value.is_none(py)));
        let is_missing = |value: &Bound<'_, PyAny>| typed && default.is_none() && value.is_none();
        let given = values.get(*at).cloned().flatten().filter(|value| !is_missing(value));
        match given.or_else(|| default.map(|default| default.bind(py).clone())) {
            Some(value) if scalar.used => check(scalar, &value).map(|()| Some(value)),
            None if scalar.used => Err(declared.missing(py, &scalar.name)),
            unused => Ok(unused),
        }
    };
    declared.scalars.iter().map(scalar).collect()
}

/// GT4Py's own rule: the type of the value has the declared dtype. Nothing is converted.
fn check(scalar: &DeclaredScalar, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let Some((expected, known)) = &scalar.dtype else { return refuse_array(&scalar.name, value) };
    let (py, kind) = (value.py(), value.get_type());
    let is_int = value.is_exact_instance_of::<PyInt>();
    let too_large = is_int && value.extract::<i64>().is_err();
    let has_dtype = || {
        let numpy = py.import(intern!(py, "numpy"))?;
        numpy.call_method1(intern!(py, "dtype"), (&kind,))?.eq(expected)
    };
    let fits_exactly = match known {
        Some(DType::Float64) if value.is_exact_instance_of::<PyFloat>() => true,
        Some(DType::Bool) if value.is_exact_instance_of::<PyBool>() => true,
        _ if too_large => false,
        Some(DType::Int64) if is_int => true,
        _ => has_dtype().unwrap_or(false),
    };
    if fits_exactly {
        return Ok(());
    }
    // A member of an enum is an int: gtscript.enum makes parameters of an IntEnum.
    let is_enum = || value.is_instance(&py.import("enum")?.getattr("IntEnum")?);
    if (scalar.weak || is_enum()?) && fits(expected.bind(py), value)? {
        return Ok(());
    }
    let holds_ints = matches!(kind_of(expected.bind(py))?.as_str(), "i" | "u");
    let way_out = match holds_ints && is_integer(value)? && !fits(expected.bind(py), value)? {
        _ if value.is_none() => "leave it out for its default".into(),
        true => "pass a number that the type holds, or declare a wider type".into(),
        false => format!("convert it, for example with numpy.{expected}(...)"),
    };
    Err(PyValueError::new_err(format!(
        "argument '{}': expected a scalar of {expected}, got {} of type {}; {way_out}",
        scalar.name,
        shortened(value),
        class_name(&kind)
    )))
}

/// Refuses an array for a parameter without a declared type: it would go in unchecked.
fn refuse_array(name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let ndim = value.getattr_opt(intern!(value.py(), "ndim"))?;
    if ndim.is_none_or(|ndim| ndim.extract::<usize>().unwrap_or(0) == 0) {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!(
        "argument '{name}': expected a scalar, as it is not declared to be a field, got an array \
         of type {}; annotate the parameter with dlfield.annotations.Field, or pass fields= to \
         bind",
        class_name(&value.get_type())
    )))
}

/// True if `dtype` can hold the value: an integer type Python's and NumPy's ints in its range, a float
/// type Python's floats in its range.
fn fits(dtype: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    let expected = match kind_of(dtype)?.as_str() {
        "i" | "u" => is_integer(value)?,
        "f" => value.is_exact_instance_of::<PyFloat>(),
        _ => false,
    };
    if !expected {
        return Ok(false);
    }
    // An int of NumPy's would be cut to the type; a Python one that is too large is an error.
    let number = match value.hasattr(intern!(py, "dtype"))? {
        true => value.call_method0(intern!(py, "__index__"))?,
        false => value.clone(),
    };
    let Ok(converted) = dtype.getattr(intern!(py, "type"))?.call1((number,)) else {
        return Ok(false); // too large a number
    };
    let is_finite =
        |number: &Bound<'_, PyAny>| number.extract::<f64>().map_or(true, f64::is_finite);
    Ok(is_finite(&converted) || !is_finite(value))
}

/// True for an int of Python's or NumPy's, not for a bool.
fn is_integer(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    match value.is_instance_of::<PyInt>() {
        true => Ok(!value.is_instance_of::<PyBool>()),
        false => value.is_instance(&py.import(intern!(py, "numpy"))?.getattr("integer")?),
    }
}

/// NumPy's letter for a kind of dtypes.
fn kind_of(dtype: &Bound<'_, PyAny>) -> PyResult<String> {
    dtype.getattr(intern!(dtype.py(), "kind"))?.extract()
}

/// A value in a message; a whole array would hide the rest.
fn shortened(value: &Bound<'_, PyAny>) -> String {
    let text = shown(value);
    if text.len() > 60 || text.contains('\n') { "a value".into() } else { text }
}

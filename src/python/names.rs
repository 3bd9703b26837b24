//! Names of dimensions: `get_dims`, and the rules of names that the Python files ask for.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};

use super::options::texts;
use crate::error::{Error, quoted_name};
use crate::field::{self, Dim, Dims, are_unrelated, show_dims, unknown_dim};
use crate::interpreter::Inside;
use crate::protocol;
use crate::protocol::read::{names, names_in, shown, wrong_type};

/// Return the names of an array's axes, else those that a stencil assumes.
///
/// Parameters
/// ----------
/// storage
///     A storage, a DataArray, or an object with `__gt_dims__` (attribute or method) or
///     `__gt_data_interface__`. The names are those that `as_storage` reads. Touches no memory.
/// annotation
///     The names of an array that has none: a `gtscript.Field[...]`, whose data dimensions are
///     called "0", "1", ..., or a sequence of names.
///
/// Returns
/// -------
/// tuple of str or None
///     In the order of the axes. None without names.
///
/// Raises
/// ------
/// TypeError
///     If a name is not a text.
/// ValueError
///     If the annotation has another number of names than the array has axes.
///
/// Notes
/// -----
/// Storage allocation note, "Dimension Mapping".
#[pyfunction]
#[pyo3(signature = (storage, annotation = None))]
pub(crate) fn get_dims<'py>(
    storage: &Bound<'py, PyAny>,
    annotation: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let _inside = Inside::enter(storage.py());
    let py = storage.py();
    let own = protocol::dims(storage)?;
    let (None, Some(annotation)) = (&own, annotation) else {
        return own.map(|dims| texts(py, &dims)).transpose();
    };
    let assumed = assumed(annotation)?;
    let ndim = storage.getattr_opt(intern!(py, "ndim"))?.and_then(|ndim| ndim.extract().ok());
    let ndim = ndim.unwrap_or(assumed.len());
    if ndim != assumed.len() {
        let axes = show_dims(&assumed);
        let text = format!("get_dims: expected an array with the axes {axes}, got {ndim} axes");
        return Err(Error::Argument(text).into());
    }
    texts(py, &assumed).map(Some)
}

/// Reads the names that an annotation gives to the axes.
fn assumed(annotation: &Bound<'_, PyAny>) -> PyResult<Dims> {
    let py = annotation.py();
    let Some(axes) = annotation.getattr_opt(intern!(py, "axes"))? else {
        let class = annotation.is_instance_of::<PyType>(); // which may be iterable
        let names = if class { None } else { names(annotation).ok() };
        let expected = "gtscript.Field[...] or names";
        return names.ok_or_else(|| wrong_type("annotation", expected, annotation).into());
    };
    let wrong = |_| wrong_type("annotation", "gtscript.Field[...] or names", annotation);
    let axes = axes.try_iter().map_err(wrong)?;
    let axes = axes.map(|axis| Ok(Dim::from_name(&axis?.str()?.to_cow()?)));
    let data_dims = annotation.getattr_opt(intern!(py, "data_dims"))?;
    let count = data_dims.map_or(Ok(0), |dims| dims.len())?;
    axes.chain((0..).map(Dim::Data).map(Ok).take(count)).collect()
}

/// Return the names as texts if each is I, J, K or a decimal, as in GT4Py's stencils; else None.
#[pyfunction]
pub(crate) fn gt4py_names<'py>(dims: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let py = dims.py();
    let Ok(dims) = names(dims) else { return Ok(None) };
    dims.iter().all(Dim::is_gt4py).then(|| texts(py, &dims)).transpose()
}

/// Read names of dimensions, or GT4Py's axes and dimensions, as texts.
///
/// Raises
/// ------
/// TypeError
///     If `dims` is not a sequence of names. The message begins with `what`.
#[pyfunction]
#[pyo3(signature = (dims, what = "dims"))]
pub(crate) fn dim_names<'py>(
    dims: &Bound<'py, PyAny>,
    what: &str,
) -> PyResult<Bound<'py, PyTuple>> {
    let _inside = Inside::enter(dims.py());
    texts(dims.py(), &names_in(what, dims)?)
}

/// Refuse names of a DataArray that contradict those of its data.
#[pyfunction]
pub(crate) fn check_names(dims: &Bound<'_, PyAny>, own: &Bound<'_, PyAny>) -> PyResult<()> {
    Ok(field::check_names(&names(dims)?, &names(own)?)?)
}

/// Refuse an entry of `given` that is not among the strings `known`.
#[pyfunction]
pub(crate) fn check_among(
    what: &str,
    given: &Bound<'_, PyAny>,
    known: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let known: Dims = names(known)?;
    for entry in given.try_iter()? {
        let entry = entry?;
        let name = entry.cast::<PyString>().map(|name| name.to_string()).ok();
        if !known.iter().any(|dim| name.as_ref() == Some(&dim.to_string())) {
            let got = name.map_or_else(|| shown(&entry), |name| quoted_name(&name));
            return Err(unknown_dim(what, &got, &known).into());
        }
    }
    Ok(())
}

/// Return whether two sets of names are unrelated, so that axes match only by position.
#[pyfunction]
pub(crate) fn names_are_unrelated(
    dims: &Bound<'_, PyAny>,
    others: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    Ok(are_unrelated(&names(dims)?, &names(others)?))
}

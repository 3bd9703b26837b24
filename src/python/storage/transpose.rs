//! `storage.transpose(...)`: the order of the axes, by number as in NumPy, or by name as in xarray.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use super::class::PyStorage;
use crate::field::{Dim, Dims, show_dims};
use crate::python::options::ints_or_int;

pub(super) fn reversed(storage: &PyStorage, py: Python<'_>) -> PyResult<Py<PyStorage>> {
    let axes: Vec<_> = (0..storage.storage().managed().layout().ndim()).rev().collect();
    storage.view(py, storage.storage().permute(&axes)?)
}

/// The dimensions in the order of the axes, which come one by one or as one sequence.
pub(super) fn transpose(storage: &PyStorage, axes: &Bound<'_, PyTuple>) -> PyResult<Py<PyStorage>> {
    let py = axes.py();
    let given = match (axes.len(), axes.get_item(0)) {
        (0, _) => return reversed(storage, py),
        (1, Ok(one)) if one.is_none() => return reversed(storage, py),
        (1, Ok(one)) if !one.is_instance_of::<PyString>() => one,
        _ => axes.clone().into_any(),
    };
    let axes = match names(&given)? {
        Some(names) => by_name(storage.storage().dims().as_ref(), &names)?,
        None => by_number(storage.storage().managed().layout().ndim(), &given)?,
    };
    storage.view(py, storage.storage().permute(&axes)?)
}

/// Reads names; `None` if there is anything but texts.
fn names(given: &Bound<'_, PyAny>) -> PyResult<Option<Dims>> {
    if !given.is_instance_of::<PyTuple>() && !given.is_instance_of::<PyList>() {
        return Ok(None);
    }
    let mut names = Dims::new();
    for name in given.try_iter()? {
        match name?.cast::<PyString>() {
            Ok(name) => names.push(Dim::from_name(&name.to_cow()?)),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(names).filter(|names| !names.is_empty()))
}

fn by_name(dims: Option<&Dims>, names: &Dims) -> PyResult<Vec<usize>> {
    let Some(dims) = dims else {
        return Err(PyValueError::new_err(format!(
            "axes: expected numbers for a storage without dims, got {}; give it names with dims=",
            show_dims(names)
        )));
    };
    let distinct = dims.iter().all(|dim| names.contains(dim)) && names.len() == dims.len();
    let axis_of = |name| dims.iter().position(|dim| dim == name);
    match names.iter().map(axis_of).collect() {
        Some(axes) if distinct => Ok(axes),
        _ => Err(PyValueError::new_err(format!(
            "axes: expected each of {} once, got {}",
            show_dims(dims),
            show_dims(names)
        ))),
    }
}

fn by_number(ndim: usize, given: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let axes = ints_or_int("axes", given)?;
    let count = i64::try_from(ndim).unwrap_or(i64::MAX);
    if axes.iter().any(|axis| !(-count..count).contains(axis)) {
        return Err(PyValueError::new_err(format!(
            "axes: expected a permutation of {:?}, got {:?}",
            (0..ndim).collect::<Vec<_>>(),
            axes.as_slice()
        )));
    }
    let counted = axes.iter().map(|&axis| if axis < 0 { axis.saturating_add(count) } else { axis });
    // A number that is still negative is not an axis either.
    Ok(counted.map(|axis| usize::try_from(axis).unwrap_or(usize::MAX)).collect())
}

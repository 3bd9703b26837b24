//! Attributes beside the memory: `__gt_dims__` names the axes, as an attribute (as GT4Py has it) or
//! as a method (storage allocation note); `__gt_origin__` says where the domain begins; `.ndarray`
//! is the array of a `gt4py.next` field.

use pyo3::exceptions::PyOverflowError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyIterator, PyMapping, PySet, PyString, PyTuple};

use crate::error::Error;
use crate::field::{Dim, Dims};
use crate::layout::{Extents, MAX_NDIM};

/// The object's `__gt_dims__`, or `None` where it has none or it is `None`.
pub(crate) fn dims(obj: &Bound<'_, PyAny>) -> PyResult<Option<Dims>> {
    let Some(found) = obj.getattr_opt(intern!(obj.py(), "__gt_dims__"))? else {
        return Ok(None);
    };
    let found = if found.is_callable() { found.call0()? } else { found };
    if found.is_none() { Ok(None) } else { names(&found).map(Some) }
}

/// The object's `__gt_origin__` (GT4Py) or `default_origin` (storage allocation note), in the order
/// I, J, K and then data dimensions, whatever the order of its axes. Zeros say nothing: they are
/// what every `gt4py.next` field has whose domain begins at 0.
pub(crate) fn origin(obj: &Bound<'_, PyAny>) -> PyResult<Option<Extents>> {
    for name in [intern!(obj.py(), "__gt_origin__"), intern!(obj.py(), "default_origin")] {
        if let Some(found) = obj.getattr_opt(name)?.filter(|found| !found.is_none()) {
            let origin = points(name, &found)?;
            return Ok(Some(origin).filter(|origin| origin.iter().any(|&at| at != 0)));
        }
    }
    Ok(None)
}

fn points(name: &Bound<'_, PyString>, found: &Bound<'_, PyAny>) -> PyResult<Extents> {
    let wrong = || {
        let got = found.repr().map_or_else(|_| "?".into(), |repr| repr.to_string());
        format!("{name}: expected a sequence of ints, got {got}")
    };
    let points = entries(found).ok_or_else(|| Error::Type(wrong()))?;
    let points: PyResult<Extents> =
        points.take(MAX_NDIM + 1).map(|point| point?.extract::<i64>()).collect();
    points.map_err(|error| match error.is_instance_of::<PyOverflowError>(found.py()) {
        true => Error::Argument(wrong()).into(),
        false => Error::Type(wrong()).into(),
    })
}

/// What a sequence holds, in its order; `None` for what is none. Sets have no order, and what a
/// mapping goes through are its keys: neither is a sequence.
pub(crate) fn entries<'py>(sequence: &Bound<'py, PyAny>) -> Option<Bound<'py, PyIterator>> {
    let ordered = sequence.is_instance_of::<PyTuple>()
        || !(sequence.is_instance_of::<PySet>()
            || sequence.is_instance_of::<PyFrozenSet>()
            || sequence.cast::<PyMapping>().is_ok());
    if ordered { sequence.try_iter().ok() } else { None }
}

/// A sequence of names. A plain text is a sequence of letters: "IJK".
///
/// # Errors
/// `TypeError` where it is no sequence of texts.
pub(crate) fn names(sequence: &Bound<'_, PyAny>) -> PyResult<Dims> {
    let wrong = || {
        let got = sequence.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
        Error::Type(format!(
            "dims: expected a sequence of names such as 'IJK' or ('lon', 'lat'), got '{got}'"
        ))
    };
    let names = entries(sequence).ok_or_else(wrong)?;
    names.take(MAX_NDIM + 1).map(|name| name_of(&name?)).collect()
}

/// A name, or an object with one: a dimension of `gt4py.next` has `value`.
fn name_of(name: &Bound<'_, PyAny>) -> PyResult<Dim> {
    if let Ok(text) = name.cast::<PyString>() {
        return Ok(Dim::from_name(&text.to_cow()?));
    }
    let value = name.getattr_opt(intern!(name.py(), "value"))?;
    match value.and_then(|value| value.cast_into::<PyString>().ok()) {
        Some(text) => Ok(Dim::from_name(&text.to_cow()?)),
        None => Err(Error::Type(format!("dims: expected names, got {}", name.repr()?)).into()),
    }
}

/// The names of a DataArray, which may be of any type: what is no text is a name of its own.
pub(crate) fn any_names(sequence: &Bound<'_, PyAny>) -> PyResult<Dims> {
    let any = |name: Bound<'_, PyAny>| match name.cast::<PyString>() {
        Ok(text) => Ok(Dim::from_name(&text.to_cow()?)),
        Err(_) => Ok(Dim::Named(name.repr()?.to_cow()?.as_ref().into())),
    };
    sequence.try_iter()?.map(|name| any(name?)).collect()
}

/// The array of an object that is no array itself, but has one as `.ndarray`.
pub(in crate::protocol) fn ndarray<'py>(
    obj: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = obj.py();
    let Some(inner) = obj.getattr_opt(intern!(py, "ndarray"))? else {
        return Ok(None);
    };
    Ok(Some(inner).filter(|inner| !inner.is(obj) && !inner.is_none() && !inner.is_callable()))
}

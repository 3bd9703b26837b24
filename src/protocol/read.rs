//! Reading Python values: sequences, mappings, ints and names; and how a message shows a value.

use std::ffi::CStr;
use std::ptr::NonNull;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyCapsule, PyFrozenSet, PyInt, PyIterator, PyMapping, PySet, PyString, PyTuple, PyType,
};
use pyo3::{ffi, intern};

use crate::error::{Error, Failure, shortened};
use crate::field::{Dim, Dims};
use crate::interpreter::Inside;
use crate::layout::{Extents, MAX_NDIM};

/// The `repr` of a value, for a message: its beginning if it is long, `?` if it raises.
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> String {
    let _inside = Inside::enter(value.py());
    if let Ok(repr) = value.repr() {
        return shortened(&repr.to_string_lossy()).into_owned();
    }
    // Python refuses to write an int of more than 4,300 digits.
    let bits = value.cast::<PyInt>().ok().and_then(|int| int.call_method0("bit_length").ok());
    bits.map_or_else(|| "?".into(), |bits| format!("an int of {bits} bits"))
}

/// The name of a class, for a message; `?` if asking for it raises.
pub(crate) fn class_name(class: &Bound<'_, PyType>) -> String {
    class.name().map_or_else(|_| "?".into(), |name| name.to_string())
}

/// The name of a capsule, for a message.
pub(crate) fn capsule_name(capsule: &Bound<'_, PyCapsule>) -> String {
    // SAFETY: a capsule; its name is NULL or a text that its maker keeps while the capsule lives.
    let name = unsafe { ffi::PyCapsule_GetName(capsule.as_ptr()) };
    if name.is_null() {
        return "NULL".into();
    }
    // SAFETY: not NULL, and a text that the capsule's maker keeps while the capsule lives.
    let name = unsafe { CStr::from_ptr(name) };
    format!("'{}'", name.to_string_lossy())
}

/// Takes what a method answered for a capsule.
///
/// # Errors
/// `TypeError` for other objects.
pub(crate) fn capsule<'a, 'py>(
    method: &str,
    answer: &'a Bound<'py, PyAny>,
) -> Result<&'a Bound<'py, PyCapsule>, Error> {
    answer.cast().map_err(|_| wrong_answer(method, "a capsule", answer))
}

/// Address of the struct in a capsule of this name, or in one without a name.
///
/// # Errors
/// `BufferError` for a misaligned one.
pub(crate) fn aligned<T>(
    what: &str,
    capsule: &Bound<'_, PyCapsule>,
    name: Option<&CStr>,
) -> Result<NonNull<T>, Failure> {
    let place = capsule.pointer_checked(name)?.cast::<T>();
    if place.is_aligned() {
        return Ok(place);
    }
    Err(Error::Buffer(format!("{what}: expected an aligned struct, got one at {place:p}")).into())
}

/// The refusal of an answer of a wrong type, by its class.
pub(crate) fn wrong_answer(method: &str, expected: &str, got: &Bound<'_, PyAny>) -> Error {
    let name = class_name(&got.get_type());
    Error::Type(format!("{method}: expected {expected}, got an object of type '{name}'"))
}

/// The refusal of a value of a wrong type.
pub(crate) fn wrong_type(what: &str, expected: &str, got: &Bound<'_, PyAny>) -> Error {
    Error::Type(format!("{what}: expected {expected}, got {}", shown(got)))
}

/// Iterates over a sequence; `None` for other objects. Sets have no order, and a mapping iterates
/// over its keys: neither is a sequence.
pub(crate) fn entries<'py>(sequence: &Bound<'py, PyAny>) -> Option<Bound<'py, PyIterator>> {
    if sequence.is_exact_instance_of::<PyInt>() {
        return None; // asking whether it is a mapping takes longer
    }
    let ordered = sequence.is_instance_of::<PyTuple>()
        || !(sequence.is_instance_of::<PySet>()
            || sequence.is_instance_of::<PyFrozenSet>()
            || sequence.cast::<PyMapping>().is_ok());
    if ordered { sequence.try_iter().ok() } else { None }
}

/// Reads an object with `__index__`, except a bool.
///
/// # Errors
/// `TypeError` for other objects, `ValueError` for more than 64 bits, and what `__index__` raises.
pub(crate) fn int(what: &str, value: &Bound<'_, PyAny>) -> Result<i64, Failure> {
    let plain = value.is_exact_instance_of::<PyInt>();
    let _inside = (!plain).then(|| Inside::enter(value.py()));
    if !plain && (value.is_instance_of::<PyBool>() || !has_index(value)?) {
        return Err(wrong_type(what, "an int", value).into());
    }
    value.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            let got = shown(value);
            Error::Argument(format!("{what}: expected an int of 64 bits, got {got}")).into()
        } else {
            error.into()
        }
    })
}

/// Reads a sequence of ints.
pub(crate) fn ints(what: &str, value: &Bound<'_, PyAny>) -> Result<Extents, Failure> {
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        return ints_of(what, tuple); // a quarter of the instructions of an iterator
    }
    let Some(entries) = entries(value) else {
        return Err(wrong_type(what, "a sequence of ints", value).into());
    };
    entries.take(MAX_NDIM + 1).map(|entry| int(what, &entry?)).collect()
}

fn ints_of(what: &str, tuple: &Bound<'_, PyTuple>) -> Result<Extents, Failure> {
    tuple.iter_borrowed().take(MAX_NDIM + 1).map(|entry| int(what, &entry)).collect()
}

/// Reads ints as NumPy reads a shape: a single int is a sequence of one.
pub(crate) fn ints_or_int(what: &str, value: &Bound<'_, PyAny>) -> Result<Extents, Failure> {
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        return ints_of(what, tuple);
    }
    let _inside = Inside::enter(value.py()); // asking for a mapping runs Python code
    if entries(value).is_some() {
        ints(what, value)
    } else if !has_index(value)? {
        Err(wrong_type(what, "a sequence of ints or an int", value).into())
    } else {
        Ok(Extents::from_slice(&[int(what, value)?]))
    }
}

/// Reads a tuple of two ints.
pub(crate) fn pair(what: &str, value: &Bound<'_, PyAny>) -> Result<(i64, i64), Failure> {
    match value.cast::<PyTuple>() {
        Ok(tuple) if tuple.len() == 2 => {
            let (first, second) = (tuple.get_borrowed_item(0)?, tuple.get_borrowed_item(1)?);
            Ok((int(what, &first)?, int(what, &second)?))
        }
        _ => Err(wrong_type(what, "a pair of ints", value).into()),
    }
}

/// Reads the value of a key; `None` if the key is missing or its value is `None`.
pub(crate) fn entry<'py>(
    mapping: &Bound<'py, PyMapping>,
    key: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !mapping.contains(key)? {
        return Ok(None);
    }
    Ok(Some(mapping.get_item(key)?).filter(|value| !value.is_none()))
}

/// Takes an object for a mapping.
///
/// # Errors
/// `TypeError` for other objects, without the name of the value.
pub(crate) fn mapping<'py>(
    expected: &str,
    value: Bound<'py, PyAny>,
) -> Result<Bound<'py, PyMapping>, Error> {
    value.cast_into().map_err(|error| {
        let got = shown(&error.into_inner());
        Error::Type(format!("expected {expected}, got {got}"))
    })
}

/// Reads names of dimensions. A plain text is a sequence of letters: `"IJK"`.
///
/// # Errors
/// `TypeError` for anything but a sequence of texts, and what iterating raises.
pub(crate) fn names(sequence: &Bound<'_, PyAny>) -> Result<Dims, Failure> {
    names_in("dims", sequence)
}

/// As [`names`], for an argument of another name.
pub(crate) fn names_in(what: &str, sequence: &Bound<'_, PyAny>) -> Result<Dims, Failure> {
    if let Ok(tuple) = sequence.cast_exact::<PyTuple>() {
        return tuple.iter_borrowed().take(MAX_NDIM + 1).map(|name| dim(what, &name)).collect();
    }
    let Some(names) = entries(sequence) else {
        return Err(Error::Type(format!(
            "{what}: expected a sequence of names such as 'IJK' or ('lon', 'lat'), got '{}'",
            class_name(&sequence.get_type())
        ))
        .into());
    };
    names.take(MAX_NDIM + 1).map(|name| dim(what, &name?)).collect()
}

/// Reads a text, or an object that has one: an axis of GTScript as `__gt_axis_name__`, a dimension
/// of `gt4py.next` as `value`.
fn dim(what: &str, name: &Bound<'_, PyAny>) -> Result<Dim, Failure> {
    let py = name.py();
    if let Ok(text) = name.cast::<PyString>() {
        return Ok(Dim::from_name(&text.to_cow()?));
    }
    for attribute in [intern!(py, "__gt_axis_name__"), intern!(py, "value")] {
        let text = name.getattr_opt(attribute)?;
        if let Some(text) = text.and_then(|text| text.cast_into::<PyString>().ok()) {
            return Ok(Dim::from_name(&text.to_cow()?));
        }
    }
    Err(wrong_type(what, "names", name).into())
}

fn has_index(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.hasattr(intern!(value.py(), "__index__"))
}

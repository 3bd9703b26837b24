//! Reading a key: what is basic indexing is done here, the rest is NumPy's.

use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyEllipsis, PyInt, PyList, PySlice, PyString, PyTuple};
use pyo3::{ffi, intern};
use smallvec::SmallVec;

use super::class::PyStorage;
use super::source::Source;
use crate::error::{Error, Failure};
use crate::layout::Item;
use crate::python::numpy::array_over;

/// The entries of a basic key.
pub(super) type Items = SmallVec<[Item; 6]>;

/// What `storage[key]` is: a number, a view, or for advanced keys an ndarray of its own.
pub(super) fn get<'py>(
    slf: &Bound<'py, PyStorage>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, storage) = (slf.py(), slf.get());
    let Some(items) = basic(key)? else {
        return array_over(py, storage.managed(), true)?.get_item(plain(key)?);
    };
    let view = storage.storage().select(&items)?;
    let number = view.host().layout().ndim() == 0 && !items.contains(&Item::Ellipsis);
    if number {
        return array_over(py, view.host(), true)?.get_item(PyTuple::empty(py));
    }
    Ok(storage.view(py, view)?.into_bound(py).into_any())
}

/// The entries of a key of integers, slices, None and `...`; `None` for any other, which is
/// advanced.
pub(super) fn basic(key: &Bound<'_, PyAny>) -> PyResult<Option<Items>> {
    let Ok(entries) = key.cast::<PyTuple>() else {
        return Ok(item(key)?.map(|item| SmallVec::from_slice(&[item])));
    };
    entries.iter().map(|entry| item(&entry)).collect()
}

fn item(entry: &Bound<'_, PyAny>) -> PyResult<Option<Item>> {
    if let Ok(slice) = entry.cast::<PySlice>() {
        let bound = |name| bound(&slice.getattr(name)?);
        let (start, stop) =
            (bound(intern!(entry.py(), "start"))?, bound(intern!(entry.py(), "stop"))?);
        return Ok(Some(Item::Slice { start, stop, step: bound(intern!(entry.py(), "step"))? }));
    }
    if entry.is_none() {
        return Ok(Some(Item::NewAxis));
    }
    if entry.is_instance_of::<PyEllipsis>() {
        return Ok(Some(Item::Ellipsis));
    }
    if entry.is_instance_of::<PyBool>() || is_array(entry)? {
        return Ok(None);
    }
    Ok(whole(entry)?.map(Item::At))
}

/// An array of integers is a list of indices, also where it has one element only.
fn is_array(entry: &Bound<'_, PyAny>) -> PyResult<bool> {
    if entry.is_exact_instance_of::<PyInt>() {
        return Ok(false);
    }
    let ndim = entry.getattr_opt(intern!(entry.py(), "ndim"))?;
    Ok(ndim.is_some_and(|ndim| ndim.extract::<usize>().is_ok_and(|ndim| ndim > 0)))
}

/// An integer; `None` for what is none.
fn whole(entry: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    match index_of(entry) {
        Ok(index) => index.extract().map(Some).map_err(|_| {
            PyIndexError::new_err(format!(
                "index {index} is out of bounds: expected one of 64 bits"
            ))
        }),
        Err(error) if error.is_instance_of::<PyTypeError>(entry.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A bound of a slice; one that is too large is as good as the largest.
fn bound(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if value.is_none() {
        return Ok(None);
    }
    let index = index_of(value)?;
    match index.extract::<i64>() {
        Ok(number) => Ok(Some(number)),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
            Ok(Some(if index.lt(0)? { i64::MIN } else { i64::MAX }))
        }
        Err(error) => Err(error),
    }
}

/// `operator.index(value)`.
fn index_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: an object, with the interpreter attached.
    let index = unsafe { ffi::PyNumber_Index(value.as_ptr()) };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(value.py(), index) }
}

/// An advanced key as NumPy takes it: arrays of other libraries become arrays of its own, over the
/// same memory.
pub(super) fn plain<'py>(key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match key.cast::<PyTuple>() {
        Ok(entries) => {
            let entries = entries.iter().map(|entry| plain_entry(&entry));
            Ok(PyTuple::new(key.py(), entries.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        Err(_) => plain_entry(key),
    }
}

fn plain_entry<'py>(entry: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let plain = entry.is_instance_of::<PyList>()
        || entry.is_instance_of::<PySlice>()
        || entry.is_instance_of::<PyInt>() // a bool too
        || entry.is_instance_of::<PyString>()
        || entry.is_instance_of::<PyBytes>()
        || entry.is_instance(&entry.py().import("numpy")?.getattr("ndarray")?)?
        || entry.is_none();
    if plain {
        return Ok(entry.clone());
    }
    match Source::of(entry) {
        Ok(source) => array_over(entry.py(), &source.keep(entry.py())?, true),
        // Of what speaks no protocol NumPy knows what to think.
        Err(Failure::Ours(Error::Type(_))) => Ok(entry.clone()),
        Err(failure) => Err(failure.into()),
    }
}

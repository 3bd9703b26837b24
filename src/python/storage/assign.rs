//! `storage[key] = value`.
//!
//! Values of the same type into a basic key are copied here, without the GIL; a conversion, an
//! advanced key, a number or a list is NumPy's. Where the value shares memory with the storage, it
//! is copied first, so that the result is as if it did not (NumPy's rule).

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use super::class::{PyStorage, copy_with};
use super::key::{basic, plain};
use super::source::Source;
use crate::copy::copy;
use crate::error::{Error, Failure};
use crate::field::{Dims, align_by_name};
use crate::layout::may_overlap;
use crate::managed::Managed;
use crate::python::numpy::array_over;
use crate::storage::{Spec, Storage};

/// Puts `value` where `key` says.
pub(super) fn set(
    slf: &Bound<'_, PyStorage>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let (py, storage) = (slf.py(), slf.get());
    if storage.managed().readonly() {
        return Err(PyBufferError::new_err(
            "assignment: expected a writable storage, got a read-only one; write into a copy()",
        ));
    }
    let (items, source) = (basic(key)?, array(value)?);
    let target = items.map(|items| storage.storage().select(&items)).transpose()?;
    let Some(mut source) = source else {
        return by_numpy(storage, key, value);
    };
    let memory = source.keep(py)?;
    match target {
        Some(target) => {
            let names = (target.field().dims.as_ref(), source.field.dims.as_ref());
            assign(py, target.host(), &by_names(memory, names)?)
        }
        None => by_numpy(storage, key, &array_over(py, &memory, true)?),
    }
}

/// A value that speaks a protocol; `None` for numbers, lists and the like.
fn array<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Source>> {
    match Source::of(value) {
        Ok(source) => Ok(Some(source)),
        Err(Failure::Ours(Error::Type(_))) => Ok(None),
        // What NumPy can convert is left to it: byte-swapped arrays, for one.
        Err(Failure::Ours(Error::Buffer(_))) if is_numpy(value)? => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}

fn is_numpy(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.is_instance(&value.py().import("numpy")?.getattr("ndarray")?)
}

/// A value whose axes have names goes where they belong.
fn by_names(value: Managed, names: (Option<&Dims>, Option<&Dims>)) -> PyResult<Managed> {
    let (Some(target), Some(own)) = names else {
        return Ok(value);
    };
    Ok(match align_by_name(own, target)? {
        Some(axes) => value.align(&axes)?,
        None => value,
    })
}

fn assign(py: Python<'_>, target: &Managed, value: &Managed) -> PyResult<()> {
    if value.dtype() != target.dtype() {
        let (into, values) = (array_over(py, target, false)?, array_over(py, value, true)?);
        return into.set_item(py.Ellipsis(), values);
    }
    let value = value.broadcast_to(target.layout().shape())?;
    let apart = |value: &Managed| {
        !may_overlap(value.layout(), value.address(), target.layout(), target.address())
    };
    if apart(&value) {
        return put(py, target, &value);
    }
    let copied: Storage = copy_with(py, &value, &Spec::default())?;
    put(py, target, copied.host())
}

fn put(py: Python<'_>, target: &Managed, value: &Managed) -> PyResult<()> {
    // SAFETY: the values are the user's to guard against other threads, as in NumPy.
    Ok(py.detach(|| unsafe { copy(value, target) })?)
}

fn by_numpy(storage: &PyStorage, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    array_over(key.py(), storage.managed(), false)?.set_item(plain(key)?, value)
}

//! `storage[key] = value`.
//!
//! [`Storage`] copies values of its own type into a basic key, without the GIL. NumPy does the
//! rest: conversions, advanced keys, numbers and lists. For memory of a device alone NumPy works in
//! a copy.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::class::{PyStorage, copy_with};
use super::key::{AdvancedKey, basic};
use super::sides::{converted, on_host};
use crate::device::Device;
use crate::device::Target;
use crate::error::{Error, Failure};
use crate::field::{Dims, are_unrelated, is_only_numbered, show_dims};
use crate::interpreter::{Caller, Inside};
use crate::managed::Managed;
use crate::protocol::{self, Arrival, Request, import};
use crate::python::numpy::{array_over, dtype_to, import_or_convert, is_number};
use crate::storage::{Spec, Storage};
use crate::sync::Dirty;

/// Assigns `value` to the elements that `key` selects.
pub(super) fn set(
    slf: &Bound<'_, PyStorage>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let _inside = Inside::enter(slf.py());
    let (py, storage) = (slf.py(), slf.get().storage());
    storage.check_writable().map_err(|error| error.about("assignment"))?;
    let target = basic(key)?.map(|items| storage.select(&items)).transpose()?;
    let written = target.as_ref().unwrap_or(storage);
    written.check_assignable().map_err(|error| error.about("assignment"))?;
    let source = array(value, storage)?;
    match (target, source) {
        (Some(target), Some(source)) => assign(py, &target, &source),
        (Some(target), None) if storage.host_as_is().is_none() => {
            let value = read(value, &target)?.memory;
            write(py, &target, &value, Device::CPU)
        }
        (Some(target), None) => assign_by_numpy(py, &target, py.Ellipsis().bind(py), value),
        (None, source) => {
            let key = AdvancedKey::read(key)?;
            if !key.has_behind(source.as_ref(), storage)? {
                check_order(source.as_ref(), storage.dims().as_ref())?;
            }
            let key = key.into_plain(storage, py)?;
            let value = match source {
                Some(source) => array_over(py, &on_host(py, &source.acquired(py)?)?, true)?,
                None => value.clone(),
            };
            assign_by_numpy(py, storage, &key, &value)
        }
    }
}

/// Copies an array into a part of a storage. Nothing is acquired for a refusal.
fn assign(py: Python<'_>, target: &Storage, source: &Arrival) -> PyResult<()> {
    check_caller(py, source.dims(), target.dims().as_ref())?;
    let value = target.aligned(&source.memory, source.dims())?;
    let _released_when_done = source.hooks.acquire(py)?;
    if value.dtype() == target.dtype() {
        return write(py, target, &value, value.device());
    }
    let (memory, dirty) = py.detach(|| target.assigned_side(value.device()))?;
    if !memory.device().is_host() {
        return write(py, target, &converted(py, &value, target.dtype())?, value.device());
    }
    let host = on_host(py, &value)?;
    // NumPy notices an overlap only of items of one size.
    let values = match host.may_overlap(memory) {
        true => array_over(py, copy_with(py, &host, &Spec::default())?.managed(), true)?,
        false => array_over(py, &host, true)?,
    };
    py.detach(|| memory.wait())?; // WAIT in memory that the host and a GPU reach
    let outcome = array_over(py, memory, false)?.set_item(py.Ellipsis(), values);
    mark(py, target, dirty); // perhaps half written, if NumPy has raised
    outcome
}

/// Refuses names in another order if xarray or Dask assigns, which mean positions.
fn check_caller(py: Python<'_>, own: Option<&Dims>, target: Option<&Dims>) -> PyResult<()> {
    let (Some(own), Some(target)) = (own, target) else { return Ok(()) };
    if own == target
        || own.iter().is_sorted_by_key(|dim| target.iter().position(|one| one == dim))
        || !Caller::of_now(py)?.has_matched()
    {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "assignment: expected a value whose dims are in the order {} within a DataArray, got {}, whose \
         names and positions say two things; transpose it, or assign to the storage, array.data[...]",
        show_dims(target),
        show_dims(own)
    ))
    .into())
}

/// Copies values of the type of the target, which come from a device.
fn write(py: Python<'_>, target: &Storage, value: &Managed, from: Device) -> PyResult<()> {
    // SAFETY: the user excludes writes of other threads, as in NumPy.
    Ok(py.detach(|| unsafe { target.write(value, from) })?)
}

/// Without the GIL: another thread may hold the state while it copies.
fn mark(py: Python<'_>, storage: &Storage, dirty: Dirty) {
    if storage.sync_state().is_some() {
        py.detach(|| storage.set_dirty(dirty));
    }
}

/// The array that NumPy makes of a number, a text, or a list of them, by the rules of its own
/// assignment.
fn read(value: &Bound<'_, PyAny>, target: &Storage) -> PyResult<Arrival> {
    let py = value.py();
    let numpy = py.import("numpy")?;
    let one = numpy.call_method1("ndim", (value,))?.eq(0)?;
    let shape = if one { PyTuple::empty(py) } else { PyTuple::new(py, target.shape())? };
    let array = numpy.call_method1("empty", (shape, dtype_to(py, target.dtype())?))?;
    array.set_item(py.Ellipsis(), value)?;
    Ok(import(&array, Request::SHARED)?)
}

/// Lets NumPy assign: in the buffer of the host, or in a copy of memory on a device alone.
fn assign_by_numpy(
    py: Python<'_>,
    storage: &Storage,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    if storage.host_as_is().is_none() {
        let copy = on_host(py, py.detach(|| storage.device())?)?;
        array_over(py, &copy, false)?.set_item(key, value)?;
        return write(py, storage, &copy, Device::CPU);
    }
    let host = match storage.plain_host() {
        Some(host) => host,
        None => py.detach(|| storage.host())?,
    };
    let outcome = array_over(py, host, false)?.set_item(key, value);
    mark(py, storage, Dirty::Host); // perhaps half written, if NumPy has raised
    outcome
}

/// Refuses names in another order: the selection of an advanced key has no names, so that its
/// dimensions go by position. A single axis may have a name of another kind: that of the points.
fn check_order(source: Option<&Arrival>, target: Option<&Dims>) -> PyResult<()> {
    let own = source.and_then(Arrival::dims);
    let (Some(own), Some(target)) = (own, target) else {
        return Ok(());
    };
    let points = own.len() == 1 && are_unrelated(own, target);
    if own == target || points || is_only_numbered(own) || is_only_numbered(target) {
        return Ok(());
    }
    let permuted = own.len() == target.len() && own.iter().all(|dim| target.contains(dim));
    Err(Error::Argument(format!(
        "assignment: expected a value with the dims {} for an advanced key, got {}; {}pass \
         to_numpy() to go by position",
        show_dims(target),
        show_dims(own),
        if permuted { "transpose it, or " } else { "" }
    ))
    .into())
}

/// A value that speaks a protocol; `None` for numbers, texts, lists and the like, NumPy's own
/// numbers too, whose buffers say less than they do. Of a pair the newest values count, of other
/// objects, and for memory managed by CUDA, those on a GPU if there are any (GDP-3, "Choosing the
/// Device").
fn array(value: &Bound<'_, PyAny>, storage: &Storage) -> PyResult<Option<Arrival>> {
    if is_number(value) || value.is_instance_of::<PyBytes>() {
        return Ok(None);
    }
    if value.is_instance(&value.py().import("numpy")?.getattr("generic")?)? {
        return Ok(None);
    }
    let request = match storage.device_as_is() {
        Some(_) if storage.is_unified() || !value.is_instance_of::<PyStorage>() => {
            Request::shared(Some(Target::Gpu(None)))
        }
        _ => Request::SHARED,
    };
    match import_or_convert(value, request, Some(storage.dtype())) {
        Ok(source) => Ok(Some(source)),
        Err(Failure::Ours(Error::Type(text))) => match protocol::dims(value)? {
            None => Ok(None),
            Some(_) => Err(Error::Type(text).into()), // NumPy would lose the names
        },
        Err(failure) => Err(failure.into()),
    }
}

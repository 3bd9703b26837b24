//! `storage[key] = value`.
//!
//! Values of the same type into a basic key are copied here, without the GIL; a conversion, an
//! advanced key, a number or a list is NumPy's. Where the value shares memory with the storage, it
//! is copied first, so that the result is as if it did not (NumPy's rule).
//!
//! Of a storage with two sides that of the device is written where the value is on a device (GDP-3,
//! "Choosing the Device"). What NumPy has to do for memory of a device alone it does in a copy.

use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::class::{PyStorage, copy_with};
use super::key::{basic, plain};
use super::sides::{on_host, set_newer};
use super::source::Source;
use crate::copy::copy;
use crate::dtype::DType;
use crate::error::{Error, Failure};
use crate::field::{Dims, align_by_name, are_unrelated, show_dims};
use crate::layout::may_overlap;
use crate::managed::Managed;
use crate::protocol::{Wish, arrive, gt4py, names_of};
use crate::python::numpy::{array_over, dtype_to};
use crate::storage::{Buffers, Residence, Spec, Storage};
use crate::sync::Newer;

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
    let target = basic(key)?.map(|items| storage.storage().select(&items)).transpose()?;
    let wish = if storage.buffers().of_device().is_some() { Wish::OnGpu } else { Wish::Share };
    let source = array(value, storage.managed().dtype(), wish)?;
    let names = source.as_ref().and_then(|source| source.field.dims.clone());
    match (target, source) {
        (Some(target), Some(source)) => {
            let value =
                by_names(source.managed.clone(), (target.field().dims.as_ref(), names.as_ref()))?;
            value.broadcast_to(target.managed().layout().shape())?; // or it is refused, and nothing acquired
            let _released_when_done = source.hooks.acquire(py)?;
            let side = Side::for_value(py, storage, Some(&value))?;
            let outcome = assign(py, side.part(&target)?, &value);
            side.written(py, storage); // perhaps half, where something has raised
            outcome
        }
        (Some(target), None) if storage.buffers().of_host().is_none() => {
            let shape = target.managed().layout().shape();
            let value = read(value, shape, storage.managed().dtype())?;
            let side = Side::for_value(py, storage, None)?;
            let outcome = assign(py, side.part(&target)?, &value);
            side.written(py, storage); // perhaps half, where something has raised
            outcome
        }
        (target, source) => {
            if target.is_none() {
                check_order(names.as_ref(), storage.field().dims.as_ref())?;
            }
            let key = plain(storage, key)?;
            let value = match source {
                Some(source) => array_over(py, &on_host(py, &source.keep(py)?)?, true)?,
                None => value.clone(),
            };
            by_numpy(py, storage, &key, &value)
        }
    }
}

/// The buffer that is written.
struct Side {
    newer: Newer,
}

impl Side {
    /// That of the device for a value on a device (GDP-3, "Choosing the Device"), and where there is no
    /// other; up to date.
    fn for_value(py: Python<'_>, storage: &PyStorage, value: Option<&Managed>) -> PyResult<Self> {
        let there = value.is_some_and(|value| Residence::of(value.device()) != Residence::Host);
        let newer = match storage.buffers() {
            Buffers::Host(_) | Buffers::HostOf(_) => Newer::Host,
            Buffers::Device(_) | Buffers::DeviceOf(_) => Newer::Device,
            _ if there => Newer::Device,
            _ => Newer::Host,
        };
        match newer {
            Newer::Device => storage.device(py, "assignment")?,
            _ => storage.host(py, "assignment")?,
        };
        Ok(Self { newer })
    }

    /// The same side of a part.
    fn part<'a>(&self, view: &'a Storage) -> PyResult<&'a Managed> {
        let buffers = view.buffers();
        let part = match self.newer {
            Newer::Device => buffers.of_device(),
            _ => buffers.of_host(),
        };
        part.ok_or_else(|| PyBufferError::new_err("assignment: expected a buffer, got none"))
    }

    fn written(&self, py: Python<'_>, storage: &PyStorage) {
        set_newer(py, storage, self.newer);
    }
}

/// What NumPy makes of a number, a text, or a list of them, by the rules of its own assignment.
fn read(value: &Bound<'_, PyAny>, shape: &[i64], dtype: DType) -> PyResult<Managed> {
    let py = value.py();
    let numpy = py.import("numpy")?;
    let one = numpy.call_method1("ndim", (value,))?.eq(0)?;
    let shape = if one { PyTuple::empty(py) } else { PyTuple::new(py, shape)? };
    let array = numpy.call_method1("empty", (shape, dtype_to(py, dtype)?))?;
    array.set_item(py.Ellipsis(), value)?;
    Ok(arrive(&array)?.managed)
}

/// Lets NumPy assign: in the buffer of the host, or in a copy of what is on a device alone.
fn by_numpy(
    py: Python<'_>,
    storage: &PyStorage,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let side = Side::for_value(py, storage, None)?;
    if storage.buffers().of_host().is_none() {
        let device = storage.managed();
        let copy = on_host(py, device)?;
        array_over(py, &copy, false)?.set_item(key, value)?;
        let outcome = put(py, device, &copy);
        side.written(py, storage);
        return outcome;
    }
    let outcome = array_over(py, side.part(&storage.storage())?, false)?.set_item(key, value);
    side.written(py, storage); // perhaps half, where NumPy has raised
    outcome
}

/// What an advanced key selects has no names: those of a value must be in order already, or speak
/// of something else.
fn check_order(own: Option<&Dims>, target: Option<&Dims>) -> PyResult<()> {
    let (Some(own), Some(target)) = (own, target) else {
        return Ok(());
    };
    if own == target || own.is_empty() || are_unrelated(own, target) {
        return Ok(());
    }
    let permuted = own.len() == target.len() && own.iter().all(|dim| target.contains(dim));
    Err(PyValueError::new_err(format!(
        "assignment: expected a value with the dims {} for an advanced key, got {}; {}pass to_numpy() to go by \
         position",
        show_dims(target),
        show_dims(own),
        if permuted { "transpose it, or " } else { "" }
    )))
}

/// A value that speaks a protocol; `None` for numbers, texts, lists and the like, NumPy's own
/// numbers too, whose buffers say less than they do.
fn array(value: &Bound<'_, PyAny>, wanted: DType, wish: Wish) -> PyResult<Option<Source>> {
    let numpy = value.py().import("numpy")?;
    let number = value.is_instance(&numpy.getattr("generic")?)?;
    if number || value.is_instance_of::<PyBytes>() {
        return Ok(None);
    }
    match source_of(value, wish) {
        Ok(source) => Ok(Some(source)),
        Err(Failure::Ours(Error::Type(text))) => match names_of(value)? {
            None => Ok(None),
            Some(_) => Err(Error::Type(text).into()), // NumPy would lose them
        },
        Err(Failure::Ours(Error::Buffer(text))) => match converted(value, &numpy, wanted)? {
            Some(array) => {
                let mut source = Source::of(&array)?;
                source.field.dims = gt4py::dims(value)?; // which the conversion has lost
                Ok(Some(source))
            }
            None => Err(Error::Buffer(text).into()),
        },
        Err(failure) => Err(failure.into()),
    }
}

/// A pair counts as being where its newer values are, anything else as being on a GPU where it is there
/// too (GDP-3, "Choosing the Device").
fn source_of(value: &Bound<'_, PyAny>, wish: Wish) -> Result<Source, Failure> {
    let own = value.is_instance_of::<PyStorage>();
    Source::of_as(value, if own { Wish::Share } else { wish })
}

/// What NumPy can convert though no storage can hold it: byte-swapped arrays, long doubles.
fn converted<'py>(
    value: &Bound<'py, PyAny>,
    numpy: &Bound<'py, PyModule>,
    wanted: DType,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let masked = numpy.getattr("ma")?.getattr("MaskedArray")?;
    if !value.is_instance(&numpy.getattr("ndarray")?)?
        || value.is_instance(&masked)?
        || gt4py::says_more_than_numpy(value)?
    {
        return Ok(None);
    }
    let plain = numpy.call_method1("asarray", (value,))?;
    plain.call_method1("astype", (dtype_to(value.py(), wanted)?,)).map(Some)
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
    let apart = |value: &Managed| {
        !may_overlap(value.layout(), value.address(), target.layout(), target.address())
    };
    if value.dtype() != target.dtype() {
        let value = on_host(py, value)?;
        // NumPy sees an overlap of items of one size only.
        let own = if apart(&value) { None } else { Some(copy_with(py, &value, &Spec::default())?) };
        let value = own.as_ref().map_or(&value, Storage::managed);
        let values = array_over(py, value, true)?;
        if target.device().is_host() {
            return array_over(py, target, false)?.set_item(py.Ellipsis(), values);
        }
        let converted = values.call_method1("astype", (dtype_to(py, target.dtype())?,))?;
        return assign(py, target, &arrive(&converted)?.managed);
    }
    let value = value.broadcast_to(target.layout().shape())?;
    if apart(&value) {
        return put(py, target, &value);
    }
    let near = Residence::of(value.device()).alone();
    let copied = copy_with(py, &value, &Spec { near, ..Spec::default() })?;
    put(py, target, copied.managed())
}

fn put(py: Python<'_>, target: &Managed, value: &Managed) -> PyResult<()> {
    // SAFETY: the values are the user's to guard against other threads, as in NumPy.
    Ok(py.detach(|| unsafe { copy(value, target) })?)
}

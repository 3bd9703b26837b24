//! Memory that is there: `as_storage` shares it, `storage` copies it.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::fresh::{allocate, wanted};
use crate::alloc::Fill;
use crate::device::{Device, Target};
use crate::dtype::DType;
use crate::error::{Error, Failure};
use crate::field::{Dims, Field, plain, show_dims};
use crate::layout::Extents;
use crate::managed::Managed;
use crate::protocol::{Wish, arrive, arrive_plain};
use crate::python::numpy::{array_over, dtype_from, dtype_to};
use crate::python::options::{check_names, ints_or_int, is_set, parse, switch, wanted_device};
use crate::python::storage::{Held, PyStorage, Source, copy_with};
use crate::python::sync_state::PySyncState;
use crate::storage::{Buffers, Residence, Spec, Storage};
use crate::sync::{Newer, SyncState, check_alike};

/// Put the memory of an array into a storage. Never copies.
///
/// Parameters
/// ----------
/// data
///     A storage, or anything that speaks `__gt_data_interface__`, the buffer protocol, DLPack, the
///     array interface or Arrow's C interfaces. An xarray.DataArray keeps its dims. JAX and Arrow arrays, and arrays in
///     which several indices name one element, become read-only storages. An object with an
///     `acquire` function is acquired, and released when the last view of it is gone; say `touch`
///     yourself after writing.
/// device_data : optional
///     An array on a GPU. With data, both are taken to hold the same values.
/// sync_state : SyncState, optional
///     Which buffer of a pair is newer; neither by default.
/// **options
///     As for `empty`. What is given must hold for the memory already. With device="cpu", memory
///     that host and device share is asked for on the host.
///
/// Returns
/// -------
/// CPUStorage, GPUStorage, SoftwareManagedGPUStorage or CUDAManagedGPUStorage
///     Holds the producer's memory, which is given back when the last view of it is gone. Memory of a
///     GPU becomes a pair with a new buffer on the host, unless managed= says otherwise.
///
/// Raises
/// ------
/// TypeError
///     Where the object speaks none of the protocols.
/// BufferError
///     Where what it says cannot be used: lies, unsupported types, masked arrays, torch tensors
///     with a pending conjugation, negation or gradient.
/// ValueError
///     For an option that the memory does not meet.
/// DeviceUnavailable
///     For memory that is not where device=, managed= or the argument wants it.
#[pyfunction]
#[pyo3(signature = (data = None, device_data = None, *, sync_state = None, **options))]
pub(super) fn as_storage(
    py: Python<'_>,
    data: Option<&Bound<'_, PyAny>>,
    device_data: Option<&Bound<'_, PyAny>>,
    sync_state: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    if let (Some(data), None, None, None) = (data, device_data, sync_state, options)
        && let Some(storage) = share_plain(data)?
    {
        return Ok(storage);
    }
    let sync = read_state(sync_state)?;
    if let Some(device_data) = present(device_data) {
        return pair(py, present(data), device_data, sync, options);
    }
    let none = py.None().into_bound(py); // which speaks no protocol
    let data = data.unwrap_or(&none);
    share(py, Source::of_as(data, shared(wanted_device(options)?))?, sync, options)
}

/// Copy an array into a new storage; with `copy=False` the same as `as_storage`.
///
/// Parameters
/// ----------
/// data : optional
///     As for `as_storage`; byte-swapped NumPy arrays, lists and numbers too, which go through
///     NumPy. Without it, a storage of `shape` is allocated, whose values are undefined.
/// device_data : optional
///     As for `as_storage`.
/// dtype : optional
///     Of the storage; the data's own by default. Another is converted as NumPy's astype does,
///     lists and numbers as its array does: a number that does not fit is an OverflowError.
/// copy : bool
///     Whether to copy; True by default.
/// sync_state : optional
///     As for `as_storage`.
/// **options
///     As for `empty`, and `shape`. Without layout or preset the copy is in the order of the data.
///
/// Returns
/// -------
/// CPUStorage, GPUStorage, SoftwareManagedGPUStorage or CUDAManagedGPUStorage
///     As device and managed say, and where the data is by default.
///
/// Raises
/// ------
/// TypeError, BufferError, ValueError, DeviceUnavailable
///     As `as_storage`; ValueError for another dtype with `copy=False`, and for data of another
///     shape than `shape`; TypeError without data and shape.
#[pyfunction]
#[pyo3(signature = (data = None, device_data = None, *, dtype = None, copy = true, sync_state = None, shape = None, **options))]
#[expect(clippy::too_many_arguments, reason = "the signature that GDP-3 gives")]
pub(super) fn storage(
    py: Python<'_>,
    data: Option<&Bound<'_, PyAny>>,
    device_data: Option<&Bound<'_, PyAny>>,
    dtype: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = whether_to_copy)] copy: bool,
    sync_state: Option<&Bound<'_, PyAny>>,
    shape: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    let sync = read_state(sync_state)?;
    options.map_or(Ok(()), |options| check_names(options, &["copy", "dtype", "shape"]))?;
    let shape =
        shape.filter(|shape| is_set(shape)).map(|shape| ints_or_int("shape", shape)).transpose()?;
    if let (false, Some(device_data)) = (copy, present(device_data)) {
        return pair(py, present(data), device_data, sync, options);
    }
    let first = data;
    let Some(data) = newest(present(data), present(device_data), sync.as_ref()) else {
        let shape = shape.ok_or_else(|| {
            PyTypeError::new_err(
                "storage: expected data or shape=, got neither; there is no default for a shape",
            )
        })?;
        return allocate(py, &shape, wanted(dtype)?, options, Fill::Nothing);
    };
    let wanted = dtype.filter(|dtype| is_set(dtype)).map(dtype_from).transpose()?;
    let on_gpu = present(device_data).is_some_and(|device_data| device_data.is(data));
    let target = if on_gpu { Some(Target::Gpu(None)) } else { wanted_device(options)? };
    let source = taken(data, copy.then_some(wanted), target)?;
    if on_gpu {
        check_on_gpu(&source.managed)?;
    }
    if let Some(other) = present(first).filter(|first| !first.is(data)) {
        check_alike(&Source::of(other)?.managed, &source.managed)?;
    }
    check_shape(&source.managed, shape.as_ref())?;
    let found = source.managed.dtype();
    let wanted = wanted.unwrap_or(found);
    if !copy {
        return if wanted == found {
            share(py, source, sync, options)
        } else {
            Err(other_dtype(found, wanted))
        };
    }
    let spec = parse(options, source.field.clone(), source.managed.layout().ndim(), source.near)?;
    Storage::check_copy(&source.managed, wanted, &spec)?;
    let managed = source.keep(py)?; // acquired until the copy is made
    let managed = if wanted == found { managed } else { converted(py, &managed, wanted)? };
    PyStorage::wrap(py, copy_with(py, &managed, &spec)?, None)
}

fn whether_to_copy(copy: &Bound<'_, PyAny>) -> PyResult<bool> {
    switch("copy", "True or False", copy)
}

/// How memory is shared that is wanted somewhere.
fn shared(target: Option<Target>) -> Wish {
    match target {
        None => Wish::Share,
        Some(Target::Host) => Wish::OnHost,
        Some(Target::Gpu(_)) => Wish::OnGpu,
    }
}

/// The data as it is, or as far as a copy, of a type that may be wanted, may change it.
fn taken(
    data: &Bound<'_, PyAny>,
    copy: Option<Option<DType>>,
    target: Option<Target>,
) -> Result<Source, Failure> {
    match (copy, target) {
        (Some(dtype), Some(Target::Host)) => Source::to_copy(data, Wish::CopyToHost, dtype),
        (Some(dtype), target) => Source::to_copy(data, shared(target), dtype),
        (None, target) => Source::of_as(data, shared(target)),
    }
}

fn check_on_gpu(memory: &Managed) -> PyResult<()> {
    if Residence::of(memory.device()) != Residence::Host {
        return Ok(());
    }
    let text = format!(
        "device_data: expected memory on a GPU, got memory on {}; pass it as data",
        memory.device()
    );
    Err(Error::Device(text).into())
}

fn check_shape(managed: &Managed, shape: Option<&Extents>) -> PyResult<()> {
    let found = managed.layout().shape();
    match shape {
        Some(wanted) if wanted.as_slice() != found => Err(PyValueError::new_err(format!(
            "shape: expected {found:?}, as the data has, got {:?}; leave shape out",
            wanted.as_slice()
        ))),
        _ => Ok(()),
    }
}

fn present<'a, 'py>(data: Option<&'a Bound<'py, PyAny>>) -> Option<&'a Bound<'py, PyAny>> {
    data.filter(|data| !data.is_none() && is_set(data))
}

fn read_state(state: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Py<PySyncState>>> {
    let Some(state) = present(state) else { return Ok(None) };
    match state.cast::<PySyncState>() {
        Ok(state) => Ok(Some(state.clone().unbind())),
        Err(_) => Err(PyTypeError::new_err(format!(
            "sync_state: expected a SyncState or None, got {}",
            state.repr()?
        ))),
    }
}

/// Of the same values on both sides those to copy: the newer ones, the device's where both are new.
fn newest<'a, 'py>(
    data: Option<&'a Bound<'py, PyAny>>,
    device_data: Option<&'a Bound<'py, PyAny>>,
    sync: Option<&Py<PySyncState>>,
) -> Option<&'a Bound<'py, PyAny>> {
    let on_host = sync.is_some_and(|sync| sync.get().shared().newer() == Newer::Host);
    if on_host { data.or(device_data) } else { device_data.or(data) }
}

fn check_same_dims(host: Option<&Dims>, device: Option<&Dims>) -> PyResult<()> {
    match (host, device) {
        (Some(host), Some(device)) if host != device => Err(PyValueError::new_err(format!(
            "device_data: expected the dims {} of data, got {}; transpose one of them",
            show_dims(host),
            show_dims(device)
        ))),
        _ => Ok(()),
    }
}

/// A storage over memory of the host and of a device.
fn pair(
    py: Python<'_>,
    data: Option<&Bound<'_, PyAny>>,
    device_data: &Bound<'_, PyAny>,
    sync: Option<Py<PySyncState>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    let device =
        Source::of_as(device_data, Wish::OnGpu).map_err(|failure| failure.about("device_data"))?;
    let host = data.map(|data| Source::of_as(data, Wish::OnHost)).transpose()?;
    let known = host.as_ref().unwrap_or(&device);
    if let Some(host) = &host {
        check_alike(&host.managed, &device.managed)?;
        check_same_dims(host.field.dims.as_ref(), device.field.dims.as_ref())?;
    }
    let field = known.field.clone().with_fixed_index(known.managed.layout().shape());
    let field = Field { dims: field.dims.or_else(|| device.field.dims.clone()), ..field };
    let spec = parse(options, field, known.managed.layout().ndim(), device.near)?;
    let state = sync.as_ref().map(|sync| sync.get().shared());
    let kept = |source: &Source| source.keep(py);
    let (host, device_memory) = (host.as_ref().map(kept).transpose()?, kept(&device)?);
    let storage = wrap(py, host, Some(device_memory), state, &spec)?;
    PyStorage::wrap_with_state(py, storage, device.door, sync)
}

/// An array that says nothing of itself, about which nothing is wished for; `None` for others.
fn share_plain(data: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyStorage>>> {
    let Some((managed, door)) = arrive_plain(data)? else { return Ok(None) };
    if managed.device() != Device::CPU {
        return share(data.py(), Source::plain(managed, door), None, None).map(Some);
    }
    let field = plain(managed.layout().ndim());
    let storage = Storage::from_parts(Buffers::Host(managed), field);
    PyStorage::wrap(data.py(), storage, Some(door)).map(Some)
}

fn share(
    py: Python<'_>,
    mut source: Source,
    sync: Option<Py<PySyncState>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    let of_pair = source.held.as_ref().is_some_and(|held| held.buffers.pair().is_some());
    let plain = options.is_none() && sync.is_none() && !of_pair;
    if plain && source.hooks.is_empty() && source.near == Residence::Host {
        let door = source.door;
        return PyStorage::wrap(py, source.into_storage()?, door);
    }
    let ndim = source.managed.layout().ndim();
    let field = std::mem::take(&mut source.field);
    let field = field.with_fixed_index(source.managed.layout().shape());
    let spec = parse(options, field, ndim, source.near)?;
    if let Some(Held { buffers, sync: own }) = source.held.take() {
        let wanted = spec.residence()?;
        let its_own = sync.as_ref().is_none_or(|sync| own.as_ref().is_some_and(|own| own.is(sync)));
        if its_own && wanted == source.near {
            let storage = Storage::wrap_buffers(buffers, &spec)?;
            return PyStorage::wrap_with_state(py, storage, source.door, own);
        }
        source.managed = py.detach(|| buffers.on_side(wanted))?;
        if let Some(seen) = buffers.seen_as(wanted).filter(|_| its_own) {
            return PyStorage::wrap_with_state(
                py,
                Storage::wrap_buffers(seen, &spec)?,
                source.door,
                own,
            );
        }
    }
    let state = sync.as_ref().map(|sync| sync.get().shared());
    if source.hooks.is_empty() {
        let storage = wrap(py, Some(source.managed), None, state, &spec)?;
        return PyStorage::wrap_with_state(py, storage, source.door, sync);
    }
    // Nothing is acquired before nothing can be refused any more.
    Storage::check_wrap(&source.managed, &spec)?;
    let storage = wrap(py, Some(source.keep(py)?), None, state, &spec)?;
    PyStorage::wrap_with_state(py, storage, source.door, sync)
}

/// Without the GIL: a sibling is allocated perhaps, and the state belongs to other threads too.
fn wrap(
    py: Python<'_>,
    data: Option<Managed>,
    device_data: Option<Managed>,
    state: Option<Arc<SyncState>>,
    spec: &Spec,
) -> PyResult<Storage> {
    Ok(py.detach(|| Storage::wrap_both(data, device_data, state, spec))?)
}

fn other_dtype(found: DType, wanted: DType) -> PyErr {
    PyValueError::new_err(format!(
        "dtype: expected {found}, as the array has, with copy=False, got {wanted}; convert it with astype('{wanted}') first"
    ))
}

/// The values in another type, in the same order of axes, converted by NumPy's rules.
fn converted(py: Python<'_>, managed: &Managed, dtype: DType) -> PyResult<Managed> {
    let host;
    let managed = if managed.device().is_host() {
        managed
    } else {
        host = copy_with(py, managed, &Spec::default())?; // NumPy converts on the host alone
        host.managed()
    };
    let array = array_over(py, managed, true)?.call_method1("astype", (dtype_to(py, dtype)?,))?;
    Ok(arrive(&array)?.managed)
}

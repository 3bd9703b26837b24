//! Memory that is there: `as_storage` shares it, `storage` copies it.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyDict, PyFloat, PyInt, PyList, PyTuple, PyType};

use super::fresh::{allocate, wanted};
use super::like::Requested;
use crate::alloc::Fill;
use crate::device::{Device, Target};
use crate::dtype::DType;
use crate::error::{Error, Failure};
use crate::field::show_dims;
use crate::interpreter::Inside;
use crate::layout::Extents;
use crate::managed::Managed;
use crate::protocol::read::wrong_type;
use crate::protocol::{self, Arrival, Request, import};
use crate::python::numpy::{dtype_from, dtype_to, import_or_convert};
use crate::python::options::{check_names, is_set, read_shape, switch, wanted_device};
use crate::python::storage::{PyStorage, converted, copy_with};
use crate::python::sync_state::PySyncState;
use crate::short_ways::short_ways;
use crate::storage::{Spec, Storage, check_on_gpu};
use crate::sync::{Dirty, SyncState, check_alike};

/// Put the memory of an array into a storage. Never copies.
///
/// Parameters
/// ----------
/// data
///     A storage, or anything that speaks `__gt_data_interface__`, DLPack, the buffer protocol, the
///     array interface, the CUDA array interface or Arrow's C interfaces. A DLPack capsule is taken
///     too, once. An xarray.DataArray keeps its dims. JAX and Arrow arrays, and arrays in which several
///     indices name one element, become read-only storages. An object with an `acquire` function is
///     acquired, and released when the last view of it is gone; call its `touch` yourself after
///     writing.
/// device_data : optional
///     An array on a GPU. With data, both must hold the same values. A single buffer on a GPU may
///     be passed as data too.
/// sync_state : SyncState, optional
///     Which buffer of a pair is newer; neither by default.
/// like : optional
///     A storage, or an array as for `data`, of the same shape. Where it has labels (dims, halo,
///     default_origin), the storage gets them; options take precedence.
/// **options
///     As for `empty`. They must hold for the memory already. With device="cpu", memory that host
///     and device share is taken on the host.
///
/// Returns
/// -------
/// CPUStorage, GPUStorage, SoftwareManagedGPUStorage or CUDAManagedGPUStorage
///     Holds the producer's memory, which is given back when the last view of it is gone. Memory of
///     a GPU becomes a pair with a new buffer on the host, unless managed= says otherwise.
///
/// Raises
/// ------
/// TypeError
///     If the object speaks none of the protocols.
/// BufferError
///     If what it says cannot be used: contradictory claims, unsupported types, masked arrays, torch tensors with a
///     pending conjugation or negation, and those that require a gradient where torch records it.
/// ValueError
///     For an option that the memory does not meet, and for data with another shape or other names
///     than `like`.
/// DeviceUnavailable
///     If the memory is not where device=, managed= or `device_data` requires it.
#[pyfunction]
#[pyo3(signature = (data = None, device_data = None, *, sync_state = None, like = None, **options))]
pub(crate) fn as_storage(
    py: Python<'_>,
    data: Option<&Bound<'_, PyAny>>,
    device_data: Option<&Bound<'_, PyAny>>,
    sync_state: Option<&Bound<'_, PyAny>>,
    like: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    let state = read_state(sync_state)?;
    let requested = Requested::read(like, options)?;
    if let Some(device_data) = present(device_data) {
        return pair(py, present(data), device_data, state, &requested);
    }
    let data = data.ok_or_else(|| {
        PyTypeError::new_err(
            "as_storage: expected an array as data or device_data, got None; storage(shape=...) makes one",
        )
    })?;
    share(py, import(data, Request::shared(wanted_device(options)?))?, state, &requested)
}

/// Copy an array into a new storage; with `copy=False` the same as `as_storage`.
///
/// Parameters
/// ----------
/// data : optional
///     As for `as_storage`; also byte-swapped NumPy arrays, lists, numbers, and objects with
///     `__array__`, which NumPy reads, such as datasets of zarr and h5py, Dask arrays and pandas.
///     Without it, a storage of `shape` is allocated, whose values are undefined.
/// device_data : optional
///     As for `as_storage`.
/// dtype : optional
///     Of the storage; the data's own by default. Another one is converted as NumPy's astype does,
///     lists and numbers as its array does: a number that does not fit is an OverflowError.
/// copy : bool
///     With False the storage shares the memory; True by default.
/// sync_state : optional
///     As for `as_storage`.
/// shape : int or sequence of int, optional
///     Needed without data; with data, the shape that it must have.
/// like : optional
///     As for `as_storage`. A copy also has its layout, alignment, device and managed.
/// **options
///     As for `empty`. Without layout, preset or `like` the copy is in the order of the data.
///
/// Returns
/// -------
/// CPUStorage, GPUStorage, SoftwareManagedGPUStorage or CUDAManagedGPUStorage
///     As device and managed say; where the data is by default.
///
/// Raises
/// ------
/// TypeError, BufferError, ValueError, DeviceUnavailable
///     As `as_storage`. ValueError also for another dtype with `copy=False`, and for data of
///     another shape than `shape`.
#[pyfunction]
#[pyo3(signature = (data = None, device_data = None, *, dtype = None, copy = true, sync_state = None, shape = None, like = None, **options))]
#[expect(clippy::too_many_arguments, reason = "the signature that GDP-3 gives")]
pub(crate) fn storage(
    py: Python<'_>,
    data: Option<&Bound<'_, PyAny>>,
    device_data: Option<&Bound<'_, PyAny>>,
    dtype: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = whether_to_copy)] copy: bool,
    sync_state: Option<&Bound<'_, PyAny>>,
    shape: Option<&Bound<'_, PyAny>>,
    like: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    let state = read_state(sync_state)?;
    options.map_or(Ok(()), |options| check_names(options, "copy, dtype, like, shape"))?;
    let requested = Requested::read(like, options)?;
    let shape = shape.filter(|shape| is_set(shape)).map(read_shape).transpose()?;
    let (data, device_data) = (present(data), present(device_data));
    let dtype_or_none = dtype.filter(|dtype| is_set(dtype));
    if let (false, Some(device_data)) = (copy, device_data) {
        if shape.is_some() || dtype_or_none.is_some() {
            let given = import(data.unwrap_or(device_data), Request::SHARED)?.memory;
            check_shape(&given, shape.as_ref())?;
            check_dtype(given.dtype(), dtype_or_none.map(dtype_from).transpose()?)?;
        }
        return pair(py, data, device_data, state, &requested);
    }
    let Some(newest) = newest(data, device_data, state.as_ref()) else {
        if like.is_some_and(is_set) {
            return Err(PyTypeError::new_err(
                "storage: expected data beside like=, got none; empty_like(model) makes one without",
            ));
        }
        let shape = shape.ok_or_else(|| {
            PyTypeError::new_err(
                "storage: expected data or shape=, got neither; there is no default for a shape",
            )
        })?;
        return allocate(py, shape, wanted(dtype)?, options, Fill::Nothing);
    };
    let dtype = dtype_or_none.map(dtype_from).transpose()?;
    let on_gpu = device_data.is_some_and(|device_data| device_data.is(newest));
    let target = if on_gpu { Some(Target::Gpu(None)) } else { wanted_device(options)? };
    let arrival = match (copy, target) {
        (false, target) => import(newest, Request::shared(target))?,
        (true, Some(Target::Host)) => import_to_copy(newest, Request::COPIED_TO_HOST, dtype)?,
        (true, target) => import_to_copy(newest, Request::shared(target), dtype)?,
    };
    if on_gpu {
        check_on_gpu(arrival.memory.device())?;
    }
    if let Some(other) = data.filter(|data| !data.is(newest)) {
        check_alike(&import(other, Request::SHARED)?.memory, &arrival.memory)?;
    }
    check_shape(&arrival.memory, shape.as_ref())?;
    let found = arrival.memory.dtype();
    if copy {
        return copied(py, arrival, dtype.unwrap_or(found), &requested);
    }
    check_dtype(found, dtype)?;
    share(py, arrival, state, &requested)
}

/// Refuses another type than that of an array which is shared.
fn check_dtype(found: DType, wanted: Option<DType>) -> PyResult<()> {
    match wanted.filter(|&wanted| wanted != found) {
        None => Ok(()),
        Some(wanted) => Err(PyValueError::new_err(format!(
            "dtype: expected {found}, as the array has, with copy=False, got {wanted}; convert it \
             with astype('{wanted}') first"
        ))),
    }
}

/// A copy as requested, of elements that are converted to `dtype`.
fn copied(
    py: Python<'_>,
    arrival: Arrival,
    dtype: DType,
    requested: &Requested<'_, '_>,
) -> PyResult<Py<PyStorage>> {
    let mut spec = arrival.spec().into_owned();
    requested.copy_of(&arrival.memory, &mut spec)?;
    Storage::check_copy(&arrival.memory, dtype, &spec)?;
    let memory = arrival.acquired(py)?; // until the copy is made
    let memory = if dtype == memory.dtype() { memory } else { converted(py, &memory, dtype)? };
    PyStorage::wrap(py, copy_with(py, &memory, &spec)?, None)
}

fn whether_to_copy(copy: &Bound<'_, PyAny>) -> PyResult<bool> {
    switch("copy", "True or False", copy)
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
    data.filter(|data| is_set(data))
}

fn read_state(state: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Arc<SyncState>>> {
    let Some(state) = present(state) else { return Ok(None) };
    match state.cast::<PySyncState>() {
        Ok(state) => PySyncState::share(state).map(Some),
        Err(_) => Err(wrong_type("sync_state", "a SyncState or None", state).into()),
    }
}

/// Of the same values on both sides those to copy: the newer ones, the device's if both are new.
fn newest<'a, 'py>(
    data: Option<&'a Bound<'py, PyAny>>,
    device_data: Option<&'a Bound<'py, PyAny>>,
    state: Option<&Arc<SyncState>>,
) -> Option<&'a Bound<'py, PyAny>> {
    let on_host = state.is_some_and(|state| state.dirty() == Dirty::Host);
    if on_host { data.or(device_data) } else { device_data.or(data) }
}

/// A storage over memory of a device, and of the host if there is any. A buffer of a pair brings the
/// state of its pair.
fn pair(
    py: Python<'_>,
    data: Option<&Bound<'_, PyAny>>,
    device_data: &Bound<'_, PyAny>,
    state: Option<Arc<SyncState>>,
    requested: &Requested<'_, '_>,
) -> PyResult<Py<PyStorage>> {
    let device = import(device_data, Request::shared(Some(Target::Gpu(None))));
    let device = device.map_err(|failure| failure.about("device_data"))?;
    check_on_gpu(device.memory.device())?;
    let Some(data) = data else { return share(py, device, state, requested) };
    let host = import(data, Request::shared(Some(Target::Host)))?;
    check_alike(&host.memory, &device.memory)?;
    if let (Some(expected), Some(got)) = (host.dims(), device.dims())
        && expected != got
    {
        return Err(PyValueError::new_err(format!(
            "device_data: expected the dims {} of data, got {}; transpose one of them",
            show_dims(expected),
            show_dims(got)
        )));
    }
    let states =
        [&host, &device].map(|one| one.storage.as_ref().and_then(|storage| storage.sync_state()));
    let state = SyncState::common(states.into_iter().chain([state.as_ref()]))?;
    let default_residence = device.spec().default_residence;
    let mut spec = Spec { default_residence, ..host.spec().into_owned() };
    spec.field.dims = spec.field.dims.or_else(|| device.dims().cloned());
    requested.over(&host.memory, &mut spec)?;
    Storage::check_wrap_both(&host.memory, &device.memory, &spec)?; // before anything is acquired
    let door = device.door;
    let (data, device_data) = (host.acquired(py)?, device.acquired(py)?);
    let storage = py.detach(|| Storage::wrap_both(data, device_data, state, &spec))?;
    PyStorage::wrap(py, storage, door)
}

/// A storage over memory that came in. Nothing is acquired if anything is refused.
fn share(
    py: Python<'_>,
    mut arrival: Arrival,
    state: Option<Arc<SyncState>>,
    requested: &Requested<'_, '_>,
) -> PyResult<Py<PyStorage>> {
    let door = arrival.door;
    let as_it_is = short_ways() && requested.is_nothing() && state.is_none();
    if as_it_is && let Some(storage) = arrival.take_storage() {
        return PyStorage::wrap(py, storage, door);
    }
    if as_it_is && arrival.is_plain() {
        return PyStorage::wrap(py, Storage::over_host(arrival.memory), door);
    }
    let mut spec = arrival.spec();
    if !requested.is_nothing() {
        requested.over(&arrival.memory, spec.to_mut())?;
    }
    if let Some(storage) = &arrival.storage {
        let storage = py.detach(|| storage.wrap_again(state, &spec))?;
        return PyStorage::wrap(py, storage, door);
    }
    if !arrival.hooks.is_empty() {
        Storage::check_wrap(&arrival.memory, &spec)?;
    }
    let memory = arrival.acquired(py)?;
    // Host memory that stays there needs no sibling: nothing is allocated.
    let stays = memory.device() == Device::CPU && requested.is_nothing();
    let wrap = || Storage::wrap_with_state(memory, state, &spec);
    PyStorage::wrap(py, if stays { wrap() } else { py.detach(wrap) }?, door)
}

/// As [`import`], for a copy: a NumPy array that cannot be shared (byte-swapped, or with strides
/// that are not multiples of its items) is copied into one that can, and numbers go through NumPy,
/// which is told their type, so that no value passes through another type.
fn import_to_copy(
    data: &Bound<'_, PyAny>,
    request: Request,
    dtype: Option<DType>,
) -> Result<Arrival, Failure> {
    let imported = match import_or_convert(data, request, None) {
        // A type that no storage holds may become one that it does.
        Err(Failure::Ours(Error::Buffer(_))) if dtype.is_some() => {
            import_or_convert(data, request, dtype)
        }
        answer => answer,
    };
    match imported {
        Err(Failure::Ours(Error::Type(text))) => match numbers(data, dtype)? {
            Some(copy) => import(&copy, Request::SHARED),
            None => read_by_numpy(data)?.ok_or_else(|| Error::Type(text).into()),
        },
        answer => answer,
    }
}

/// Imports the array that NumPy makes of an object that speaks no protocol, such as a dataset in a
/// file. `None` for objects that NumPy would put into an array as they are.
fn read_by_numpy(data: &Bound<'_, PyAny>) -> Result<Option<Arrival>, Failure> {
    let py = data.py();
    if data.is_instance_of::<PyType>() || !data.hasattr(intern!(py, "__array__"))? {
        return Ok(None);
    }
    let array = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "asarray"), (data,))?;
    let mut arrival = import_or_convert(&array, Request::SHARED, None)?;
    if let Some(dims) = protocol::dims(data)? {
        arrival.labels = arrival.labels.with_dims(Some(dims));
    }
    Ok(Some(arrival))
}

/// NumPy's reading of numbers and of lists of them, as the requested type.
fn numbers<'py>(
    data: &Bound<'py, PyAny>,
    dtype: Option<DType>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let read = data.is_instance_of::<PyList>()
        || data.is_instance_of::<PyTuple>()
        || data.is_instance_of::<PyInt>()
        || data.is_instance_of::<PyFloat>()
        || data.is_instance_of::<PyComplex>();
    if !read {
        return Ok(None);
    }
    let _inside = Inside::enter(data.py());
    let dtype = dtype.map(|dtype| dtype_to(data.py(), dtype)).transpose()?;
    data.py().import("numpy")?.call_method1("array", (data, dtype)).map(Some)
}

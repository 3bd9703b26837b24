//! Functions that ask about an object and make no storage: `as_numpy`, `as_cupy`, and what the
//! Python files ask of doors, devices and classes.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::device_array::PyDeviceArray;
use super::numpy::array_over;
use super::options::{managed_name, read_device};
use super::storage::{
    CpuStorage, CudaManagedGpuStorage, GpuStorage, OTHER_LIBRARIES, PyStorage,
    SoftwareManagedGpuStorage, cupy_module, cupy_to_read, references,
};
use crate::alloc;
use crate::device::Target;
use crate::error::absent;
use crate::interpreter::Inside;
use crate::protocol::{Request, door_names, import};
use crate::storage::{ManagedBy, Spec, Storage};

/// Return a NumPy array over the memory of any array, in its own order of axes. Never copies.
///
/// Parameters
/// ----------
/// data
///     As for `as_storage`. An object with an `acquire` function is acquired, and released when
///     the array and every view of it are gone.
///
/// Returns
/// -------
/// numpy.ndarray
///     `data` itself if its class is exactly ``numpy.ndarray``; else an array that holds the
///     producer's memory, read-only if the producer is.
///
/// Raises
/// ------
/// TypeError, BufferError, DeviceUnavailable
///     As `as_storage`.
#[pyfunction]
pub(crate) fn as_numpy<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = data.py();
    if data.get_type().is(&py.import("numpy")?.getattr("ndarray")?) {
        return Ok(data.clone());
    }
    let memory = import(data, Request::shared(Some(Target::Host)))?.acquired(py)?;
    array_over(py, &memory, memory.readonly())
}

/// Return a CuPy array over the memory of any array on a GPU. Never copies.
///
/// Parameters
/// ----------
/// data
///     A CuPy array, or an array with memory on a GPU, as for `as_storage`. A buffer there is
///     preferred to one on the host. An object with an `acquire` function is acquired, and released
///     when the CuPy array and every view of it are gone.
///
/// Returns
/// -------
/// cupy.ndarray
///     `data` itself if it is one; else an array that holds the producer's memory. CuPy has no
///     read-only arrays: do not write one whose producer forbids it.
///
/// Raises
/// ------
/// ImportError
///     Without CuPy.
/// GTNoSuchBufferError
///     If `data` has no memory on a GPU. Copying is left to ``cupy.asarray``.
/// TypeError, BufferError, DeviceUnavailable
///     As `as_storage`.
///
/// Notes
/// -----
/// Storage allocation note, "Supported Buffer Interfaces".
#[pyfunction]
pub(crate) fn as_cupy<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = data.py();
    let _inside = Inside::enter(py);
    let cupy = cupy_module(py, "as_cupy", OTHER_LIBRARIES)?;
    if data.is_instance(&cupy.getattr(intern!(py, "ndarray"))?)? {
        return Ok(data.clone());
    }
    if let Ok(storage) = data.cast::<PyStorage>() {
        return cupy_to_read(storage, "as_cupy");
    }
    let arrival = import(data, Request::computation(Target::Gpu(None)))?;
    let device = arrival.memory.device();
    if !Target::Gpu(None).reaches(device) {
        let text = format!(
            "as_cupy: expected memory on a GPU, got memory on {device}; copy it there with \
             cupy.asarray(dlfield.as_numpy(...))"
        );
        return Err(absent(py, text));
    }
    let memory = arrival.acquired(py)?;
    let readonly = memory.readonly();
    cupy.call_method1(intern!(py, "asarray"), (PyDeviceArray::new(memory, readonly),))
}

/// Put an array into a storage as `as_storage(data, managed=None)` does, but acquire nothing.
///
/// The values may be old. Raises what `as_storage` raises.
#[pyfunction]
pub(crate) fn look_at(data: &Bound<'_, PyAny>) -> PyResult<Py<PyStorage>> {
    let (py, arrival) = (data.py(), import(data, Request::SHARED)?);
    let spec = Spec { managed: Some(ManagedBy::Nobody), ..arrival.spec().into_owned() };
    let storage = py.detach(|| match &arrival.storage {
        Some(storage) => storage.wrap_again(None, &spec),
        None => Storage::wrap(arrival.memory.clone(), &spec),
    })?;
    PyStorage::wrap(py, storage, arrival.door)
}

/// Return the index of the first storage of a tuple that is also held elsewhere.
///
/// That is the storage itself, a view or an export of it. None if only the tuple holds them.
#[pyfunction]
pub(crate) fn first_held(storages: &Bound<'_, PyTuple>) -> PyResult<Option<usize>> {
    for (index, item) in storages.iter_borrowed().enumerate() {
        if references(&item) > 1 || item.cast::<PyStorage>()?.get().is_shared(item.py()) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Return the names of the doors that an object has, usable or not.
#[pyfunction]
#[pyo3(name = "doors_of")]
pub(crate) fn doors<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    let _inside = Inside::enter(data.py());
    PyTuple::new(data.py(), door_names(data))
}

/// Read a value of the option `device`: None for the host, ("gpu", n) for a GPU; n is None for any.
#[pyfunction]
pub(crate) fn device_of(
    device: &Bound<'_, PyAny>,
) -> PyResult<Option<(&'static str, Option<i32>)>> {
    Ok(match read_device(device)? {
        Target::Host => None,
        Target::Gpu(number) => Some(("gpu", number)),
    })
}

/// Return the options that the name of a class decides: `device`, and on a GPU `managed`.
///
/// Empty for `Storage`, None for a class that is not a kind of storage.
#[pyfunction]
#[pyo3(signature = (cls, /))]
pub(crate) fn class_options<'py>(cls: &Bound<'py, PyType>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let py = cls.py();
    let options = PyDict::new(py);
    let on_gpu = [
        (py.get_type::<GpuStorage>(), ManagedBy::Nobody),
        (py.get_type::<SoftwareManagedGpuStorage>(), ManagedBy::Dlfield),
        (py.get_type::<CudaManagedGpuStorage>(), ManagedBy::Cuda),
    ];
    if let Some((_, managed)) = on_gpu.iter().find(|(kind, _)| kind.is(cls)) {
        options.set_item("device", "gpu")?;
        options.set_item("managed", managed_name(*managed))?;
    } else if cls.is(py.get_type::<CpuStorage>()) {
        options.set_item("device", py.None())?;
    } else if !cls.is(py.get_type::<PyStorage>()) {
        return Ok(None);
    }
    Ok(Some(options))
}

/// Count the blocks of memory, on the host and on GPUs, that dlfield has allocated and not freed.
#[pyfunction]
pub(crate) fn live_allocations() -> usize {
    alloc::live_allocations()
}

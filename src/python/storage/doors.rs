//! What the doors of the classes do. Which class has which door is in `host` and `device`.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use super::class::{PyStorage, copy_with};
use crate::device::Device;
use crate::managed::Managed;
use crate::protocol::{array_interface, cuda_array_interface, dlpack, gt4py};
use crate::python::exceptions::absent;
use crate::python::numpy::array_over;
use crate::storage::{Residence, Spec};

/// A NumPy array over the host's buffer; read-only where that is.
pub(super) fn array<'py>(slf: &Bound<'py, PyStorage>, what: &str) -> PyResult<Bound<'py, PyAny>> {
    let host = slf.get().host(slf.py(), what)?;
    array_over(slf.py(), &host, host.readonly())
}

/// NumPy's `__array__`.
pub(super) fn array_as<'py>(
    slf: &Bound<'py, PyStorage>,
    dtype: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let array = array(slf, "__array__")?;
    let numpy = slf.py().import("numpy")?;
    let own = array.getattr("dtype")?;
    let other = match dtype.filter(|dtype| !dtype.is_none()) {
        Some(dtype) => Some(numpy.call_method1("dtype", (dtype,))?)
            .filter(|other| !own.eq(other).unwrap_or(false)),
        None => None,
    };
    match (other, copy) {
        (Some(other), Some(false)) => Err(PyValueError::new_err(format!(
            "__array__: expected the storage's dtype {own} with copy=False, got {other}; pass copy=None"
        ))),
        (Some(other), _) => array.call_method1("astype", (other,)),
        (None, Some(true)) => array.call_method0("copy"),
        (None, _) => Ok(array),
    }
}

/// The array interface of the host's buffer.
pub(super) fn interface<'py>(slf: &Bound<'py, PyStorage>) -> PyResult<Bound<'py, PyDict>> {
    let host = slf.get().host(slf.py(), "__array_interface__")?;
    array_interface::export(slf.py(), &host)?
        .ok_or_else(|| unnamed(slf.py(), "__array_interface__", &host))
}

/// The CUDA array interface of the device's buffer.
pub(super) fn cuda_interface<'py>(slf: &Bound<'py, PyStorage>) -> PyResult<Bound<'py, PyDict>> {
    let device = slf.get().device(slf.py(), "__cuda_array_interface__")?;
    cuda_array_interface::export(slf.py(), &device)?
        .ok_or_else(|| unnamed(slf.py(), "__cuda_array_interface__", &device))
}

/// GDP-3's data interface: each buffer as it is, to be brought up to date by its `acquire`.
pub(super) fn data_interface<'py>(slf: &Bound<'py, PyStorage>) -> PyResult<Bound<'py, PyDict>> {
    let (py, storage) = (slf.py(), slf.get());
    let buffers = storage.buffers();
    let sides = [
        (buffers.of_host(), "device_to_host", "set_host_modified"),
        (buffers.of_device(), "host_to_device", "set_device_modified"),
    ];
    let interface = PyDict::new(py);
    for (at, (side, acquire, touch)) in sides.into_iter().enumerate() {
        let Some(managed) = side else { continue };
        if let Some(timeline) = managed.timeline() {
            timeline.hand_out();
        }
        let entry = if at == 0 {
            array_interface::export(py, managed)?
        } else {
            cuda_array_interface::describe(py, managed)?
        };
        let entry = entry.ok_or_else(|| unnamed(py, "__gt_data_interface__", managed))?;
        gt4py::add_names(&entry, &storage.field())?;
        entry.set_item("acquire", slf.getattr(acquire)?)?;
        entry.set_item("touch", slf.getattr(touch)?)?;
        let key =
            if at == 0 { py.None().into_bound(py) } else { intern!(py, "gpu").clone().into_any() };
        interface.set_item(key, entry)?;
    }
    Ok(interface)
}

/// The device that a capsule without `dl_device` is on.
pub(super) fn announced(storage: &PyStorage) -> Device {
    let buffers = storage.buffers();
    match buffers.of_device().filter(|_| buffers.is_on_device()) {
        Some(device) => device.device().announced(),
        None => buffers.managed().device().announced(),
    }
}

/// A DLPack capsule, of the side that is asked for, or else announced.
pub(super) fn capsule<'py>(
    slf: &Bound<'py, PyStorage>,
    request: &dlpack::ExportRequest<'_, 'py>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let (py, storage) = (slf.py(), slf.get());
    let own = storage.buffers().of_device().map(|one| one.device().announced());
    let answer = request.check(announced(storage), own)?;
    let side = if answer.device.is_host() {
        host_side(py, storage, answer.copy == Some(false))?
    } else {
        Side { memory: storage.device(py, "__dlpack__")?, copied: false }
    };
    if answer.copy != Some(true) || side.copied {
        return dlpack::export(py, &side.memory, answer, side.copied);
    }
    let near = if answer.device.is_host() {
        Residence::Host
    } else {
        Residence::Device(answer.device.ordinal)
    };
    let copied = copy_with(py, &side.memory, &Spec { near, ..Spec::default() })?;
    dlpack::export(py, copied.managed(), answer, true)
}

struct Side {
    memory: Managed,
    copied: bool,
}

/// Memory for a consumer on the host: the buffer there, or a copy of the device's.
fn host_side(py: Python<'_>, storage: &PyStorage, shared: bool) -> PyResult<Side> {
    if storage.buffers().of_host().is_some() {
        return Ok(Side { memory: storage.host(py, "__dlpack__")?, copied: false });
    }
    let device = storage.device(py, "__dlpack__")?;
    if shared {
        return Err(pyo3::exceptions::PyBufferError::new_err(format!(
            "__dlpack__: expected copy=None or True for host memory, got copy=False for memory on {}",
            device.device()
        )));
    }
    let memory = copy_with(py, &device, &Spec::default())?.managed().clone();
    Ok(Side { memory, copied: true })
}

/// Neither array interface has a word for the type of the elements.
fn unnamed(py: Python<'_>, door: &str, managed: &Managed) -> PyErr {
    let dtype = managed.dtype();
    absent(py, format!("{door}: it cannot name {dtype}; use DLPack or to_numpy()"))
}

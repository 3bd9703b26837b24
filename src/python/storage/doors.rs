//! The doors of several classes. `kinds` has those of one kind of memory.

use pyo3::exceptions::PyBufferError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString};

use super::class::{PyStorage, copy_with};
use crate::error::absent;
use crate::managed::Managed;
use crate::protocol::{array_interface, cuda_array_interface, dlpack, gt4py};
use crate::python::numpy::array_over;
use crate::storage::{Residence, Spec};

/// A NumPy array over the host's buffer; read-only where that is.
pub(super) fn array<'py>(slf: &Bound<'py, PyStorage>, what: &str) -> PyResult<Bound<'py, PyAny>> {
    let host = slf.get().host(slf.py(), what)?;
    array_over(slf.py(), host, host.readonly())
}

/// The CUDA array interface of the device's buffer.
pub(super) fn cuda_interface<'py>(slf: &Bound<'py, PyStorage>) -> PyResult<Bound<'py, PyDict>> {
    let device = slf.get().device(slf.py(), "__cuda_array_interface__")?;
    cuda_array_interface::export(slf.py(), device, device.readonly())?
        .ok_or_else(|| unnamed(slf.py(), "__cuda_array_interface__", device))
}

/// GDP-3's data interface: each buffer as it is. Its `acquire` brings it up to date.
pub(super) fn data_interface<'py>(slf: &Bound<'py, PyStorage>) -> PyResult<Bound<'py, PyDict>> {
    let (py, storage) = (slf.py(), slf.get().storage());
    let interface = PyDict::new(py);
    let add = |key, memory, entry: Option<Bound<'py, PyDict>>, acquire, touch| {
        let entry = entry.ok_or_else(|| unnamed(py, "__gt_data_interface__", memory))?;
        gt4py::add_names(&entry, &storage.field())?;
        entry.set_item("acquire", slf.getattr(acquire)?)?;
        entry.set_item("touch", slf.getattr(touch)?)?;
        interface.set_item::<Option<&Bound<'py, PyString>>, _>(key, entry)
    };
    if let Some(host) = storage.host_as_is() {
        let entry = array_interface::export(py, host)?;
        add(None, host, entry, "device_to_host", "set_host_modified")?;
    }
    if let Some(device) = storage.device_as_is() {
        let entry = cuda_array_interface::describe(py, device, device.readonly())?;
        add(Some(intern!(py, "gpu")), device, entry, "host_to_device", "set_device_modified")?;
    }
    Ok(interface)
}

/// A DLPack capsule of the requested side, by default the announced one.
pub(super) fn capsule<'py>(
    slf: &Bound<'py, PyStorage>,
    request: &dlpack::ExportRequest<'_, 'py>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let (py, object) = (slf.py(), slf.get());
    let storage = object.storage();
    let own = storage.device_as_is().map(|one| one.device().announced());
    let terms = request.check(storage.announced(), own)?;
    let from_device = !terms.device.is_host() || storage.host_as_is().is_none();
    let memory = object.side(py, !from_device, "__dlpack__")?;
    let moved = from_device && terms.device.is_host();
    if moved && terms.copy == Some(false) {
        return Err(PyBufferError::new_err(format!(
            "__dlpack__: expected copy=None or True for host memory, got copy=False for memory on \
             {}",
            memory.device()
        )));
    }
    if !moved && terms.copy != Some(true) {
        return dlpack::export(py, memory, terms, false);
    }
    let default_residence = match terms.device {
        device if device.is_host() => Residence::Host,
        device => Residence::Device(device.ordinal),
    };
    let copied = copy_with(py, memory, &Spec { default_residence, ..Spec::default() })?;
    dlpack::export(py, copied.managed(), terms, true)
}

/// The absence of a protocol that cannot name the type of the elements.
pub(super) fn unnamed(py: Python<'_>, door: &str, managed: &Managed) -> PyErr {
    let dtype = managed.dtype();
    absent(py, format!("{door}: it cannot name {dtype}; use DLPack or to_numpy()"))
}

//! The two sides of a storage from Python: numbers and arrays of the host, arrays of the device, and
//! GDP-3's methods that keep both in step.

use pyo3::exceptions::{PyBufferError, PyImportError};
use pyo3::intern;
use pyo3::prelude::*;

use super::class::{PyStorage, copy_with};
use crate::managed::Managed;
use crate::python::numpy::array_over;
use crate::storage::{Buffers, Residence, Spec, Storage};
use crate::sync::Newer;

/// The values of a view on the host, to be read once: its buffer there, or a copy.
pub(super) fn values(py: Python<'_>, storage: &PyStorage, view: &Storage) -> PyResult<Managed> {
    // The state is that of the whole: what the storage brings up to date, the view is.
    if storage.buffers().of_host().is_none() {
        storage.device(py, "values")?;
        return Ok(copy_with(py, view.managed(), &Spec::default())?.managed().clone());
    }
    storage.host(py, "values")?;
    Ok(view.managed().clone())
}

/// Memory that the host can read: the same, or a copy of what is on a device.
pub(super) fn on_host(py: Python<'_>, managed: &Managed) -> PyResult<Managed> {
    if managed.device().is_host() {
        py.detach(|| managed.wait())?; // WAIT before the host reads
        return Ok(managed.clone());
    }
    Ok(copy_with(py, managed, &Spec::default())?.managed().clone())
}

/// A NumPy array to be read once.
pub(super) fn numpy_of<'py>(
    py: Python<'py>,
    storage: &PyStorage,
    view: &Storage,
) -> PyResult<Bound<'py, PyAny>> {
    array_over(py, &values(py, storage, view)?, true)
}

/// The device's buffer alone, up to date, as a storage that speaks the protocols of devices.
pub(super) fn on_device(
    py: Python<'_>,
    storage: &PyStorage,
    what: &str,
) -> PyResult<Py<PyStorage>> {
    let device = storage.device(py, what)?;
    let kind = device.device();
    let of_pair = storage.buffers().seen_as(Residence::Device(kind.ordinal));
    let buffers = of_pair.unwrap_or_else(|| Buffers::Device(device.seen_at(kind.announced())));
    PyStorage::wrap(py, Storage::from_parts(buffers, storage.field()), storage.door())
}

/// A CuPy array over the device's buffer.
pub(super) fn cupy<'py>(
    py: Python<'py>,
    storage: &PyStorage,
    what: &str,
) -> PyResult<Bound<'py, PyAny>> {
    if storage.managed().readonly() {
        storage.device(py, what)?; // where there is none, that counts more
        return Err(PyBufferError::new_err(format!(
            "{what}: expected a writable storage, got a read-only one, which CuPy would write; use copy()"
        )));
    }
    cupy_to_read(py, storage, what)
}

/// As `cupy`, for somebody who does not write it.
pub(super) fn cupy_to_read<'py>(
    py: Python<'py>,
    storage: &PyStorage,
    what: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let side = on_device(py, storage, what)?;
    let cupy = py.import(intern!(py, "cupy")).map_err(|_| {
        PyImportError::new_err(format!(
            "{what}: expected CuPy, whose arrays GDP-3 asks for, got no such module; install cupy, or pass the storage \
             itself to what takes DLPack or __cuda_array_interface__"
        ))
    })?;
    // Of strides below 0 the CUDA array interface alone has a word.
    let reversed = storage.managed().layout().strides().iter().any(|&stride| stride < 0);
    let take = if reversed { intern!(py, "asarray") } else { intern!(py, "from_dlpack") };
    cupy.call_method1(take, (side,))
}

/// Says which buffer of a pair was written.
pub(super) fn set_newer(py: Python<'_>, storage: &PyStorage, newer: Newer) {
    // Without the GIL: another thread may hold the state while it copies.
    py.detach(|| storage.storage().set_newer(newer));
}

/// Copies the host's buffer to the device where it is newer, or in any case, and waits for it: whoever
/// calls this by GDP-3's interface says nothing of a stream.
pub(super) fn host_to_device(py: Python<'_>, storage: &PyStorage, force: bool) -> PyResult<()> {
    let (Buffers::Mirrored(pair) | Buffers::DeviceOf(pair)) = storage.buffers() else {
        return settled(py, storage);
    };
    Ok(py.detach(|| {
        pair.to_device(force)?;
        pair.device().wait() // WAIT since the caller's stream is not known
    })?)
}

/// Copies the device's buffer to the host where it is newer, or in any case, and waits for it.
pub(super) fn device_to_host(py: Python<'_>, storage: &PyStorage, force: bool) -> PyResult<()> {
    let (Buffers::Mirrored(pair) | Buffers::HostOf(pair)) = storage.buffers() else {
        return settled(py, storage);
    };
    Ok(py.detach(|| {
        pair.to_host(force)?;
        pair.host().wait() // WAIT before the host reads
    })?)
}

/// Of one buffer nothing is copied; what dlfield has put on a stream for it is waited for.
fn settled(py: Python<'_>, storage: &PyStorage) -> PyResult<()> {
    let managed = storage.managed();
    if managed.timeline().is_none() {
        return Ok(());
    }
    Ok(py.detach(|| managed.wait())?) // WAIT since the caller's stream is not known
}

//! The doors of the classes: those of every kind of memory, of the host's buffer, of a buffer on a
//! GPU; and what NumPy and CuPy say of the memory of an array.

use std::ffi::c_int;

use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString};
use pyo3::{ffi, intern};

use super::class::{
    CpuStorage, CudaManagedGpuStorage, GpuStorage, HostBacked, PyStorage,
    SoftwareManagedGpuStorage, copy_with,
};
use crate::error::absent;
use crate::interpreter::Inside;
use crate::managed::Managed;
use crate::protocol::buffer::fill_view;
use crate::protocol::{array_interface, cuda_array_interface, dlpack, gt4py};
use crate::python::numpy::array_over;
use crate::python::sync_state::PySyncState;
use crate::storage::{Residence, Spec};

/// A NumPy array over the host's buffer; read-only where that is.
pub(super) fn array<'py>(slf: &Bound<'py, PyStorage>, what: &str) -> PyResult<Bound<'py, PyAny>> {
    let host = slf.get().host(slf.py(), what)?;
    array_over(slf.py(), host, host.readonly())
}

/// The CUDA array interface of the device's buffer.
fn cuda_interface<'py>(slf: &Bound<'py, PyStorage>) -> PyResult<Bound<'py, PyDict>> {
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
fn unnamed(py: Python<'_>, door: &str, managed: &Managed) -> PyErr {
    let dtype = managed.dtype();
    absent(py, format!("{door}: it cannot name {dtype}; use DLPack or to_numpy()"))
}

#[pymethods]
impl PyStorage {
    /// Address of the first element: of the host's buffer, up to date, else of that on a GPU.
    ///
    /// It holds no reference: keep the storage. Say what is written through it with
    /// `set_host_modified()`.
    #[getter]
    fn ptr(&self, py: Python<'_>) -> PyResult<usize> {
        let on_host = self.storage().host_as_is().is_some();
        Ok(self.side(py, on_host, "ptr")?.address())
    }

    /// None: a view holds the memory itself, not the storage that it was made of.
    #[getter]
    fn base(&self, py: Python<'_>) -> Py<PyAny> {
        py.None()
    }

    /// Return what `flags` is made of: C-contiguous, F-contiguous, writeable, aligned, own data.
    fn _flags(&self) -> (bool, bool, bool, bool, bool) {
        let memory = self.storage().managed();
        let layout = memory.layout();
        let (c, f) = (layout.is_c_contiguous(), layout.is_f_contiguous());
        (c, f, !memory.readonly(), memory.is_aligned(), self.door.is_none())
    }

    /// Bytes of the object and of the elements in its buffers, shared or not.
    fn __sizeof__(slf: &Bound<'_, Self>) -> PyResult<usize> {
        let (py, storage) = (slf.py(), slf.get().storage());
        let object: usize =
            py.get_type::<PyAny>().call_method1(intern!(py, "__sizeof__"), (slf,))?.extract()?;
        let layout = storage.managed().layout();
        let repeated_once = layout.nbytes().min(layout.span().len());
        let buffers = if matches!(storage.residence(), Residence::Mirrored(_)) { 2 } else { 1 };
        Ok(object.saturating_add(repeated_once.saturating_mul(buffers)))
    }
}

#[pymethods]
impl HostBacked {
    /// Return the host's buffer as a NumPy array, or a copy as `dtype` and `copy` ask.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _inside = Inside::enter(slf.py());
        let copy = copy.map(PyAnyMethods::is_truthy).transpose()?;
        let array = array(slf.as_super(), "__array__")?;
        let own = array.getattr("dtype")?;
        let dtype = dtype.map(|dtype| slf.py().import("numpy")?.call_method1("dtype", (dtype,)));
        let other = dtype.transpose()?.filter(|other| !own.eq(other).unwrap_or(false));
        match (other, copy) {
            (Some(other), Some(false)) => Err(PyValueError::new_err(format!(
                "__array__: expected the storage's dtype {own} with copy=False, got {other}; pass \
                 copy=None"
            ))),
            (Some(other), _) => array.call_method1("astype", (other,)),
            (None, Some(true)) => array.call_method0("copy"),
            (None, _) => Ok(array),
        }
    }

    /// Copy the values without padding in order "C", "F" or "A", as NumPy and CuPy do.
    #[pyo3(signature = (order = "C"))]
    fn tobytes<'py>(slf: &Bound<'py, Self>, order: &str) -> PyResult<Bound<'py, PyAny>> {
        array(slf.as_super(), "tobytes")?.call_method1("tobytes", (order,))
    }

    /// The array interface, version 3, with explicit strides in bytes.
    ///
    /// It holds no reference: keep the storage. Absent for bfloat16 and float8, which it cannot
    /// name.
    #[getter]
    fn __array_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, name) = (slf.py(), "__array_interface__");
        let host = slf.as_super().get().host(py, name)?;
        array_interface::export(py, host)?.ok_or_else(|| unnamed(py, name, host))
    }

    /// # Safety
    /// The `bf_getbuffer` slot.
    unsafe fn __getbuffer__(
        slf: &Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let memory = slf.as_super().get().host(slf.py(), "buffer")?;
        // SAFETY: Python calls the slot with room for a view; the storage is frozen and owns its
        // memory and the layout that `memory` shares.
        unsafe { fill_view(slf.as_any(), memory, memory.readonly(), view, flags) }
    }
}

#[pymethods]
impl CpuStorage {
    /// `to_numpy()`, which GT4Py reads first.
    #[getter]
    fn ndarray<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        array(slf.as_super().as_super(), "ndarray")
    }
}

#[pymethods]
impl GpuStorage {
    /// Raise BufferError, since NumPy would make an array of one object without this method.
    ///
    /// A GTNoSuchBufferError would be an AttributeError, which `DataArray.values` would report as a
    /// missing property.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__(
        &self,
        dtype: Option<&Bound<'_, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        let _there_is_nothing_to_convert = (dtype, copy);
        let text = "__array__: expected a storage with a buffer on the host, got one on a GPU \
                    alone; use to_cupy(), or storage(..., device='cpu') for a copy";
        Err(PyBufferError::new_err(text))
    }
}

#[pymethods]
impl SoftwareManagedGpuStorage {
    /// Which buffer was modified, shared by all views (GDP-3).
    #[getter]
    fn sync_state<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PySyncState>>> {
        let state = slf.as_super().as_super().get().storage().sync_state();
        state.map(|state| PySyncState::of_pair(slf.py(), state)).transpose()
    }
}

/// Gives a class the door of GPU memory.
macro_rules! with_cuda_array_interface {
    ($($class:ty),+) => {$(
        #[pymethods]
        impl $class {
            /// The CUDA array interface, version 3.
            ///
            /// `stream` is dlfield's if it has work in flight. The interface holds no reference:
            /// keep the storage.
            #[getter]
            fn __cuda_array_interface__<'py>(
                slf: &Bound<'py, Self>,
            ) -> PyResult<Bound<'py, PyDict>> {
                cuda_interface(slf.as_any().cast()?)
            }
        }
    )+};
}

with_cuda_array_interface!(GpuStorage, SoftwareManagedGpuStorage, CudaManagedGpuStorage);

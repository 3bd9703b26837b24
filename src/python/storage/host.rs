//! `CPUStorage`: the doors of host memory.

use std::ffi::c_int;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple, PyType};
use pyo3::{ffi, intern};

use super::class::{CpuStorage, constructed, copy_with};
use crate::managed::Managed;
use crate::protocol::buffer::{Exported, fill_view};
use crate::protocol::{array_interface, dlpack, gt4py};
use crate::python::exceptions::absent;
use crate::python::numpy::array_over;
use crate::storage::Spec;

#[pymethods]
impl CpuStorage {
    /// The same as `storage(...)`, for memory of the kind that the class names.
    #[new]
    #[classmethod]
    #[pyo3(signature = (*data, **options))]
    fn construct<'py>(
        class: &Bound<'py, PyType>,
        data: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        constructed(class, data, options)
    }

    /// The same as `to_numpy()`: what GT4Py reads first.
    #[getter]
    fn ndarray<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let managed = slf.as_super().get().managed();
        array_over(slf.py(), managed, managed.readonly())
    }

    /// NumPy's `__array__`: the memory itself, or a copy where the dtype differs or `copy` is True.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let managed = slf.as_super().get().managed();
        let array = array_over(slf.py(), managed, managed.readonly())?;
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

    /// The array interface, version 3, with explicit strides in bytes. Absent for bfloat16 and
    /// float8, which it cannot name. It holds no reference: keep the storage.
    #[getter]
    fn __array_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let managed = slf.as_super().get().managed();
        array_interface::export(slf.py(), managed)?
            .ok_or_else(|| unnamed(slf.py(), "__array_interface__", managed))
    }

    /// GDP-3's data interface: the host buffer under None, with dims and halo where known. Its
    /// functions hold a reference to the storage.
    #[getter]
    fn __gt_data_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, storage) = (slf.py(), slf.as_super().get());
        let interface = gt4py::export(py, storage.managed(), &storage.field())?
            .ok_or_else(|| unnamed(py, "__gt_data_interface__", storage.managed()))?;
        for (_, host) in &interface {
            host.set_item("acquire", slf.getattr(intern!(py, "device_to_host"))?)?;
            host.set_item("touch", slf.getattr(intern!(py, "set_host_modified"))?)?;
        }
        Ok(interface)
    }

    /// DLPack's device pair: host memory is (1, 0).
    fn __dlpack_device__(slf: &Bound<'_, Self>) -> (i64, i32) {
        let device = slf.as_super().get().managed().device().announced();
        (device.code(), device.ordinal)
    }

    /// A DLPack capsule. Zero-copy unless `copy=True`; the capsule holds a reference.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<&Bound<'py, PyAny>>,
        dl_device: Option<&Bound<'py, PyAny>>,
        copy: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let answer = dlpack::ExportRequest { stream, max_version, dl_device, copy }.check()?;
        let managed = slf.as_super().get().managed();
        if !answer.copy {
            return dlpack::export(slf.py(), managed, answer, false);
        }
        let copied = copy_with(slf.py(), managed, &Spec::default())?;
        dlpack::export(slf.py(), copied.host(), answer, true)
    }

    /// # Safety
    /// The `bf_getbuffer` slot.
    unsafe fn __getbuffer__(
        slf: &Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let managed = slf.as_super().get().managed();
        let readonly = managed.readonly();
        // SAFETY: Python calls the slot with room for a view; the storage is frozen and owns its
        // Managed.
        unsafe { fill_view(slf.as_any(), managed, readonly, view, flags) }
    }

    /// # Safety
    /// The `bf_releasebuffer` slot.
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: Python releases a view of this object, which fill_view filled, once.
        unsafe { Exported::release(view) };
    }
}

/// The array interface has no word for the type of the elements.
fn unnamed(py: Python<'_>, door: &str, managed: &Managed) -> PyErr {
    let dtype = managed.dtype();
    absent(py, format!("{door}: it cannot name {dtype}; use DLPack or to_numpy()"))
}

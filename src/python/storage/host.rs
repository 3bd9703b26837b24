//! `CPUStorage`, and the doors of every class with a buffer on the host.

use std::ffi::c_int;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::class::{CpuStorage, HostBacked, constructed};
use super::doors;
use crate::protocol::buffer::fill_view;

#[pymethods]
impl HostBacked {
    /// NumPy's `__array__`: the host's buffer itself, or a copy where the dtype differs or `copy` is True.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        doors::array_as(slf.as_super(), dtype, copy)
    }

    /// NumPy's and CuPy's `tobytes`: a copy of the values without padding, in order "C", "F" or "A".
    #[pyo3(signature = (order = "C"))]
    fn tobytes<'py>(slf: &Bound<'py, Self>, order: &str) -> PyResult<Bound<'py, PyAny>> {
        doors::array(slf.as_super(), "tobytes")?.call_method1("tobytes", (order,))
    }

    /// The array interface, version 3, with explicit strides in bytes. Absent for bfloat16 and
    /// float8, which it cannot name. It holds no reference: keep the storage.
    #[getter]
    fn __array_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        doors::interface(slf.as_super())
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
        unsafe { fill_view(slf.as_any(), &memory, memory.readonly(), view, flags) }
    }
}

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
        doors::array(slf.as_super().as_super(), "ndarray")
    }
}

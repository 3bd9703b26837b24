//! The doors of the memory that a class has: of the host's buffer, of a buffer on a GPU.

use std::ffi::c_int;

use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::class::{
    CpuStorage, CudaManagedGpuStorage, GpuStorage, HostBacked, SoftwareManagedGpuStorage,
};
use super::doors;
use crate::protocol::array_interface;
use crate::protocol::buffer::fill_view;
use crate::protocol::ending::Inside;
use crate::python::sync_state::PySyncState;

#[pymethods]
impl HostBacked {
    /// Give the host's buffer as a NumPy array, or a copy as `dtype` and `copy` ask.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _inside = Inside::enter(slf.py());
        let array = doors::array(slf.as_super(), "__array__")?;
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
        doors::array(slf.as_super(), "tobytes")?.call_method1("tobytes", (order,))
    }

    /// The array interface, version 3, with explicit strides in bytes.
    ///
    /// It holds no reference: keep the storage. Absent for bfloat16 and float8, which it cannot
    /// name.
    #[getter]
    fn __array_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, name) = (slf.py(), "__array_interface__");
        let host = slf.as_super().get().host(py, name)?;
        array_interface::export(py, host)?.ok_or_else(|| doors::unnamed(py, name, host))
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
        doors::array(slf.as_super().as_super(), "ndarray")
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
                doors::cuda_interface(slf.as_any().cast()?)
            }
        }
    )+};
}

with_cuda_array_interface!(GpuStorage, SoftwareManagedGpuStorage, CudaManagedGpuStorage);

//! The classes with a buffer on a GPU, and the door of GPU memory.

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::class::{CudaManagedGpuStorage, GpuStorage, SoftwareManagedGpuStorage, constructed};
use super::doors;
use crate::python::sync_state::PySyncState;

#[pymethods]
impl GpuStorage {
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

    /// Raises BufferError: NumPy would make an array of one object without it. It is no GTNoSuchBufferError, since
    /// where a property asks, as `DataArray.values` does, an AttributeError says that there is no such property.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__(
        &self,
        dtype: Option<&Bound<'_, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        let _there_is_nothing_to_convert = (dtype, copy);
        let text = "__array__: expected a storage with a buffer on the host, got one on a GPU alone; use to_cupy(), or \
                    storage(..., device='cpu') for a copy";
        Err(PyBufferError::new_err(text))
    }

    /// The CUDA array interface, version 3. `stream` is dlfield's where it has work in flight. It holds
    /// no reference: keep the storage.
    #[getter]
    fn __cuda_array_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        doors::cuda_interface(slf.as_super())
    }
}

#[pymethods]
impl SoftwareManagedGpuStorage {
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

    /// The CUDA array interface, version 3, of the GPU's buffer, brought up to date. `stream` is
    /// dlfield's where it has work in flight. It holds no reference: keep the storage.
    #[getter]
    fn __cuda_array_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        doors::cuda_interface(slf.as_super().as_super())
    }

    /// Which buffer was modified, shared by all views (GDP-3).
    #[getter]
    fn sync_state(slf: &Bound<'_, Self>) -> Option<Py<PySyncState>> {
        slf.as_super().as_super().get().sync().map(|sync| sync.clone_ref(slf.py()))
    }
}

#[pymethods]
impl CudaManagedGpuStorage {
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

    /// The CUDA array interface, version 3. `stream` is dlfield's where it has work in flight. It holds
    /// no reference: keep the storage.
    #[getter]
    fn __cuda_array_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        doors::cuda_interface(slf.as_super().as_super())
    }
}

//! The classes: `Storage` with what every storage knows, `CPUStorage` with the doors of host
//! memory. Doors live on the class that can serve them, so that `hasattr` tells the truth.

use std::ffi::c_int;

use pyo3::exceptions::{PyAttributeError, PyImportError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer;
use pyo3::types::{PyCapsule, PyDict, PyTuple};

use super::exceptions::absent;
use super::jax;
use super::numpy::{array_over, dtype_to};
use crate::field::Dim;
use crate::managed::Managed;
use crate::protocol::buffer::{Exported, fill_view};
use crate::protocol::dlpack::exchange::{self, Exchanged};
use crate::protocol::keep::Keep;
use crate::protocol::{array_interface, dlpack, gt4py};
use crate::storage::{Spec, Storage};

/// A field: memory with named dimensions, halo and alignment.
///
/// Made by `zeros`, `as_storage` and their like. Every view, capsule and exported array holds one
/// reference to the memory, which is freed or given back when the last of them is gone. Strides
/// are in bytes, as in NumPy.
#[pyclass(subclass, frozen, weakref, name = "Storage", module = "dlfield")]
pub(super) struct PyStorage {
    inner: Keep<Storage>,
    door: Option<&'static str>,
}

/// A storage in host memory.
#[pyclass(frozen, extends = PyStorage, name = "CPUStorage", module = "dlfield")]
pub(super) struct CpuStorage;

impl PyStorage {
    /// A new Python object for a storage that came through `door` (`None`: allocated here).
    pub(super) fn wrap(
        py: Python<'_>,
        inner: Storage,
        door: Option<&'static str>,
    ) -> PyResult<Py<CpuStorage>> {
        Py::new(
            py,
            PyClassInitializer::from(Self { inner: Keep::new(inner), door })
                .add_subclass(CpuStorage),
        )
    }

    pub(super) fn storage(&self) -> &Storage {
        &self.inner
    }

    pub(super) fn door(&self) -> Option<&'static str> {
        self.door
    }

    /// Where stencils begin, as somebody gave it.
    fn origin<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyTuple>> {
        match &self.inner.field().origin {
            Some(origin) => PyTuple::new(py, origin),
            None => Err(PyAttributeError::new_err(format!(
                "{name}: the storage was made without default_origin="
            ))),
        }
    }
}

impl Exchanged for PyStorage {
    fn managed(&self) -> &Managed {
        self.inner.host()
    }

    fn wrap(py: Python<'_>, managed: Managed) -> PyResult<Py<PyAny>> {
        let storage = Storage::wrap(managed, &Spec::default())?;
        Ok(Self::wrap(py, storage, Some("dlpack_c_exchange_api"))?.into_any())
    }
}

#[pymethods]
impl PyStorage {
    /// NumPy's ufuncs do not work on storages (GDP-3); this makes them say so.
    #[classattr]
    fn __array_ufunc__(py: Python<'_>) -> Py<PyAny> {
        py.None()
    }

    /// DLPack's C exchange table.
    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Py<PyCapsule>> {
        Ok(exchange::capsule::<Self>(py)?.unbind())
    }

    /// Extents of the dimensions, in elements.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.managed().layout().shape())
    }

    /// Strides of the dimensions, in bytes.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.managed().layout().byte_strides())
    }

    /// The NumPy dtype of an element.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtype_to(py, self.managed().dtype())
    }

    /// Number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.managed().layout().ndim()
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.managed().layout().size()
    }

    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.managed().dtype().itemsize()
    }

    /// Bytes of all elements, without padding.
    #[getter]
    fn nbytes(&self) -> usize {
        self.managed().layout().nbytes()
    }

    /// Names of the dimensions, or None where nobody gave any.
    #[getter]
    fn dims<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let names = |dims: &[Dim]| PyTuple::new(py, dims.iter().map(Dim::to_string));
        self.inner.field().dims.as_deref().map(names).transpose()
    }

    /// Points below and above the domain in each dimension: zeros where none was given.
    #[getter]
    fn halo<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.inner
            .field()
            .halo
            .as_deref()
            .map(|halo| PyTuple::new(py, halo.iter().copied()))
            .transpose()
    }

    /// Rank of each dimension's stride: 0 is the largest, `ndim - 1` the smallest (GDP-3).
    #[getter]
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.managed().layout().ranks())
    }

    /// Index of the element that `alignment_size` is about; the lower halo unless given.
    #[getter]
    fn aligned_index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.field().aligned_index(self.ndim()))
    }

    /// Requested alignment of the aligned element in bytes; 1 asks for nothing.
    #[getter]
    fn alignment_size(&self) -> usize {
        self.inner.field().alignment.max(1)
    }

    /// Whether the memory must not be written, because its producer forbids it.
    #[getter]
    fn readonly(&self) -> bool {
        self.managed().readonly()
    }

    /// None: a host storage has no device buffer (GDP-3).
    #[getter]
    fn device(&self, py: Python<'_>) -> Py<PyAny> {
        py.None()
    }

    /// The protocol that the memory came through, or None where dlfield allocated it.
    #[getter(door)]
    fn door_name(&self) -> Option<&'static str> {
        self.door
    }

    /// The part inside the halo, as a view whose halo is 0. Copies nothing.
    #[getter]
    fn domain_view(&self, py: Python<'_>) -> PyResult<Py<CpuStorage>> {
        Self::wrap(py, self.inner.domain_view()?, self.door)
    }

    /// `__gt_dims__`, for GT4Py stencils: only where every name is I, J, K or a decimal.
    #[getter]
    fn __gt_dims__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match self.inner.field().dims.as_deref() {
            Some(dims) if dims.iter().all(Dim::is_gt4py) => {
                PyTuple::new(py, dims.iter().map(Dim::to_string))
            }
            _ => Err(PyAttributeError::new_err(
                "__gt_dims__: the storage has no dims that GT4Py knows",
            )),
        }
    }

    /// Where stencils begin, in GT4Py's order of dimensions: only where `default_origin=` was given.
    #[getter]
    fn __gt_origin__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.origin(py, "__gt_origin__")
    }

    /// The same, under the name of the storage allocation note.
    #[getter]
    fn default_origin<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.origin(py, "default_origin")
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let py = slf.py();
        let managed = slf.get().managed();
        let values = match array_over(py, managed, true) {
            Err(error) if error.is_instance_of::<PyImportError>(py) => {
                return Ok(format!("<{} {}>", slf.get_type().name()?, *slf.get().inner));
            }
            answer => answer?,
        };
        let shown = py.import("numpy")?.call_method1("array2string", (values,))?;
        Ok(format!("<{} {}>\n{shown}", slf.get_type().name()?, *slf.get().inner))
    }
}

#[pymethods]
impl CpuStorage {
    /// A NumPy array over the memory, in the storage's axis order. Zero-copy; read-only where the
    /// storage is.
    fn to_numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let managed = slf.as_super().get().managed();
        array_over(slf.py(), managed, managed.readonly())
    }

    /// The same as `to_numpy()`: what GT4Py reads first.
    #[getter]
    fn ndarray<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::to_numpy(slf)
    }

    /// NumPy's `__array__`: the memory itself, or a copy where the dtype differs or `copy` is True.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = Self::to_numpy(slf)?;
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

    /// A JAX array over the memory. Zero-copy, or an error: JAX is never made to copy silently.
    ///
    /// JAX arrays are immutable: do not write the storage afterwards. `copy=True` copies.
    #[pyo3(signature = (copy = None))]
    fn to_jax<'py>(slf: &Bound<'py, Self>, copy: Option<bool>) -> PyResult<Bound<'py, PyAny>> {
        jax::to_jax(slf.py(), slf.as_super().get().managed(), copy)
    }

    /// The array interface, version 3, with explicit strides in bytes. Absent for bfloat16 and
    /// float8, which it cannot name. It holds no reference: keep the storage.
    #[getter]
    fn __array_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let managed = slf.as_super().get().managed();
        array_interface::export(slf.py(), managed)?
            .ok_or_else(|| unnamed(slf.py(), "__array_interface__", managed))
    }

    /// GDP-3's data interface: the host buffer under None, with dims and halo where known. It
    /// holds no reference: keep the storage.
    #[getter]
    fn __gt_data_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let storage = slf.as_super().get().storage();
        gt4py::export(slf.py(), storage.host(), storage.field())?
            .ok_or_else(|| unnamed(slf.py(), "__gt_data_interface__", storage.host()))
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
        let copied = copy_of(slf.py(), managed)?;
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

/// A copy in the same order, made without holding the GIL.
pub(super) fn copy_of(py: Python<'_>, managed: &Managed) -> PyResult<Storage> {
    copy_with(py, managed, &Spec::default())
}

/// A copy as `spec` wishes, made without holding the GIL.
pub(super) fn copy_with(py: Python<'_>, managed: &Managed, spec: &Spec) -> PyResult<Storage> {
    // SAFETY: the values are the user's to guard against other threads, as in NumPy; the copy
    // reads bytes and no type of it has invalid patterns.
    Ok(py.detach(|| unsafe { Storage::copy_of(managed, spec) })?)
}

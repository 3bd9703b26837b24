//! `Storage`: what every storage knows and does, wherever its memory is.

use pyo3::exceptions::{PyAttributeError, PyBufferError, PyImportError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple, PyType};

use super::class::{PyStorage, constructed, copy_with};
use super::{assign, key, pickle, sides, transpose};
use crate::error::DeviceUnavailable;
use crate::field::Dim;
use crate::protocol::dlpack::exchange;
use crate::python::numpy::dtype_to;
use crate::python::options::read_halo;
use crate::storage::Spec;

impl PyStorage {
    /// Where stencils begin, as somebody gave it.
    fn origin<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyTuple>> {
        match &self.field().origin {
            Some(origin) => PyTuple::new(py, origin),
            None => Err(PyAttributeError::new_err(format!(
                "{name}: expected an origin, got a storage made without default_origin= or a view that has not kept \
                 it; pass origin= to the stencil"
            ))),
        }
    }

    /// The same values, names, halo and wishes in memory of its own.
    fn copied(&self, py: Python<'_>) -> PyResult<Py<PyStorage>> {
        let field = self.field();
        let unknown_halo = field.halo.is_none();
        let near = self.residence();
        let spec = Spec { field: (*field).clone(), unknown_halo, near, ..Spec::default() };
        Self::wrap(py, copy_with(py, self.newest(py)?, &spec)?, None)
    }
}

#[pymethods]
impl PyStorage {
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
        self.field().dims.as_deref().map(names).transpose()
    }

    /// Points below and above the domain in each dimension. None: unknown, as in a view that
    /// leaves out every other point of a dimension with a halo.
    #[getter]
    fn halo<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let field = self.field();
        field.halo.as_deref().map(|halo| PyTuple::new(py, halo.iter().copied())).transpose()
    }

    /// Takes what the option `halo` takes, or None. The aligned element stays where it is; views
    /// that exist keep their halo.
    #[setter]
    fn set_halo(&self, halo: &Bound<'_, PyAny>) -> PyResult<()> {
        let halo = if halo.is_none() { None } else { Some(read_halo(halo)?) };
        self.put_halo(halo)
    }

    /// Rank of each dimension's stride: 0 is the largest, `ndim - 1` the smallest (GDP-3).
    #[getter]
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.storage().ranks())
    }

    /// Index of the element that `alignment_size` is about; the lower halo unless given.
    #[getter]
    fn aligned_index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.field().aligned_index(self.ndim()))
    }

    /// Requested alignment of the aligned element in bytes; 1 asks for nothing.
    #[getter]
    fn alignment_size(&self) -> usize {
        self.field().alignment.max(1)
    }

    /// Whether the memory must not be written, because its producer forbids it.
    #[getter]
    fn readonly(&self) -> bool {
        self.managed().readonly()
    }

    /// The protocol that the memory came through, or None where dlfield allocated it.
    #[getter(door)]
    fn door_name(&self) -> Option<&'static str> {
        self.door()
    }

    /// The part inside the halo, as a view whose halo is 0. Copies nothing.
    #[getter]
    fn domain_view(&self, py: Python<'_>) -> PyResult<Py<PyStorage>> {
        self.view(py, self.storage().domain_view()?)
    }

    /// A view with the dimensions in the opposite order. Copies nothing.
    #[getter(T)]
    fn transposed(&self, py: Python<'_>) -> PyResult<Py<PyStorage>> {
        transpose::reversed(self, py)
    }

    /// A view with the dimensions in another order, as numpy.ndarray.transpose; names, halo and
    /// alignment go with them. Axes are numbers, or names where the storage has dims:
    /// `field.transpose("K", "J", "I")`. Copies nothing.
    #[pyo3(signature = (*axes))]
    fn transpose(&self, axes: &Bound<'_, PyTuple>) -> PyResult<Py<PyStorage>> {
        transpose::transpose(self, axes)
    }

    /// A storage of its own with the same values, names, halo, layout and alignment.
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyStorage>> {
        self.copied(py)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Py<PyStorage>> {
        self.copied(py)
    }

    #[pyo3(signature = (_memo = None, /))]
    fn __deepcopy__(
        &self,
        py: Python<'_>,
        _memo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyStorage>> {
        self.copied(py)
    }

    /// Values, names, halo, layout and alignment; with protocol 5 the values may go out of band.
    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, protocol: i32) -> PyResult<Bound<'py, PyTuple>> {
        pickle::reduce(slf, protocol)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        pickle::reduce(slf, 2)
    }

    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        key::get(slf, key)
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        assign::set(slf, key, value)
    }

    fn __delitem__(&self, _key: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyValueError::new_err("cannot delete array elements")) // as NumPy says it
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.managed().layout().shape().first().copied();
        first.and_then(|extent| usize::try_from(extent).ok()).ok_or_else(|| {
            PyTypeError::new_err("len: expected at least one dimension, got a storage without any")
        })
    }

    /// One element as a Python number: the only one, or the one at the index given.
    #[pyo3(signature = (*index))]
    fn item<'py>(&self, index: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        sides::numpy_of(index.py(), self, &self.storage())?.call_method1("item", index)
    }

    /// `__gt_dims__`, for GT4Py stencils: only where every name is I, J, K or a decimal.
    #[getter]
    fn __gt_dims__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match self.field().dims.as_deref() {
            Some(dims) if dims.iter().all(Dim::is_gt4py) => {
                PyTuple::new(py, dims.iter().map(Dim::to_string))
            }
            _ => Err(PyAttributeError::new_err(
                "__gt_dims__: the storage has no dims that GT4Py knows",
            )),
        }
    }

    /// Where stencils begin, in GT4Py's order of dimensions: only where `default_origin=` was given.
    /// A view that leaves the point out, skips elements or has a new axis has none.
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
        let (py, first) =
            (slf.py(), format!("<{} {}>", slf.get_type().name()?, slf.get().storage()));
        let values = match sides::numpy_of(py, slf.get(), &slf.get().storage()) {
            Err(error) if cannot_be_shown(py, &error) => return Ok(first),
            answer => answer?,
        };
        let shown = py.import("numpy")?.call_method1("array2string", (values,))?;
        Ok(format!("{first}\n{shown}"))
    }
}

/// Values that NumPy has no type for, that lie where dlfield cannot copy from, or on a device that has
/// failed.
fn cannot_be_shown(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyImportError>(py)
        || error.is_instance_of::<PyBufferError>(py)
        || error.is_instance_of::<DeviceUnavailable>(py)
}

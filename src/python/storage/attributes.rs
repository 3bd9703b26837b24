//! `Storage`: attributes and methods of every storage, wherever its memory is.

use pyo3::exceptions::{PyAttributeError, PyBufferError, PyImportError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple, PyType};

use super::class::PyStorage;
use super::{assign, key, pickle, sides, transpose};
use crate::error::DeviceUnavailable;
use crate::field::Dim;
use crate::interpreter::Inside;
use crate::protocol::dlpack::exchange;
use crate::python::numpy::dtype_to;
use crate::python::options::{read_halo, texts};
use crate::python::sync_state::PySyncState;

impl PyStorage {
    /// The default origin of stencils.
    fn origin<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyTuple>> {
        match &self.storage().field().origin {
            Some(origin) => PyTuple::new(py, origin),
            None => Err(PyAttributeError::new_err(format!(
                "{name}: expected an origin, got a storage made without default_origin= or a view \
                 that has not kept it; pass origin= to the stencil"
            ))),
        }
    }
}

#[pymethods]
impl PyStorage {
    /// The class of `sync_state` (GDP-3).
    #[classattr]
    #[pyo3(name = "SyncState")]
    fn sync_state_class(py: Python<'_>) -> Py<PyType> {
        py.get_type::<PySyncState>().unbind()
    }

    /// DLPack's C exchange table.
    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Py<PyCapsule>> {
        Ok(exchange::capsule(py)?.unbind())
    }

    /// Extents of the dimensions, in elements.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.storage().shape())
    }

    /// Strides of the dimensions, in bytes.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.storage().managed().layout().byte_strides())
    }

    /// NumPy dtype of an element.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtype_to(py, self.storage().dtype())
    }

    /// Number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.storage().managed().layout().ndim()
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.storage().managed().layout().size()
    }

    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.storage().dtype().itemsize()
    }

    /// Bytes of all elements, without padding.
    #[getter]
    fn nbytes(&self) -> usize {
        self.storage().managed().layout().nbytes()
    }

    /// Names of the dimensions; None without names.
    #[getter]
    fn dims<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.storage().field().dims.as_deref().map(|dims| texts(py, dims)).transpose()
    }

    #[setter]
    fn set_dims(&self, _dims: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyAttributeError::new_err(
            "dims: expected names that stay, got others; storage.rename(...) or \
             dlfield.as_storage(storage, dims=...) gives a storage that has them",
        ))
    }

    /// Points below and above the domain in each dimension.
    ///
    /// None if unknown, as in a view that skips points of a dimension with a halo. Can be set to
    /// what the option `halo` takes, or None. The aligned element does not move, and existing views
    /// keep their halo.
    #[getter]
    fn halo<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let field = self.storage().field();
        field.halo.as_deref().map(|halo| PyTuple::new(py, halo.iter().copied())).transpose()
    }

    #[setter]
    fn set_halo(&self, halo: &Bound<'_, PyAny>) -> PyResult<()> {
        let _inside = Inside::enter(halo.py());
        let dims = self.storage().dims();
        let halo = if halo.is_none() { None } else { Some(read_halo(halo, dims.as_ref())?) };
        Ok(self.storage().set_halo(halo)?)
    }

    /// Rank of each dimension's stride: 0 is the largest, `ndim - 1` the smallest (GDP-3).
    #[getter]
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.storage().ranks())
    }

    /// Index of the element that `alignment_size` aligns; by default the lower halo.
    #[getter]
    fn aligned_index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.storage().field().aligned_index(self.ndim()))
    }

    /// Requested alignment of the aligned element, in bytes; 1 if none was requested.
    #[getter]
    fn alignment_size(&self) -> usize {
        self.storage().field().alignment.max(1)
    }

    /// True if the producer of the memory forbids to write it.
    #[getter]
    fn readonly(&self) -> bool {
        self.storage().managed().readonly()
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

    /// Return a view with the dimensions in another order. Copies nothing.
    ///
    /// Parameters
    /// ----------
    /// *axes
    ///     Numbers as for `numpy.ndarray.transpose`, or names if the storage has dims:
    ///     `field.transpose("K", "J", "I")`. Names, halo and alignment go with their axes.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the axes are not a permutation, or a name is not one of the storage's dims.
    #[pyo3(signature = (*axes))]
    fn transpose(&self, axes: &Bound<'_, PyTuple>) -> PyResult<Py<PyStorage>> {
        transpose::transpose(self, axes)
    }

    /// Return the same memory under other names, in the order of the dimensions.
    fn _with_dims(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Py<PyStorage>> {
        let names = names.iter().map(|name| Dim::from_name(name));
        self.view(py, self.storage().with_dims(names)?)
    }

    /// Return a new storage with the same values, names, halo, layout and alignment.
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyStorage>> {
        Self::wrap(py, py.detach(|| self.storage().copy())?, None)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Py<PyStorage>> {
        self.copy(py)
    }

    #[pyo3(signature = (_memo = None, /))]
    fn __deepcopy__(&self, py: Python<'_>, _memo: Option<Py<PyAny>>) -> PyResult<Py<PyStorage>> {
        self.copy(py)
    }

    /// Pickle values, names, halo, layout and alignment.
    ///
    /// With protocol 5 the values may travel out of band.
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
        let first = self.storage().shape().first().copied();
        first.and_then(|extent| usize::try_from(extent).ok()).ok_or_else(|| {
            PyTypeError::new_err("len: expected at least one dimension, got a storage without any")
        })
    }

    /// Return one element as a Python number: the only one, or the one at an index.
    #[pyo3(signature = (*index))]
    fn item<'py>(&self, index: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let _inside = Inside::enter(index.py());
        sides::numpy_of(index.py(), self.storage())?.call_method1("item", index)
    }

    /// Names for GT4Py stencils; absent unless each is I, J, K or a decimal.
    #[getter]
    fn __gt_dims__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match self.storage().field().dims.as_deref() {
            Some(dims) if dims.iter().all(Dim::is_gt4py) => texts(py, dims),
            _ => Err(PyAttributeError::new_err(
                "__gt_dims__: the storage has no dims that GT4Py knows",
            )),
        }
    }

    /// Where stencils begin, in GT4Py's order of dimensions (I, J, K, data dimensions).
    ///
    /// In the order of the axes if GT4Py does not know all names. Negative if the memory begins after
    /// that point, as in a gt4py.next field that begins above 0. Absent unless
    /// `default_origin=` was given or the array had one, and for a view that excludes the point, skips
    /// elements or has a new axis.
    #[getter]
    fn __gt_origin__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.origin(py, "__gt_origin__")
    }

    /// `__gt_origin__`, under the name of the storage allocation note.
    #[getter]
    fn default_origin<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.origin(py, "default_origin")
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let _inside = Inside::enter(slf.py());
        let (py, first) =
            (slf.py(), format!("<{} {}>", slf.get_type().name()?, slf.get().storage()));
        let values = match sides::numpy_of(py, slf.get().storage()) {
            Err(error) if cannot_be_shown(py, &error) => return Ok(first),
            answer => answer?,
        };
        let shown = py.import("numpy")?.call_method1("array2string", (values,))?;
        Ok(format!("{first}\n{shown}"))
    }
}

/// True if NumPy has no type for the values, dlfield cannot copy them, or their device has failed.
fn cannot_be_shown(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyImportError>(py)
        || error.is_instance_of::<PyBufferError>(py)
        || error.is_instance_of::<DeviceUnavailable>(py)
}

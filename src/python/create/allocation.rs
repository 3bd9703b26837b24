//! Fresh memory of one kind, again and again: what is requested of it is read once.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::fresh::{allocated, request, wanted};
use crate::alloc::Fill;
use crate::dtype::DType;
use crate::interpreter::Inside;
use crate::layout::Extents;
use crate::python::options::read_shape;
use crate::python::storage::PyStorage;
use crate::storage::Spec;

/// Makes storages of one shape, dtype and kind. Parameters and errors are those of `empty`.
#[pyclass(frozen, module = "dlfield._core")]
pub(crate) struct Allocation {
    shape: Extents,
    dtype: DType,
    spec: Spec,
}

#[pymethods]
impl Allocation {
    #[new]
    #[pyo3(signature = (shape, dtype = None, **options))]
    fn new(
        shape: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let _inside = Inside::enter(shape.py());
        let (dtype, item) = wanted(dtype)?;
        let (mut spec, mut shape) = (Spec::default(), read_shape(shape)?);
        request(&mut spec, &mut shape, item, options)?;
        Ok(Self { shape, dtype, spec })
    }

    /// Allocate a storage of zeros.
    pub(crate) fn zeros(&self, py: Python<'_>) -> PyResult<Py<PyStorage>> {
        allocated(py, &self.shape, self.dtype, &self.spec, Fill::Zeros)
    }

    /// Allocate a storage whose values are undefined.
    fn empty(&self, py: Python<'_>) -> PyResult<Py<PyStorage>> {
        allocated(py, &self.shape, self.dtype, &self.spec, Fill::Nothing)
    }
}

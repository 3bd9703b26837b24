//! Fresh memory like some other: `empty_like`, `zeros_like`, `ones_like`, `full_like`.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::fresh::item_of;
use crate::alloc::Fill;
use crate::dtype::DType;
use crate::python::numpy::dtype_from;
use crate::python::options::{given, is_set, parse};
use crate::python::storage::{PyStorage, Source};
use crate::storage::Storage;

/// Allocate a storage like another, whose values are undefined.
///
/// Parameters
/// ----------
/// data
///     The model: a storage, or an array as for `as_storage`. Shape, dtype, dims, halo, layout,
///     alignment and origin are as in it, unless an option says otherwise. Its values are not read.
/// dtype : optional
///     Of the new storage; the model's by default.
/// **options
///     As for `empty`.
///
/// Returns
/// -------
/// CPUStorage, GPUStorage, SoftwareManagedGPUStorage or CUDAManagedGPUStorage
///     As device and managed say, and as the model by default.
///
/// Raises
/// ------
/// TypeError, BufferError, ValueError, MemoryError, DeviceUnavailable
///     As `as_storage` for the model, and as `empty`.
#[pyfunction]
#[pyo3(signature = (data, dtype = None, **options))]
pub(super) fn empty_like(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    like(py, data, dtype, options, |_| Ok(None))
}

/// Allocate a storage of zeros like another. Parameters, result and errors as for `empty_like`.
#[pyfunction]
#[pyo3(signature = (data, dtype = None, **options))]
pub(super) fn zeros_like(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    like(py, data, dtype, options, |_| Ok(Some(Vec::new())))
}

/// Allocate a storage of ones like another. Parameters, result and errors as for `empty_like`.
#[pyfunction]
#[pyo3(signature = (data, dtype = None, **options))]
pub(super) fn ones_like(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    let one = 1_i32.into_pyobject(py)?.into_any();
    like(py, data, dtype, options, |dtype| item_of(&one, dtype).map(Some))
}

/// Allocate a storage like another with `fill_value` in every element, converted as NumPy does.
///
/// Other parameters, result and errors as for `empty_like`.
#[pyfunction]
#[pyo3(signature = (data, fill_value, dtype = None, **options))]
pub(super) fn full_like(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    like(py, data, dtype, options, |dtype| item_of(fill_value, dtype).map(Some))
}

/// `item` gives the bytes of one item, none for zeros, and `None` for anything.
fn like(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
    item: impl FnOnce(DType) -> PyResult<Option<Vec<u8>>>,
) -> PyResult<Py<PyStorage>> {
    let Source { managed, mut field, near, .. } = Source::of(data)?;
    if options.map(|options| given(options, "dims")).transpose()?.unwrap_or(false) {
        field.dims = None; // of the model: fresh memory may have names of its own
    }
    let dtype = dtype.filter(|dtype| is_set(dtype)).map_or(Ok(managed.dtype()), dtype_from)?;
    let spec = parse(options, field, managed.layout().ndim(), near)?;
    let item = item(dtype)?;
    let fill = match &item {
        None => Fill::Nothing,
        Some(zeros) if zeros.is_empty() => Fill::Zeros,
        Some(item) => Fill::Item(item),
    };
    let storage = py.detach(|| Storage::allocate_like(&managed, dtype, &spec, fill))?;
    PyStorage::wrap(py, storage, None)
}

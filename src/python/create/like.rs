//! Fresh memory like some other: `empty_like`, `zeros_like`, `ones_like`, `full_like`.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt};

use super::fresh::item_of;
use crate::alloc::Fill;
use crate::dtype::DType;
use crate::protocol::{Request, import};
use crate::python::numpy::{dtype_from, import_stand_in};
use crate::python::options::{given, is_set, parse};
use crate::python::storage::PyStorage;
use crate::storage::Storage;

/// Allocate a storage like another, whose values are undefined.
///
/// Parameters
/// ----------
/// data
///     The model: a storage, or an array as for `as_storage`. Shape, dtype, dims, halo, layout,
///     alignment and origin are the model's, unless an option says otherwise. Its values are not
///     read, so that byte-swapped and masked arrays, and tensors that require a gradient, will do.
/// dtype : optional
///     Of the new storage; the model's by default, which has to be one of numbers.
/// **options
///     As for `empty`.
///
/// Returns
/// -------
/// CPUStorage, GPUStorage, SoftwareManagedGPUStorage or CUDAManagedGPUStorage
///     As device and managed say; of the model's kind by default.
///
/// Raises
/// ------
/// TypeError, BufferError, ValueError, MemoryError, DeviceUnavailable
///     As `as_storage` for the model, and as `empty`.
#[pyfunction]
#[pyo3(signature = (data, dtype = None, **options))]
pub(in crate::python) fn empty_like(
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    like(data, dtype, options, |_| Ok(None))
}

/// Allocate a storage of zeros like another.
///
/// Parameters, result and errors are those of `empty_like`.
#[pyfunction]
#[pyo3(signature = (data, dtype = None, **options))]
pub(in crate::python) fn zeros_like(
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    like(data, dtype, options, |_| Ok(Some(Vec::new())))
}

/// Allocate a storage of ones like another.
///
/// Parameters, result and errors are those of `empty_like`.
#[pyfunction]
#[pyo3(signature = (data, dtype = None, **options))]
pub(in crate::python) fn ones_like(
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    let one = PyInt::new(data.py(), 1);
    like(data, dtype, options, |dtype| item_of(&one, dtype).map(Some))
}

/// Allocate a storage like another with `fill_value` in every element, converted as NumPy does.
///
/// Other parameters, result and errors are those of `empty_like`.
#[pyfunction]
#[pyo3(signature = (data, fill_value, dtype = None, **options))]
pub(in crate::python) fn full_like(
    data: &Bound<'_, PyAny>,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    like(data, dtype, options, |dtype| item_of(fill_value, dtype).map(Some))
}

/// `item` gives the bytes of one item, none for zeros, and `None` for anything.
fn like(
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
    item: impl FnOnce(DType) -> PyResult<Option<Vec<u8>>>,
) -> PyResult<Py<PyStorage>> {
    let dtype = dtype.filter(|dtype| is_set(dtype)).map(dtype_from).transpose()?;
    let model = import(data, Request::SHARED);
    let model = model.or_else(|failure| import_stand_in(data, dtype)?.ok_or(failure))?;
    let (memory, mut spec) = (&model.memory, model.spec());
    if options.map(|options| given(options, "dims")).transpose()?.unwrap_or(false) {
        spec.field.dims = None; // those of the model: fresh memory may have names of its own
    }
    let dtype = dtype.unwrap_or(memory.dtype());
    parse(options, &mut spec, memory.layout().ndim())?;
    let item = item(dtype)?;
    let fill = match &item {
        None => Fill::Nothing,
        Some(zeros) if zeros.is_empty() => Fill::Zeros,
        Some(item) => Fill::Item(item),
    };
    let storage = data.py().detach(|| Storage::allocate_like(memory, dtype, &spec, fill))?;
    PyStorage::wrap(data.py(), storage, None)
}

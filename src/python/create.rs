//! The functions that make storages.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::numpy::{array_over, dtype_from, dtype_to};
use super::options::{ints_or_int, is_set, parse};
use super::source::Source;
use super::storage::{CpuStorage, PyStorage, copy_with};
use crate::alloc::Fill;
use crate::dtype::DType;
use crate::field::Field;
use crate::managed::Managed;
use crate::protocol::arrive;
use crate::storage::Storage;

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(empty, module)?)?;
    module.add_function(wrap_pyfunction!(zeros, module)?)?;
    module.add_function(wrap_pyfunction!(ones, module)?)?;
    module.add_function(wrap_pyfunction!(full, module)?)?;
    module.add_function(wrap_pyfunction!(as_storage, module)?)?;
    module.add_function(wrap_pyfunction!(storage, module)?)
}

/// Allocates a storage whose values are undefined.
#[pyfunction]
#[pyo3(signature = (shape, dtype = None, **options))]
fn empty(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<CpuStorage>> {
    allocate(py, &ints_or_int("shape", shape)?, wanted(dtype)?, options, Fill::Nothing)
}

/// Allocates a storage of zeros. No page of it is touched.
#[pyfunction]
#[pyo3(signature = (shape, dtype = None, **options))]
fn zeros(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<CpuStorage>> {
    allocate(py, &ints_or_int("shape", shape)?, wanted(dtype)?, options, Fill::Zeros)
}

/// Allocates a storage of ones.
#[pyfunction]
#[pyo3(signature = (shape, dtype = None, **options))]
fn ones(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<CpuStorage>> {
    let one = 1_i32.into_pyobject(py)?.into_any();
    filled(py, &ints_or_int("shape", shape)?, &one, dtype, options)
}

/// Allocates a storage with `fill_value` in every element.
#[pyfunction]
#[pyo3(signature = (shape, fill_value, dtype = None, **options))]
fn full(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<CpuStorage>> {
    filled(py, &ints_or_int("shape", shape)?, fill_value, dtype, options)
}

fn wanted(dtype: Option<&Bound<'_, PyAny>>) -> PyResult<DType> {
    dtype.filter(|dtype| is_set(dtype)).map_or(Ok(DType::Float64), dtype_from)
}

fn allocate(
    py: Python<'_>,
    shape: &[i64],
    dtype: DType,
    options: Option<&Bound<'_, PyDict>>,
    fill: Fill<'_>,
) -> PyResult<Py<CpuStorage>> {
    let spec = parse(options, Field::default())?;
    let storage = py.detach(|| Storage::allocate(shape, dtype, &spec, fill))?;
    PyStorage::wrap(py, storage, None)
}

/// NumPy turns the value into the bytes of one item, by its own rules of conversion.
fn filled(
    py: Python<'_>,
    shape: &[i64],
    value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<CpuStorage>> {
    let dtype = wanted(dtype)?;
    let item = py.import("numpy")?.call_method1("array", (value, dtype_to(py, dtype)?))?;
    let bytes: Vec<u8> = item.call_method0("tobytes")?.extract()?;
    if bytes.len() != dtype.itemsize() {
        return Err(PyValueError::new_err(format!("fill_value: expected one number, got {value}")));
    }
    allocate(py, shape, dtype, options, Fill::Item(&bytes))
}

/// Puts the memory of an array into a storage without copying it.
#[pyfunction]
#[pyo3(signature = (data, **options))]
fn as_storage(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<CpuStorage>> {
    let source = Source::of(data)?;
    let spec = parse(options, source.field)?;
    PyStorage::wrap(py, Storage::wrap(source.managed, &spec)?, source.door)
}

/// Copies an array into a new storage; with `copy=False` the same as `as_storage`.
#[pyfunction]
#[pyo3(signature = (data, *, dtype = None, copy = true, **options))]
fn storage(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    copy: bool,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<CpuStorage>> {
    let source = if copy { Source::to_copy(data)? } else { Source::of(data)? };
    let dtype =
        dtype.filter(|dtype| is_set(dtype)).map_or(Ok(source.managed.dtype()), dtype_from)?;
    let spec = parse(options, source.field)?;
    match (copy, dtype == source.managed.dtype()) {
        (true, true) => PyStorage::wrap(py, copy_with(py, &source.managed, &spec)?, None),
        (true, false) => PyStorage::wrap(
            py,
            copy_with(py, &converted(py, &source.managed, dtype)?, &spec)?,
            None,
        ),
        (false, true) => PyStorage::wrap(py, Storage::wrap(source.managed, &spec)?, source.door),
        (false, false) => Err(PyValueError::new_err(format!(
            "dtype: expected {}, as the array has, with copy=False, got {dtype}; convert it with astype('{dtype}') first",
            source.managed.dtype()
        ))),
    }
}

/// The values in another type, in the same order of axes, converted by NumPy's rules.
fn converted(py: Python<'_>, managed: &Managed, dtype: DType) -> PyResult<Managed> {
    let array = array_over(py, managed, true)?.call_method1("astype", (dtype_to(py, dtype)?,))?;
    Ok(arrive(&array)?.managed)
}

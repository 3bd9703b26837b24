//! The functions that make storages.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::numpy::{array_over, dtype_from, dtype_to};
use super::options::{ints_or_int, is_set, parse, wants_host};
use super::source::Source;
use super::storage::{CpuStorage, PyStorage, copy_with};
use crate::alloc::Fill;
use crate::dtype::DType;
use crate::field::Field;
use crate::managed::Managed;
use crate::protocol::{Wish, arrive};
use crate::storage::Storage;

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(empty, module)?)?;
    module.add_function(wrap_pyfunction!(zeros, module)?)?;
    module.add_function(wrap_pyfunction!(ones, module)?)?;
    module.add_function(wrap_pyfunction!(full, module)?)?;
    module.add_function(wrap_pyfunction!(as_storage, module)?)?;
    module.add_function(wrap_pyfunction!(storage, module)?)
}

/// Allocate a storage whose values are undefined.
///
/// Parameters
/// ----------
/// shape : int or sequence of int
///     Extents, in elements. Zeros are legal.
/// dtype : optional
///     Anything that numpy.dtype takes; float64 by default. The names of bfloat16 and the float8
///     types need the package ml_dtypes once they are shown to NumPy.
/// dims : sequence of str, optional
///     Names of the dimensions in the order of the axes: "IJK", or any distinct names.
/// halo : sequence of int or (int, int), optional
///     Points around the domain per dimension, for both ends or for each. None by default.
/// backend : str, optional
///     Layout, alignment and device for a GT4Py backend: "numpy", "debug", "gt:cpu_kfirst",
///     "gt:cpu_ifirst", "gt:gpu", "dace:cpu", "dace:cpu_kfirst", "dace:cpu_KJI", "dace:gpu",
///     "dace:gpu_IJK", "gtx86", "gtmc", "gtcuda". Excludes alignment_size, device and layout.
/// defaults : str, optional
///     The same names, and "C" and "F", as a preset that explicit options override.
/// layout : sequence of int, optional
///     Rank of each dimension's stride: 0 is the largest, ndim - 1 is contiguous.
/// alignment_size : int, optional
///     Bytes. Rows are padded so that the aligned element of each lies on such a boundary. With 1,
///     the default, nothing is padded and the first element lies on a boundary of 64 bytes.
/// aligned_index : sequence of int, optional
///     Index of the aligned element; the lower halo by default.
/// device : None or "cpu", optional
///     Where the memory lies. GPU devices are refused for now.
/// managed : optional
///     Who synchronises host and device; has no effect in host memory.
/// default_origin : sequence of int, optional
///     Where stencils begin unless told otherwise, in points, in GT4Py's order of dimensions (I, J,
///     K, data dimensions). GT4Py takes no upper halo from it: it is shown only where given.
///
/// Returns
/// -------
/// CPUStorage
///     Its memory is freed when the last storage, view and export of it is gone.
///
/// Raises
/// ------
/// ValueError
///     For options that cannot hold for the shape or exclude each other, and for more bytes than
///     an address can count.
/// TypeError
///     For unknown options and values of a wrong type.
/// MemoryError
///     Where the system has no more memory.
/// DeviceUnavailable
///     For a GPU device or a preset of a GPU backend.
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

/// Allocate a storage of zeros. No page of it is touched.
///
/// Parameters, result and errors as for `empty`.
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

/// Allocate a storage of ones.
///
/// Parameters, result and errors as for `empty`.
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

/// Allocate a storage with `fill_value` in every element, converted as NumPy does.
///
/// Other parameters, result and errors as for `empty`.
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

/// Put the memory of an array into a storage. Never copies.
///
/// Parameters
/// ----------
/// data
///     A storage, or anything that speaks `__gt_data_interface__`, the buffer protocol, DLPack or
///     the array interface. An xarray.DataArray keeps its dims. JAX and Arrow arrays, and arrays in
///     which several indices name one element, become read-only storages. An object with an
///     `acquire` function is acquired, and released when the last view of it is gone; say `touch`
///     yourself after writing.
/// **options
///     As for `empty`. What is given must hold for the memory already. With device="cpu", memory
///     that host and device share is asked for on the host.
///
/// Returns
/// -------
/// CPUStorage
///     Holds the producer's memory, which is given back when the last view of it is gone.
///
/// Raises
/// ------
/// TypeError
///     Where the object speaks none of the protocols.
/// BufferError
///     Where what it says cannot be used: lies, unsupported types, masked arrays, torch tensors
///     with a pending conjugation, negation or gradient.
/// ValueError
///     For an option that the memory does not meet.
#[pyfunction]
#[pyo3(signature = (data, **options))]
fn as_storage(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<CpuStorage>> {
    let wish = if wants_host(options)? { Wish::OnHost } else { Wish::Share };
    share(py, Source::of_as(data, wish)?, options)
}

/// Copy an array into a new storage; with `copy=False` the same as `as_storage`.
///
/// Parameters
/// ----------
/// data
///     As for `as_storage`; byte-swapped NumPy arrays too.
/// dtype : optional
///     Of the storage; the data's own by default. Another is converted as NumPy's astype does.
/// copy : bool
///     Whether to copy; True by default.
/// **options
///     As for `empty`. Without layout or preset the copy is in the order of the data.
///
/// Returns
/// -------
/// CPUStorage
///
/// Raises
/// ------
/// TypeError, BufferError, ValueError
///     As `as_storage`; ValueError for another dtype with `copy=False`.
#[pyfunction]
#[pyo3(signature = (data, *, dtype = None, copy = true, **options))]
fn storage(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    copy: bool,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<CpuStorage>> {
    let mut source = match (copy, wants_host(options)?) {
        (true, true) => Source::to_copy(data, Wish::CopyToHost)?,
        (true, false) => Source::to_copy(data, Wish::Share)?,
        (false, true) => Source::of_as(data, Wish::OnHost)?,
        (false, false) => Source::of(data)?,
    };
    let found = source.managed.dtype();
    let wanted = dtype.filter(|dtype| is_set(dtype)).map_or(Ok(found), dtype_from)?;
    if !copy {
        return if wanted == found {
            share(py, source, options)
        } else {
            Err(other_dtype(found, wanted))
        };
    }
    let spec = parse(options, source.field.clone())?;
    Storage::check_copy(&source.managed, &spec)?;
    let managed = source.keep(py)?; // acquired until the copy is made
    let managed = if wanted == found { managed } else { converted(py, &managed, wanted)? };
    PyStorage::wrap(py, copy_with(py, &managed, &spec)?, None)
}

fn share(
    py: Python<'_>,
    mut source: Source,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<CpuStorage>> {
    let spec = parse(options, std::mem::take(&mut source.field))?;
    let storage = Storage::wrap(source.managed.clone(), &spec)?;
    if source.hooks.is_empty() {
        return PyStorage::wrap(py, storage, source.door);
    }
    // Nothing is acquired before nothing can be refused any more.
    PyStorage::wrap(py, Storage::wrap(source.keep(py)?, &spec)?, source.door)
}

fn other_dtype(found: DType, wanted: DType) -> PyErr {
    PyValueError::new_err(format!(
        "dtype: expected {found}, as the array has, with copy=False, got {wanted}; convert it with astype('{wanted}') first"
    ))
}

/// The values in another type, in the same order of axes, converted by NumPy's rules.
fn converted(py: Python<'_>, managed: &Managed, dtype: DType) -> PyResult<Managed> {
    let array = array_over(py, managed, true)?.call_method1("astype", (dtype_to(py, dtype)?,))?;
    Ok(arrive(&array)?.managed)
}

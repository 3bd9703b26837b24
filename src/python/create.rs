//! The functions that make storages.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::numpy::{array_over, dtype_and_extents, dtype_from, dtype_to};
use super::options::{ints_or_int, is_set, parse, wants_host};
use super::storage::{CpuStorage, PyStorage, Source, copy_with};
use super::sync_state::SyncState;
use crate::alloc::Fill;
use crate::dtype::DType;
use crate::error::{DeviceUnavailable, Failure};
use crate::field::{Dim, Field, Halo};
use crate::layout::Extents;
use crate::managed::Managed;
use crate::protocol::{Wish, arrive};
use crate::storage::{Spec, Storage};

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(empty, module)?)?;
    module.add_function(wrap_pyfunction!(zeros, module)?)?;
    module.add_function(wrap_pyfunction!(ones, module)?)?;
    module.add_function(wrap_pyfunction!(full, module)?)?;
    module.add_function(wrap_pyfunction!(empty_like, module)?)?;
    module.add_function(wrap_pyfunction!(zeros_like, module)?)?;
    module.add_function(wrap_pyfunction!(ones_like, module)?)?;
    module.add_function(wrap_pyfunction!(full_like, module)?)?;
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
/// CPUStorage
///
/// Raises
/// ------
/// TypeError, BufferError, ValueError, MemoryError, DeviceUnavailable
///     As `as_storage` for the model, and as `empty`.
#[pyfunction]
#[pyo3(signature = (data, dtype = None, **options))]
fn empty_like(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<CpuStorage>> {
    like(py, data, dtype, options, |_| Ok(None))
}

/// Allocate a storage of zeros like another. Parameters, result and errors as for `empty_like`.
#[pyfunction]
#[pyo3(signature = (data, dtype = None, **options))]
fn zeros_like(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<CpuStorage>> {
    like(py, data, dtype, options, |_| Ok(Some(Vec::new())))
}

/// Allocate a storage of ones like another. Parameters, result and errors as for `empty_like`.
#[pyfunction]
#[pyo3(signature = (data, dtype = None, **options))]
fn ones_like(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<CpuStorage>> {
    let one = 1_i32.into_pyobject(py)?.into_any();
    like(py, data, dtype, options, |dtype| item_of(&one, dtype).map(Some))
}

/// Allocate a storage like another with `fill_value` in every element, converted as NumPy does.
///
/// Other parameters, result and errors as for `empty_like`.
#[pyfunction]
#[pyo3(signature = (data, fill_value, dtype = None, **options))]
fn full_like(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<CpuStorage>> {
    like(py, data, dtype, options, |dtype| item_of(fill_value, dtype).map(Some))
}

/// `item` gives the bytes of one item, none for zeros, and `None` for anything.
fn like(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
    item: impl FnOnce(DType) -> PyResult<Option<Vec<u8>>>,
) -> PyResult<Py<CpuStorage>> {
    let Source { managed, field, .. } = Source::of(data)?;
    let dtype = dtype.filter(|dtype| is_set(dtype)).map_or(Ok(managed.dtype()), dtype_from)?;
    let spec = parse(options, field, managed.layout().ndim())?;
    let item = item(dtype)?;
    let fill = match &item {
        None => Fill::Nothing,
        Some(zeros) if zeros.is_empty() => Fill::Zeros,
        Some(item) => Fill::Item(item),
    };
    let storage = py.detach(|| Storage::allocate_like(&managed, dtype, &spec, fill))?;
    PyStorage::wrap(py, storage, None)
}

fn wanted(dtype: Option<&Bound<'_, PyAny>>) -> PyResult<(DType, Vec<i64>)> {
    let float64 = || Ok((DType::Float64, Vec::new()));
    dtype.filter(|dtype| is_set(dtype)).map_or_else(float64, dtype_and_extents)
}

fn allocate(
    py: Python<'_>,
    shape: &Extents,
    (dtype, item): (DType, Vec<i64>),
    options: Option<&Bound<'_, PyDict>>,
    fill: Fill<'_>,
) -> PyResult<Py<CpuStorage>> {
    let mut shape = shape.clone();
    let axes = shape.len();
    shape.extend(item);
    let spec = parse(options, no_halo(axes), shape.len())?;
    let spec = with_data_dims(spec, axes, shape.len());
    let storage = py.detach(|| Storage::allocate(&shape, dtype, &spec, fill))?;
    PyStorage::wrap(py, storage, None)
}

fn no_halo(ndim: usize) -> Field {
    Field { halo: Some(Halo::from_elem((0, 0), ndim)), ..Field::default() }
}

/// What was said about `axes` dimensions holds for `ndim`: those that an item adds are data
/// dimensions, as in GT4Py.
fn with_data_dims(mut spec: Spec, axes: usize, ndim: usize) -> Spec {
    let field = &mut spec.field;
    if let Some(dims) = field.dims.as_mut().filter(|dims| dims.len() == axes) {
        let next = dims
            .iter()
            .filter_map(|dim| if let Dim::Data(number) = dim { Some(number + 1) } else { None });
        let next = next.max().unwrap_or(0);
        dims.extend((next..).map(Dim::Data).take(ndim.saturating_sub(axes)));
    }
    if let Some(halo) = field.halo.as_mut().filter(|halo| halo.len() == axes) {
        halo.resize(ndim, (0, 0));
    }
    for index in [&mut field.aligned_index, &mut field.origin] {
        if let Some(index) = index.as_mut().filter(|index| index.len() == axes) {
            index.resize(ndim, 0);
        }
    }
    spec
}

fn filled(
    py: Python<'_>,
    shape: &Extents,
    value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<CpuStorage>> {
    let dtype = wanted(dtype)?;
    let bytes = item_of(value, dtype.0)?;
    allocate(py, shape, dtype, options, Fill::Item(&bytes))
}

/// NumPy turns a value into the bytes of one item, by its own rules of conversion.
fn item_of(value: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Vec<u8>> {
    let py = value.py();
    let item = py.import("numpy")?.call_method1("array", (value, dtype_to(py, dtype)?))?;
    let bytes: Vec<u8> = item.call_method0("tobytes")?.extract()?;
    if bytes.len() == dtype.itemsize() {
        return Ok(bytes);
    }
    Err(PyValueError::new_err(format!("fill_value: expected one number, got {value}")))
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
#[pyo3(signature = (data = None, device_data = None, *, sync_state = None, **options))]
fn as_storage(
    py: Python<'_>,
    data: Option<&Bound<'_, PyAny>>,
    device_data: Option<&Bound<'_, PyAny>>,
    sync_state: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<CpuStorage>> {
    check_host_only(device_data, sync_state)?;
    let data =
        data.ok_or_else(|| PyTypeError::new_err("as_storage: expected an array, got no data"))?;
    let wish = if wants_host(options)? { Wish::OnHost } else { Wish::Share };
    share(py, Source::of_as(data, wish)?, options)
}

/// Copy an array into a new storage; with `copy=False` the same as `as_storage`.
///
/// Parameters
/// ----------
/// data : optional
///     As for `as_storage`; byte-swapped NumPy arrays, lists and numbers too, which go through
///     NumPy. Without it, a storage of `shape` is allocated, whose values are undefined.
/// device_data : optional
///     As for `as_storage`.
/// dtype : optional
///     Of the storage; the data's own by default. Another is converted as NumPy's astype does.
/// copy : bool
///     Whether to copy; True by default.
/// sync_state : optional
///     As for `as_storage`.
/// **options
///     As for `empty`, and `shape`. Without layout or preset the copy is in the order of the data.
///
/// Returns
/// -------
/// CPUStorage
///
/// Raises
/// ------
/// TypeError, BufferError, ValueError
///     As `as_storage`; ValueError for another dtype with `copy=False`, and for data of another
///     shape than `shape`; TypeError without data and shape.
#[pyfunction]
#[pyo3(signature = (data = None, device_data = None, *, dtype = None, copy = true, sync_state = None, shape = None, **options))]
#[expect(clippy::too_many_arguments, reason = "the signature that GDP-3 gives")]
fn storage(
    py: Python<'_>,
    data: Option<&Bound<'_, PyAny>>,
    device_data: Option<&Bound<'_, PyAny>>,
    dtype: Option<&Bound<'_, PyAny>>,
    copy: bool,
    sync_state: Option<&Bound<'_, PyAny>>,
    shape: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<CpuStorage>> {
    check_host_only(device_data, sync_state)?;
    let shape =
        shape.filter(|shape| is_set(shape)).map(|shape| ints_or_int("shape", shape)).transpose()?;
    let Some(data) = data.filter(|data| !data.is_none()) else {
        let shape = shape.ok_or_else(|| {
            PyTypeError::new_err(
                "storage: expected data or shape=, got neither; there is no default for a shape",
            )
        })?;
        return allocate(py, &shape, wanted(dtype)?, options, Fill::Nothing);
    };
    let mut source = taken(data, copy, wants_host(options)?)?;
    check_shape(&source.managed, shape.as_ref())?;
    let found = source.managed.dtype();
    let wanted = dtype.filter(|dtype| is_set(dtype)).map_or(Ok(found), dtype_from)?;
    if !copy {
        return if wanted == found {
            share(py, source, options)
        } else {
            Err(other_dtype(found, wanted))
        };
    }
    let spec = parse(options, source.field.clone(), source.managed.layout().ndim())?;
    Storage::check_copy(&source.managed, &spec)?;
    let managed = source.keep(py)?; // acquired until the copy is made
    let managed = if wanted == found { managed } else { converted(py, &managed, wanted)? };
    PyStorage::wrap(py, copy_with(py, &managed, &spec)?, None)
}

/// The data as it is, or as far as a copy may change it.
fn taken(data: &Bound<'_, PyAny>, copy: bool, on_host: bool) -> Result<Source, Failure> {
    match (copy, on_host) {
        (true, true) => Source::to_copy(data, Wish::CopyToHost),
        (true, false) => Source::to_copy(data, Wish::Share),
        (false, true) => Source::of_as(data, Wish::OnHost),
        (false, false) => Source::of(data),
    }
}

fn check_shape(managed: &Managed, shape: Option<&Extents>) -> PyResult<()> {
    let found = managed.layout().shape();
    match shape {
        Some(wanted) if wanted.as_slice() != found => Err(PyValueError::new_err(format!(
            "shape: expected {found:?}, as the data has, got {:?}; leave shape out",
            wanted.as_slice()
        ))),
        _ => Ok(()),
    }
}

/// Without a device there is no buffer on it, and nothing to be in step with.
fn check_host_only(
    device_data: Option<&Bound<'_, PyAny>>,
    sync_state: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    if device_data.is_some_and(|data| !data.is_none() && is_set(data)) {
        return Err(DeviceUnavailable::new_err(
            "device_data: expected a CUDA device, got a build without GPU storages; pass host memory as data",
        ));
    }
    match sync_state.filter(|state| !state.is_none() && is_set(state)) {
        Some(state) if !state.is_instance_of::<SyncState>() => Err(PyTypeError::new_err(format!(
            "sync_state: expected a SyncState or None, got {}",
            state.repr()?
        ))),
        _ => Ok(()), // host memory is always up to date
    }
}

fn share(
    py: Python<'_>,
    mut source: Source,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<CpuStorage>> {
    let ndim = source.managed.layout().ndim();
    let spec = parse(options, std::mem::take(&mut source.field), ndim)?;
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

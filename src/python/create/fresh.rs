//! Fresh memory: `empty`, `zeros`, `ones`, `full`.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt};

use crate::alloc::Fill;
use crate::dtype::DType;
use crate::field::{Dim, Field, Halo, further_data_dims};
use crate::layout::Extents;
use crate::python::numpy::{dtype_and_extents, dtype_to};
use crate::python::options::{ints_or_int, is_set, parse};
use crate::python::storage::PyStorage;
use crate::storage::{Residence, Spec, Storage};

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
///     Points around the domain per dimension, for both ends or for each; 0 by default.
/// backend : str, optional
///     Layout, alignment and device for a GT4Py backend: "numpy", "debug", "gt:cpu_kfirst",
///     "gt:cpu_ifirst", "gt:gpu", "dace:cpu", "dace:cpu_kfirst", "dace:cpu_KJI", "dace:gpu",
///     "dace:gpu_IJK", "gtx86", "gtmc", "gtcuda". Excludes alignment_size, device and layout.
///     The layout goes by the names I, J and K, which are assumed without dims; other names count
///     as outermost, in the order in which they stand: dims=("level", "lat", "lon") is left in C
///     order. Name the dimensions I, J, K, or give layout= with defaults=.
/// defaults : str, optional
///     The same names, and "C" and "F", as a preset that explicit options override.
/// layout : sequence of int, optional
///     Rank of each dimension's stride: 0 is the largest, ndim - 1 is contiguous.
/// alignment_size : int, optional
///     Bytes. Rows are padded so that the aligned element of each lies on such a boundary. With 1,
///     the default, nothing is padded and the first element lies on a boundary of 64 bytes.
/// aligned_index : sequence of int, optional
///     Index of the aligned element; the lower halo by default.
/// device : None, "cpu", "gpu" or ("gpu", n), optional
///     Where the memory lies: on the host, on the GPU that is used at the moment (that of the thread's
///     CUDA context, else the first), or on one by its number.
/// managed : None, "gt4py" or "cuda", optional
///     For a GPU who keeps host and device in step: nobody, there is no buffer on the host; dlfield,
///     between two buffers (the default); CUDA, in one that both reach. No effect in host memory.
/// default_origin : sequence of int, optional
///     Where stencils begin unless told otherwise, in points, in GT4Py's order of dimensions (I, J,
///     K, data dimensions). GT4Py takes no upper halo from it: it is shown only where given.
///
/// Returns
/// -------
/// CPUStorage, GPUStorage, SoftwareManagedGPUStorage or CUDAManagedGPUStorage
///     As device and managed say. Its memory is freed when the last storage, view and export of it is gone.
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
///     For a GPU device or a preset of a GPU backend where CUDA cannot be used, the device does not
///     exist, or has no managed memory.
#[pyfunction]
#[pyo3(signature = (shape, dtype = None, **options))]
pub(super) fn empty(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    unwritten(py, shape, dtype, options, Fill::Nothing)
}

/// Allocate a storage of zeros. No page of it is touched.
///
/// Parameters, result and errors as for `empty`.
#[pyfunction]
#[pyo3(signature = (shape, dtype = None, **options))]
pub(super) fn zeros(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    unwritten(py, shape, dtype, options, Fill::Zeros)
}

/// Allocate a storage of ones.
///
/// Parameters, result and errors as for `empty`.
#[pyfunction]
#[pyo3(signature = (shape, dtype = None, **options))]
pub(super) fn ones(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    let one = 1_i32.into_pyobject(py)?.into_any();
    filled(py, &ints_or_int("shape", shape)?, &one, dtype, options)
}

/// Allocate a storage with `fill_value` in every element, converted as NumPy does.
///
/// Other parameters, result and errors as for `empty`.
#[pyfunction]
#[pyo3(signature = (shape, fill_value, dtype = None, **options))]
pub(super) fn full(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    filled(py, &ints_or_int("shape", shape)?, fill_value, dtype, options)
}

/// As `allocate`, and shorter where nothing is wished for.
fn unwritten(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
    fill: Fill<'_>,
) -> PyResult<Py<PyStorage>> {
    let shape = ints_or_int("shape", shape)?;
    match wanted(dtype)? {
        (dtype, item) if item.is_empty() && options.is_none() => {
            let storage = py.detach(|| Storage::in_c_order(shape, dtype, fill))?;
            PyStorage::wrap(py, storage, None)
        }
        dtype => allocate(py, &shape, dtype, options, fill),
    }
}

pub(super) fn wanted(dtype: Option<&Bound<'_, PyAny>>) -> PyResult<(DType, Vec<i64>)> {
    let float64 = || Ok((DType::Float64, Vec::new()));
    dtype.filter(|dtype| is_set(dtype)).map_or_else(float64, dtype_and_extents)
}

pub(super) fn allocate(
    py: Python<'_>,
    shape: &Extents,
    (dtype, item): (DType, Vec<i64>),
    options: Option<&Bound<'_, PyDict>>,
    fill: Fill<'_>,
) -> PyResult<Py<PyStorage>> {
    let mut shape = shape.clone();
    let axes = shape.len();
    shape.extend(item);
    let spec = parse(options, no_halo(axes), shape.len(), Residence::Host)?;
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
        let further = further_data_dims(dims);
        dims.extend(further.take(ndim.saturating_sub(axes)));
    }
    if field.dims.is_none() && axes <= 3 && ndim > axes {
        let axes = [Dim::I, Dim::J, Dim::K].into_iter().take(axes);
        spec.layout_dims = Some(axes.chain(further_data_dims(&[])).take(ndim).collect());
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
) -> PyResult<Py<PyStorage>> {
    let dtype = wanted(dtype)?;
    let bytes = item_of(value, dtype.0)?;
    allocate(py, shape, dtype, options, Fill::Item(&bytes))
}

/// The number that NumPy makes of a plain float, and of a plain int that is one exactly.
fn float64(value: &Bound<'_, PyAny>) -> Option<f64> {
    if let Ok(number) = value.cast_exact::<PyFloat>() {
        return Some(number.value());
    }
    let number = value.cast_exact::<PyInt>().ok()?.extract::<i32>().ok()?;
    Some(f64::from(number))
}

/// NumPy turns a value into the bytes of one item, by its own rules of conversion.
pub(super) fn item_of(value: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Vec<u8>> {
    let py = value.py();
    if let Some(number) = float64(value).filter(|_| dtype == DType::Float64) {
        return Ok(number.to_ne_bytes().to_vec());
    }
    let item = py.import("numpy")?.call_method1("array", (value, dtype_to(py, dtype)?));
    let item = item.map_err(|error| named(py, error, value, dtype))?;
    let bytes: Vec<u8> = item.call_method0("tobytes")?.extract()?;
    if bytes.len() == dtype.itemsize() {
        return Ok(bytes);
    }
    Err(PyValueError::new_err(format!("fill_value: expected one number, got {value}")))
}

/// What NumPy says of a value that it cannot convert, in words that name the argument.
fn named(py: Python<'_>, error: PyErr, value: &Bound<'_, PyAny>, dtype: DType) -> PyErr {
    let class = error.get_type(py);
    let numpys = [
        py.get_type::<PyTypeError>(),
        py.get_type::<PyValueError>(),
        py.get_type::<PyOverflowError>(),
    ];
    if !numpys.iter().any(|one| one.is(&class)) {
        return error;
    }
    let got = value.repr().map_or_else(|_| "?".into(), |repr| repr.to_string());
    let text = format!(
        "fill_value: expected a number that {dtype} holds, got {got} ({}); pass another dtype=",
        error.value(py)
    );
    let named = PyErr::from_type(class, text);
    named.set_cause(py, Some(error));
    named
}

//! Fresh memory: `empty`, `zeros`, `ones`, `full`.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt};

use crate::alloc::Fill;
use crate::dtype::DType;
use crate::error::shortened;
use crate::field::{Dim, Dims, further_data_dims};
use crate::interpreter::Inside;
use crate::layout::Extents;
use crate::protocol::read::shown;
use crate::python::numpy::{dtype_and_extents, dtype_to};
use crate::python::options::{is_set, parse, read_shape};
use crate::python::storage::PyStorage;
use crate::storage::{Spec, Storage};

/// Allocate a storage whose values are undefined.
///
/// Parameters
/// ----------
/// shape : int or sequence of int
///     Extents, in elements. Zeros are legal.
/// dtype : optional
///     Anything that numpy.dtype takes; float64 by default. NumPy shows bfloat16 and the float8
///     types if the package ml_dtypes is installed.
/// dims : sequence of str, optional
///     Names of the dimensions in the order of the axes: "IJK", any distinct names, or axes of
///     GTScript.
/// halo : sequence of int or (int, int), or dict of them by name, optional
///     Points around the domain per dimension, for both ends or for each; 0 by default, and for the
///     names that a dict lacks.
/// backend : str, optional
///     Layout, alignment and device for a GT4Py backend: "numpy", "debug", "gt:cpu_kfirst",
///     "gt:cpu_ifirst", "gt:gpu", "dace:cpu", "dace:cpu_kfirst", "dace:cpu_KJI", "dace:gpu",
///     "dace:gpu_IJK", "gtx86", "gtmc", "gtcuda". Excludes alignment_size, device and layout. The
///     layout goes by the names I, J and K, which are assumed without dims. Other names count as
///     outermost, in their order: dims=("level", "lat", "lon") stays in C order. Name the
///     dimensions I, J, K, or give layout= with defaults=.
/// defaults : str, optional
///     The same, as a preset that explicit options override. "C" and "F" are NumPy's orders, for
///     any device.
/// layout : sequence of int or callable, optional
///     Rank of each dimension's stride: 0 is the largest, ndim - 1 is contiguous. Or a function
///     that gets the names of the dimensions, or their number, and returns the ranks.
/// alignment_size : int, optional
///     Bytes. Rows are padded so that the aligned element of each lies on such a boundary. With 1,
///     the default, nothing is padded and the first element lies on a boundary of 64 bytes.
/// aligned_index : sequence of int, optional
///     Index of the aligned element; the lower halo by default.
/// device : None, "cpu", "gpu" or ("gpu", n), optional
///     Where the memory lies: on the host, on the GPU in use at the moment (that of the thread's
///     CUDA context, else the first), or on one by its number.
/// managed : None, "gt4py" or "cuda", optional
///     For a GPU, what keeps host and device in step: nothing, since there is no buffer on the
///     host; dlfield, between two buffers (the default); CUDA, in one that both reach. No effect in
///     host memory.
/// default_origin : sequence of int, optional
///     Where stencils begin unless told otherwise, in points, in GT4Py's order of dimensions (I, J,
///     K, data dimensions), or of the axes if GT4Py does not know all names. Negative for memory that
///     begins after that point. It is shown only if given, since GT4Py takes no upper halo from it.
///
/// Returns
/// -------
/// CPUStorage, GPUStorage, SoftwareManagedGPUStorage or CUDAManagedGPUStorage
///     As device and managed say. Its memory is freed when the last storage, view and export of it
///     is gone.
///
/// Raises
/// ------
/// ValueError
///     For options that do not fit the shape or exclude each other, and for more bytes than an
///     address can count.
/// TypeError
///     For unknown options and values of a wrong type.
/// MemoryError
///     If the system has no more memory.
/// DeviceUnavailable
///     For a GPU or the preset of a GPU backend, if CUDA cannot be used, or the device does not
///     exist or has no managed memory.
#[pyfunction]
#[pyo3(signature = (shape, dtype = None, **options))]
pub(crate) fn empty(
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    allocate(shape.py(), read_shape(shape)?, wanted(dtype)?, options, Fill::Nothing)
}

/// Allocate a storage of zeros. No page of it is touched.
///
/// Parameters, result and errors are those of `empty`.
#[pyfunction]
#[pyo3(signature = (shape, dtype = None, **options))]
pub(crate) fn zeros(
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    allocate(shape.py(), read_shape(shape)?, wanted(dtype)?, options, Fill::Zeros)
}

/// Allocate a storage of ones.
///
/// Parameters, result and errors are those of `empty`.
#[pyfunction]
#[pyo3(signature = (shape, dtype = None, **options))]
pub(crate) fn ones(
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    filled(shape, &PyInt::new(shape.py(), 1), dtype, options)
}

/// Allocate a storage with `fill_value` in every element, converted as NumPy does.
///
/// Other parameters, result and errors are those of `empty`.
#[pyfunction]
#[pyo3(signature = (shape, fill_value, dtype = None, **options))]
pub(crate) fn full(
    shape: &Bound<'_, PyAny>,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    filled(shape, fill_value, dtype, options)
}

pub(super) fn wanted(dtype: Option<&Bound<'_, PyAny>>) -> PyResult<(DType, Vec<i64>)> {
    let float64 = || Ok((DType::Float64, Vec::new()));
    dtype.filter(|dtype| is_set(dtype)).map_or_else(float64, dtype_and_extents)
}

pub(super) fn allocate(
    py: Python<'_>,
    mut shape: Extents,
    (dtype, item): (DType, Vec<i64>),
    options: Option<&Bound<'_, PyDict>>,
    fill: Fill<'_>,
) -> PyResult<Py<PyStorage>> {
    let mut spec = Spec::default();
    request(&mut spec, &mut shape, item, options)?;
    allocated(py, &shape, dtype, &spec, fill)
}

/// Adds the extents of an item to a shape, and what the options request to `spec`.
pub(super) fn request(
    spec: &mut Spec,
    shape: &mut Extents,
    item: Vec<i64>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let axes = shape.len();
    shape.extend(item);
    if options.is_some() {
        spec.layout_dims = names_of_item(axes, shape.len());
        parse(options, spec, shape.len())?;
        add_data_dims(spec, axes, shape.len());
    }
    Ok(())
}

pub(super) fn allocated(
    py: Python<'_>,
    shape: &[i64],
    dtype: DType,
    spec: &Spec,
    fill: Fill<'_>,
) -> PyResult<Py<PyStorage>> {
    let storage = py.detach(|| Storage::allocate(shape, dtype, spec, fill))?;
    PyStorage::wrap(py, storage, None)
}

/// The names that a layout of unnamed dimensions assumes if an item adds some; `None` if it adds none.
fn names_of_item(axes: usize, ndim: usize) -> Option<Dims> {
    let spatial = [Dim::I, Dim::J, Dim::K].into_iter().take(axes);
    let adds = axes <= 3 && ndim > axes;
    adds.then(|| spatial.chain(further_data_dims(&[])).take(ndim).collect())
}

/// What was said about `axes` dimensions holds for `ndim`: those that an item adds are data
/// dimensions, as in GT4Py.
fn add_data_dims(spec: &mut Spec, axes: usize, ndim: usize) {
    let field = &mut spec.field;
    if let Some(dims) = field.dims.as_mut().filter(|dims| dims.len() == axes) {
        let further = further_data_dims(dims);
        dims.extend(further.take(ndim.saturating_sub(axes)));
    }
    if let Some(halo) = field.halo.as_mut().filter(|halo| halo.len() == axes) {
        halo.resize(ndim, (0, 0));
    }
    for index in [&mut field.aligned_index, &mut field.origin] {
        if let Some(index) = index.as_mut().filter(|index| index.len() == axes) {
            index.resize(ndim, 0);
        }
    }
}

fn filled(
    shape: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    let (extents, dtype) = (read_shape(shape)?, wanted(dtype)?);
    let bytes = item_of(value, dtype.0)?;
    allocate(shape.py(), extents, dtype, options, Fill::Item(&bytes))
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
    let _inside = Inside::enter(py);
    let item = py.import("numpy")?.call_method1("array", (value, dtype_to(py, dtype)?));
    let item = item.map_err(|error| named(py, error, value, dtype))?;
    let bytes: Vec<u8> = item.call_method0("tobytes")?.extract()?;
    if bytes.len() == dtype.itemsize() {
        return Ok(bytes);
    }
    Err(PyValueError::new_err(format!("fill_value: expected one number, got {}", shown(value))))
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
    let got = shown(value);
    let text = format!(
        "fill_value: expected a number that {dtype} holds, got {got} ({}); pass another dtype=",
        shortened(&error.value(py).to_string())
    );
    let named = PyErr::from_type(class, text);
    named.set_cause(py, Some(error));
    named
}

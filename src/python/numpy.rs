//! NumPy's dtypes in both directions, and arrays over a field's memory. NumPy is imported when it
//! is first needed, `ml_dtypes` only for types that NumPy lacks.

use pyo3::exceptions::PyImportError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyBool, PyComplex, PyDict, PyFloat, PyInt, PyString};

use crate::dtype::DType;
use crate::error::{Error, Failure};
use crate::field::Labelled;
use crate::interpreter::Inside;
use crate::managed::Managed;
use crate::protocol::buffer::{self, ByteView};
use crate::protocol::read::shown;
use crate::protocol::{self, Arrival, Request, array_in, gt4py, import};

/// Reads anything that `np.dtype(...)` takes, and the names of `ml_dtypes` without it.
///
/// # Errors
/// `ValueError` for a type that a storage cannot hold; NumPy's `TypeError` for anything but a type.
pub(crate) fn dtype_from(obj: &Bound<'_, PyAny>) -> PyResult<DType> {
    let py = obj.py();
    if let Some(known) = by_name(obj) {
        return Ok(known);
    }
    let _inside = Inside::enter(py); // NumPy writes names of types in Python
    let dtype = numpys(obj)?;
    let text = if !dtype.getattr(intern!(py, "names"))?.is_none() {
        format!(
            "one type of numbers, got a type with fields, {dtype}; make a storage for each field"
        )
    } else if !dtype.getattr(intern!(py, "subdtype"))?.is_none() {
        format!(
            "one type of numbers, got items that are arrays, {dtype}; only empty, zeros, ones, \
             full and storage(shape=...) add their dimensions"
        )
    } else if !dtype.getattr(intern!(py, "isnative"))?.is_truthy()? {
        format!("native byte order, got {}; use newbyteorder('=')", shown(&dtype))
    } else {
        let name = dtype.getattr(intern!(py, "name"))?.cast_into::<PyString>()?;
        // A type that dlfield does not know is shown as NumPy writes it.
        let shown = |_| Ok(DType::from_name(&dtype.to_string())?);
        return DType::from_name(&name.to_cow()?).or_else(shown);
    };
    Err(Error::Argument(format!("dtype: expected {text}")).into())
}

/// Reads a type with items that may be arrays: the type of an element, the extents of an item.
pub(super) fn dtype_and_extents(obj: &Bound<'_, PyAny>) -> PyResult<(DType, Vec<i64>)> {
    let py = obj.py();
    if let Some(known) = by_name(obj) {
        return Ok((known, Vec::new()));
    }
    let _inside = Inside::enter(py);
    let mut dtype = numpys(obj)?;
    let mut extents = Vec::new();
    loop {
        let base = dtype.getattr(intern!(py, "base"))?;
        if base.is(&dtype) {
            return Ok((dtype_from(&dtype)?, extents));
        }
        // Items that are arrays may have items that are arrays.
        extents.extend(dtype.getattr(intern!(py, "shape"))?.extract::<Vec<i64>>()?);
        dtype = base;
    }
}

/// A type by its name, or a type of torch, which NumPy does not take.
fn by_name(obj: &Bound<'_, PyAny>) -> Option<DType> {
    if let Ok(name) = obj.cast::<PyString>() {
        return DType::from_name(&name.to_cow().ok()?).ok();
    }
    DType::from_name(&of_torch(obj)?).ok()
}

/// The name of a type of torch.
fn of_torch(obj: &Bound<'_, PyAny>) -> Option<String> {
    let class = obj.get_type();
    if class.name().ok()? != "dtype" || class.module().ok()? != "torch" {
        return None;
    }
    Some(obj.str().ok()?.to_str().ok()?.strip_prefix("torch.")?.to_owned())
}

/// The type that NumPy makes of anything.
///
/// # Errors
/// `ValueError` for a type of torch that no storage can hold; NumPy's `TypeError`.
fn numpys<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if of_torch(obj).is_some() {
        DType::from_name(&obj.to_string())?;
    }
    let py = obj.py();
    py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "dtype"), (obj,))
}

/// Returns the NumPy dtype of a type, from `ml_dtypes` if NumPy lacks it.
///
/// # Errors
/// `ImportError` if `ml_dtypes` is needed and not installed.
pub(crate) fn dtype_to(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    let numpy = py.import(intern!(py, "numpy"))?;
    let name = match dtype.format() {
        Some(_) => PyString::intern(py, dtype.name()).into_any(),
        None => ml_dtypes(py, dtype)?.getattr(dtype.name())?,
    };
    numpy.call_method1(intern!(py, "dtype"), (name,))
}

fn ml_dtypes(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyModule>> {
    py.import(intern!(py, "ml_dtypes")).map_err(|_| {
        PyImportError::new_err(format!(
            "dtype: expected ml_dtypes, which defines {dtype} for NumPy, got no such module; pip \
             install ml_dtypes"
        ))
    })
}

/// Makes a NumPy array over the memory, in the same axis order. Zero-copy; the array holds a
/// reference. `readonly` alone decides if it is writable.
pub(crate) fn array_over<'py>(
    py: Python<'py>,
    managed: &Managed,
    readonly: bool,
) -> PyResult<Bound<'py, PyAny>> {
    static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let view = Bound::new(py, ByteView::new(managed.clone(), readonly)?)?.into_any();
    // SAFETY: the view holds the memory, which is the host's: it refuses any other.
    if let Some(array) = unsafe { buffer::array_over(&view, managed, readonly) }? {
        return Ok(array);
    }
    let array = ASARRAY.import(py, "numpy", "asarray")?.call1((view,))?;
    if managed.dtype().format().is_some() {
        return Ok(array);
    }
    array.call_method1(intern!(py, "view"), (dtype_to(py, managed.dtype())?,))
}

/// As [`array_over`], of an array that holds a reference to `holder` instead of the memory.
///
/// # Safety
/// `holder` keeps the memory, which is the host's.
pub(crate) unsafe fn array_held_by<'py>(
    holder: &Bound<'py, PyAny>,
    managed: &Managed,
    readonly: bool,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the caller's promise.
    match unsafe { buffer::array_over(holder, managed, readonly) }? {
        Some(array) => Ok(array),
        None => array_over(holder.py(), managed, readonly),
    }
}

/// True for a number of exactly a class of Python's, which speaks no protocol.
pub(crate) fn is_number(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyComplex>()
}

/// As [`import`]; an array that NumPy reads and no storage can hold arrives as a converted copy, of
/// type `dtype` or of its own in native byte order.
pub(crate) fn import_or_convert(
    data: &Bound<'_, PyAny>,
    request: Request,
    dtype: Option<DType>,
) -> Result<Arrival, Failure> {
    match import(data, request) {
        Err(Failure::Ours(Error::Buffer(text))) => {
            import_converted(data, dtype)?.ok_or(Error::Buffer(text).into())
        }
        answer => answer,
    }
}

/// Imports a converted copy of an array that NumPy reads and no storage can hold (byte-swapped
/// items, long doubles, strides that are not multiples of the items): of type `dtype`, by default
/// of its own in native byte order. `None` for objects other than NumPy's arrays, by themselves or in
/// a DataArray, and for those that say more than NumPy reads.
///
/// # Errors
/// What NumPy raises, and what importing the copy refuses.
fn import_converted(
    data: &Bound<'_, PyAny>,
    dtype: Option<DType>,
) -> Result<Option<Arrival>, Failure> {
    let _inside = Inside::enter(data.py());
    let numpy = data.py().import("numpy")?;
    let masked = numpy.getattr("ma")?.getattr("MaskedArray")?;
    let inside = array_in(data)?;
    let array = inside.as_ref().unwrap_or(data);
    if !array.is_instance(&numpy.getattr("ndarray")?)?
        || array.is_instance(&masked)?
        || gt4py::says_more_than_numpy(array)?
    {
        return Ok(None);
    }
    let dtype = match dtype {
        Some(dtype) => dtype_to(data.py(), dtype)?,
        None => array.getattr("dtype")?.call_method1("newbyteorder", ("=",))?,
    };
    let mut copy = import(&numpy.call_method1("array", (array, dtype))?, Request::SHARED)?;
    // The copy is a plain array: the object may have names.
    copy.labels = copy.labels.with_dims(protocol::dims(data)?);
    Ok(Some(copy))
}

/// Imports memory of the shape and layout of an array whose own cannot be shared: NumPy's, torch's,
/// or one of these inside xarray's. It is of type `dtype`, by default of the array's own in native
/// byte order, and keeps the names. `None` for other objects.
///
/// # Errors
/// `ValueError` if a type is needed; what the library raises, and what importing refuses.
pub(super) fn import_stand_in(
    data: &Bound<'_, PyAny>,
    dtype: Option<DType>,
) -> Result<Option<Arrival>, Failure> {
    let _inside = Inside::enter(data.py());
    let Some(array) = stand_in(data, dtype)? else { return Ok(None) };
    let mut arrival = import(&array, Request::SHARED)?;
    if matches!(arrival.labels, Labelled::Nothing) {
        arrival.labels = Labelled::Nothing.with_dims(gt4py::dims(data)?);
    }
    Ok(Some(arrival))
}

fn stand_in<'py>(
    data: &Bound<'py, PyAny>,
    dtype: Option<DType>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some(made) = plain_stand_in(data, dtype)? {
        return Ok(Some(made));
    }
    let inside = array_in(data)?;
    let made = inside.map(|array| plain_stand_in(&array, dtype)).transpose()?.flatten();
    let Some(made) = made else { return Ok(None) };
    data.call_method("copy", (), Some(&[("data", made)].into_py_dict(data.py())?)).map(Some)
}

fn plain_stand_in<'py>(
    data: &Bound<'py, PyAny>,
    dtype: Option<DType>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = data.py();
    let numpy = py.import(intern!(py, "numpy"))?;
    if data.is_instance(&numpy.getattr("ndarray")?)? {
        let options = [("subok", false)].into_py_dict(py)?;
        let dtype = dtype.map_or_else(|| native(data), |dtype| dtype_to(py, dtype))?;
        return numpy.call_method("empty_like", (data, dtype), Some(&options)).map(Some);
    }
    if data.hasattr("new_empty_strided")? {
        let tensor = data.call_method0("detach")?;
        let (shape, strides) = (tensor.getattr("shape")?, tensor.call_method0("stride")?);
        let options = PyDict::new(py);
        if let Some(dtype) = dtype {
            options.set_item("dtype", py.import("torch")?.getattr(dtype.name())?)?;
        }
        let made = tensor.call_method("new_empty_strided", (shape, strides), Some(&options))?;
        return Ok(Some(made));
    }
    Ok(None)
}

/// The type of an array in native byte order.
fn native<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let dtype = data.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
    dtype_from(&dtype).map_err(|_| {
        let got = shown(&dtype);
        Error::Argument(format!("dtype: expected a model of numbers, got {got}; pass dtype="))
    })?;
    Ok(dtype)
}

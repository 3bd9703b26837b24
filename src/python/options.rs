//! The keyword options of every function that creates a storage, and the `UNSET` sentinel.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyInt, PyString, PyTuple};

use crate::device::Target;
use crate::error::Error;
use crate::field::{Dims, Field, Halo, HaloWidth, further_data_dims, show_dims};
use crate::layout::{Extents, MAX_NDIM};
use crate::preset::Preset;
use crate::protocol::gt4py;
use crate::storage::{ManagedBy, Order, Residence, Spec};

const NAMES: [&str; 10] = [
    "aligned_index",
    "alignment_size",
    "backend",
    "default_origin",
    "defaults",
    "device",
    "dims",
    "halo",
    "layout",
    "managed",
];

/// Type of `UNSET`: the value of an option that nobody gave, where `None` is a value of its own.
#[pyclass(frozen, name = "UnsetType", module = "dlfield")]
pub(super) struct Unset;

#[pymethods]
impl Unset {
    fn __repr__(&self) -> &'static str {
        "UNSET"
    }

    fn __reduce__(&self) -> &'static str {
        "UNSET"
    }

    fn __bool__(&self) -> bool {
        false
    }
}

/// The one `UNSET`.
pub(super) fn unset(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static ONE: PyOnceLock<Py<Unset>> = PyOnceLock::new();
    Ok(ONE.get_or_try_init(py, || Py::new(py, Unset))?.bind(py).clone().into_any())
}

/// Whether an argument was given at all.
pub(super) fn is_set(value: &Bound<'_, PyAny>) -> bool {
    !value.is_instance_of::<Unset>()
}

/// Reads the options into wishes for a storage with `ndim` dimensions. What they leave open is as in
/// `base`, where a halo that is missing is unknown, and where the data is.
///
/// # Errors
/// `TypeError` for an unknown name or a wrong type, `ValueError` for a value that cannot be right
/// or options that exclude each other.
pub(super) fn parse(
    options: Option<&Bound<'_, PyDict>>,
    base: Field,
    ndim: usize,
    near: Residence,
) -> PyResult<Spec> {
    let unknown_halo = base.halo.is_none();
    let before = base.dims.clone();
    let mut spec = Spec { field: base, unknown_halo, near, ..Spec::default() };
    let Some(options) = options else {
        return Ok(spec);
    };
    check_exclusive(options)?;
    for (name, value) in options.iter() {
        let name = name.cast_into::<PyString>()?;
        if is_set(&value) {
            set(&mut spec, &name.to_cow()?, &value)?;
        } else {
            check_known(&name.to_cow()?)?;
        }
    }
    if spec.field.dims != before && !given(options, "default_origin")? {
        spec.field.origin = None; // it counted in the order of other names
    }
    if let Some(layout) = options.get_item("layout")?.filter(Bound::is_callable) {
        spec.layout = Order::Ranks(called(&layout, &spec, ndim)?);
    }
    Ok(spec)
}

/// A layout may be a function: of the names of the dimensions where they are known, else of their
/// number (the draft's).
fn called(layout: &Bound<'_, PyAny>, spec: &Spec, ndim: usize) -> PyResult<Extents> {
    let ranks = match &spec.field.dims {
        Some(dims) => {
            // The dimensions that an item adds are data dimensions.
            let names =
                dims.iter().cloned().chain(further_data_dims(dims)).take(ndim.max(dims.len()));
            let names: Vec<_> = names.map(|dim| dim.to_string()).collect();
            layout.call1((PyTuple::new(layout.py(), names)?,))?
        }
        None => layout.call1((ndim,))?,
    };
    ints("layout", &ranks)
}

/// Whether an option has a value.
pub(super) fn given(options: &Bound<'_, PyDict>, name: &str) -> PyResult<bool> {
    Ok(options.get_item(name)?.is_some_and(|value| is_set(&value)))
}

/// Whether somebody asks for memory of the host or of a GPU by name, rather than for memory where it is.
pub(super) fn wanted_device(options: Option<&Bound<'_, PyDict>>) -> PyResult<Option<Target>> {
    let device =
        options.map(|options| options.get_item(intern!(options.py(), "device"))).transpose()?;
    match device.flatten().filter(is_set) {
        None => Ok(None),
        Some(device) => read_device(&device).map(Some),
    }
}

fn set(spec: &mut Spec, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    match name {
        "dims" if value.is_none() => spec.field.dims = None,
        "dims" => spec.field.dims = Some(agree(spec, gt4py::names(value)?)?),
        "halo" => spec.field.halo = Some(read_halo(value)?),
        "aligned_index" => spec.field.aligned_index = Some(ints(name, value)?),
        "default_origin" if value.is_none() => spec.field.origin = None,
        "default_origin" => spec.field.origin = Some(ints(name, value)?),
        "alignment_size" => spec.alignment = Some(alignment(value)?),
        "layout" if value.is_none() => spec.layout = Order::Any,
        "layout" if value.is_callable() => {} // once dims are read
        "layout" => spec.layout = Order::Ranks(ints(name, value)?),
        "defaults" | "backend" if value.is_none() => {}
        "defaults" | "backend" => {
            let preset = Preset::from_name(&text(name, value)?)?;
            if name == "backend" && !preset.gpu {
                spec.device = Some(Target::Host);
            }
            spec.preset = Some(preset);
        }
        "device" => spec.device = Some(read_device(value)?),
        "managed" => spec.managed = Some(read_managed(value)?),
        _ => check_known(name)?,
    }
    Ok(())
}

/// Refuses names that are neither options nor in `further`: what else somebody takes by keyword.
///
/// # Errors
/// `TypeError`.
pub(super) fn check_names(options: &Bound<'_, PyDict>, further: &[&str]) -> PyResult<()> {
    for name in options.keys() {
        check_one_of(&[further, &NAMES].concat(), &name.cast_into::<PyString>()?.to_cow()?)?;
    }
    Ok(())
}

fn check_known(name: &str) -> PyResult<()> {
    check_one_of(&NAMES, name)
}

fn check_one_of(names: &[&str], name: &str) -> PyResult<()> {
    if names.contains(&name) {
        return Ok(());
    }
    let way_out = match name {
        "dtype" | "copy" => "; only storage(...) converts and copies",
        "value" => "; its name is fill_value",
        "order" => "; use defaults='C' or 'F'",
        "default_parameters" => "; its name is defaults",
        "axes" | "dimensions" | "mask" | "ndims" => "; name the dimensions with dims",
        "gpu" => "; use device='gpu'",
        "managed_memory" => "; use managed='cuda'",
        "layout_map" => "; its name is layout",
        "alignment" => "; use alignment_size, in bytes",
        _ => "",
    };
    let text = format!("option '{name}': expected one of {}{way_out}", names.join(", "));
    Err(PyTypeError::new_err(text))
}

/// `backend` stands for layout, alignment and device at once (storage allocation note).
fn check_exclusive(options: &Bound<'_, PyDict>) -> PyResult<()> {
    let given = |name: &str| -> PyResult<bool> {
        let value = options.get_item(name)?.filter(is_set);
        // None is a value of its own for a device and a layout, and no value for a preset.
        Ok(value.is_some_and(|value| name == "device" || name == "layout" || !value.is_none()))
    };
    if !given("backend")? {
        return Ok(());
    }
    for name in ["defaults", "alignment_size", "device", "layout"] {
        if given(name)? {
            return Err(PyValueError::new_err(format!(
                "backend: expected no '{name}' beside it, got both; use defaults= where explicit options are to override it"
            )));
        }
    }
    Ok(())
}

/// Names that the data brought along may not be contradicted, only supplied: also where xarray, or an import, has
/// numbered an axis that has none.
fn agree(spec: &Spec, given: Dims) -> PyResult<Dims> {
    let Some(found) = &spec.field.dims else { return Ok(given) };
    let mut both = found.iter().zip(&given).enumerate();
    let agree = both.all(|(axis, (found, given))| found == given || found.is_unnamed(axis));
    if agree && found.len() == given.len() {
        return Ok(given);
    }
    Err(PyValueError::new_err(format!(
        "dims: expected {} as the array says, got {}; transpose or rename the array instead",
        show_dims(found),
        show_dims(&given)
    )))
}

/// Where a storage is to be: None and "cpu" are the host, "gpu" the GPU that is used at the moment,
/// `("gpu", n)` one by its number.
///
/// # Errors
/// `ValueError` for anything else.
pub(super) fn read_device(device: &Bound<'_, PyAny>) -> PyResult<Target> {
    if device.is_none() {
        return Ok(Target::Host);
    }
    let numbered = device.extract::<(String, Bound<'_, PyAny>)>().ok();
    let numbered = numbered.filter(|(_, number)| !number.is_instance_of::<PyBool>());
    let numbered = numbered.and_then(|(name, number)| Some((name, number.extract::<i32>().ok()?)));
    match (device.extract::<String>().as_deref(), numbered) {
        (Ok("cpu"), _) => Ok(Target::Host),
        (Ok("gpu"), _) => of_a_storage(device),
        (_, Some((name, number))) if name == "gpu" && number >= 0 => Ok(Target::Gpu(Some(number))),
        _ => Err(PyValueError::new_err(format!(
            "device: expected None, 'cpu', 'gpu' or ('gpu', n), got {}",
            device.repr()?
        ))),
    }
}

/// The name of a GPU; as a storage's `device` it knows which.
fn of_a_storage(name: &Bound<'_, PyAny>) -> PyResult<Target> {
    let number = name.getattr_opt(intern!(name.py(), "device_id"))?;
    Ok(Target::Gpu(number.map(|number| number.extract()).transpose()?))
}

/// Who keeps host and GPU in step; on the host the option has no effect (GDP-3).
fn read_managed(managed: &Bound<'_, PyAny>) -> PyResult<ManagedBy> {
    if managed.is_none() {
        return Ok(ManagedBy::Nobody);
    }
    match managed.extract::<String>().as_deref() {
        Ok("gt4py") => Ok(ManagedBy::Dlfield),
        Ok("cuda") => Ok(ManagedBy::Cuda),
        _ => Err(PyValueError::new_err(format!(
            "managed: expected None, 'gt4py' or 'cuda', got {}",
            managed.repr()?
        ))),
    }
}

fn alignment(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    int("alignment_size", value)?.try_into().ok().filter(|&bytes| bytes > 0).ok_or_else(|| {
        PyValueError::new_err(format!("alignment_size: expected at least 1 byte, got {value}"))
    })
}

/// Widths per dimension: an int for both ends or a pair.
pub(super) fn read_halo(value: &Bound<'_, PyAny>) -> PyResult<Halo> {
    let Some(entries) = gt4py::entries(value) else {
        let expected = "a sequence with an int or a pair for each dimension";
        return Err(wrong_type("halo", expected, value));
    };
    entries.take(MAX_NDIM + 1).map(|entry| width(&entry?)).collect()
}

fn width(entry: &Bound<'_, PyAny>) -> PyResult<HaloWidth> {
    match ints_or_int("halo", entry)?.as_slice() {
        &[both] if !is_sequence(entry) => Ok((both, both)),
        &[low, high] => Ok((low, high)),
        other => Err(PyValueError::new_err(format!(
            "halo: expected an int or a pair for each dimension, got {other:?}"
        ))),
    }
}

/// A flag, of which `expected` says what it may be.
///
/// # Errors
/// `TypeError` for what is no bool.
pub(super) fn switch(what: &str, expected: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.extract().map_err(|_| wrong_type(what, expected, value))
}

fn text(what: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = value.cast::<PyString>().map_err(|_| wrong_type(what, "a name", value))?;
    Ok(text.to_cow()?.into_owned())
}

/// A sequence of ints.
pub(super) fn ints(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Extents> {
    let Some(entries) = gt4py::entries(value) else {
        return Err(wrong_type(what, "a sequence of ints", value));
    };
    entries.take(MAX_NDIM + 1).map(|entry| int(what, &entry?)).collect()
}

/// As NumPy reads a shape: an int alone stands for one dimension.
pub(super) fn ints_or_int(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Extents> {
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        let entries = tuple.iter().take(MAX_NDIM + 1); // what nearly everybody passes
        entries.map(|entry| int(what, &entry)).collect()
    } else if is_sequence(value) {
        ints(what, value)
    } else if !has_index(value)? {
        Err(wrong_type(what, "a sequence of ints or an int", value))
    } else {
        Ok(Extents::from_slice(&[int(what, value)?]))
    }
}

/// Whether there is something to go through; a NumPy scalar has `__index__` and no elements.
fn is_sequence(value: &Bound<'_, PyAny>) -> bool {
    gt4py::entries(value).is_some()
}

/// What has `__index__`, but no bool.
fn int(what: &str, value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let plain = value.is_exact_instance_of::<PyInt>();
    if !plain && (value.is_instance_of::<PyBool>() || !has_index(value)?) {
        return Err(wrong_type(what, "an int", value));
    }
    value.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            Error::Argument(format!("{what}: expected an int of 64 bits, got {value}")).into()
        } else {
            error // what its __index__ raised
        }
    })
}

fn has_index(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.hasattr(intern!(value.py(), "__index__"))
}

fn wrong_type(what: &str, expected: &str, got: &Bound<'_, PyAny>) -> PyErr {
    let got = got.repr().map_or_else(|_| "?".into(), |repr| repr.to_string());
    PyTypeError::new_err(format!("{what}: expected {expected}, got {got}"))
}

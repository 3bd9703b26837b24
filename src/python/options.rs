//! The keyword options of every function that creates a storage, and the `UNSET` sentinel.

use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyMapping, PyString, PyTuple};

use super::presets::{preset_of, warn_unordered};
use crate::device::Target;
use crate::error::{Error, Failure, did_you_mean, quoted};
use crate::field::{Dim, Dims, Halo, HaloWidth, further_data_dims, show_dims, unknown_dim};
use crate::interpreter::Inside;
use crate::layout::{Extents, MAX_NDIM};
use crate::preset::default_dims;
use crate::protocol::read::{entries, int, names, names_in, shown, wrong_type};
pub(crate) use crate::protocol::read::{ints, ints_or_int};
use crate::storage::{ManagedBy, Order, Spec};

/// The options, as messages list them.
const NAMES: &str = "aligned_index, alignment_size, backend, default_origin, defaults, device, dims, \
                     halo, layout, managed";

/// Type of `UNSET`: the value of an option that is not given, where None would be a choice.
#[pyclass(frozen, name = "UnsetType", module = "dlfield")]
pub(crate) struct Unset;

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

pub(crate) fn unset(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static ONE: PyOnceLock<Py<Unset>> = PyOnceLock::new();
    Ok(ONE.get_or_try_init(py, || Py::new(py, Unset))?.bind(py).clone().into_any())
}

pub(super) fn is_set(value: &Bound<'_, PyAny>) -> bool {
    !value.is_instance_of::<Unset>()
}

/// Reads the options for a storage with `ndim` dimensions into `spec`, which describes the data and
/// keeps what no option says.
///
/// # Errors
/// `TypeError` for an unknown name or a wrong type, `ValueError` for a value that cannot be right
/// or options that exclude each other.
pub(super) fn parse(
    options: Option<&Bound<'_, PyDict>>,
    spec: &mut Spec,
    ndim: usize,
) -> PyResult<()> {
    let Some(options) = options else { return Ok(()) };
    let _inside = Inside::enter(options.py());
    let before = spec.field.dims.clone();
    check_exclusive(options)?;
    for (name, value) in options.iter() {
        let name = name.cast_into::<PyString>()?;
        if is_set(&value) {
            set(spec, &name.to_cow()?, &value)?;
        } else {
            check_name(NAMES, &name.to_cow()?)?;
        }
    }
    if spec.field.dims != before && !given(options, "default_origin")? {
        spec.field.origin = None; // it counts in the order of the names before
    }
    if let Some(halo) = options.get_item("halo")?.filter(is_by_name) {
        spec.field.halo = Some(read_halo(&halo, spec.field.dims.as_ref())?);
    }
    if let Some(layout) = options.get_item("layout")?.filter(Bound::is_callable) {
        spec.layout = Order::Ranks(called(&layout, spec, ndim)?);
    }
    warn_unordered(options.py(), spec)
}

/// Calls a layout that is a function of the names of the dimensions, or of their number as in GDP-3's
/// draft. Known names are tried first; else the number, then the names that presets assume.
fn called(layout: &Bound<'_, PyAny>, spec: &Spec, ndim: usize) -> PyResult<Extents> {
    let (py, named) = (layout.py(), spec.field.dims.is_some());
    let dims: Dims = match &spec.field.dims {
        Some(dims) => {
            let all = dims.iter().cloned().chain(further_data_dims(dims)); // of an item
            all.take(ndim.max(dims.len())).collect()
        }
        None => spec.layout_dims.clone().unwrap_or_else(|| default_dims(ndim)),
    };
    let (names, number) = (texts(py, &dims)?.into_any(), ndim.into_pyobject(py)?.into_any());
    let [first, second] = if named { [names, number] } else { [number, names] };
    let call = |argument| PyResult::Ok(ints("layout", &layout.call1((argument,))?)?);
    let failed = match call(first) {
        Err(error) if error.is_instance_of::<PyException>(py) => error,
        answer => return answer,
    };
    call(second).map_err(|error| {
        // A function of names raises TypeError for a number of dimensions, and the reverse.
        let wrong_kind = |error: &PyErr| error.is_instance_of::<PyTypeError>(py);
        if wrong_kind(&failed) && !wrong_kind(&error) { error } else { failed }
    })
}

/// Tells if an option has a value.
pub(super) fn given(options: &Bound<'_, PyDict>, name: &str) -> PyResult<bool> {
    Ok(options.get_item(name)?.is_some_and(|value| is_set(&value)))
}

/// Reads `device=`; `None` if the memory may be anywhere.
pub(super) fn wanted_device(options: Option<&Bound<'_, PyDict>>) -> PyResult<Option<Target>> {
    let Some(options) = options else { return Ok(None) };
    if let Some(device) = options.get_item(intern!(options.py(), "device"))?.filter(is_set) {
        return read_device(&device).map(Some);
    }
    for name in ["defaults", "backend"] {
        let preset = options.get_item(name)?.filter(|name| is_set(name) && !name.is_none());
        if let Some(preset) = preset {
            return Ok(preset_of(options.py(), name, &text(name, &preset)?)?.target());
        }
    }
    Ok(None)
}

fn set(spec: &mut Spec, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    match name {
        "dims" if value.is_none() => spec.field.dims = None,
        "dims" => spec.field.dims = Some(agree(name, spec, names(value)?)?),
        "halo" | "aligned_index" | "alignment_size" if value.is_none() => {}
        "halo" if is_by_name(value) => {} // once dims are read
        "halo" => spec.field.halo = Some(read_halo(value, None)?),
        "aligned_index" => spec.field.aligned_index = Some(ints(name, value)?),
        "default_origin" if value.is_none() => spec.field.origin = None,
        "default_origin" => spec.field.origin = Some(ints(name, value)?),
        "alignment_size" => spec.alignment = Some(alignment(value)?),
        "layout" if value.is_none() => spec.layout = Order::Any,
        "layout" if value.is_callable() => {} // once dims are read
        "layout" if value.is_instance_of::<PyString>() => {
            let expected = "the rank of each stride, such as (0, 1), or a function of the dims";
            let got = shown(value);
            let text = format!("layout: expected {expected}, got {got}; a name goes in defaults=");
            return Err(Error::Type(text).into());
        }
        "layout" => spec.layout = Order::Ranks(ints(name, value)?),
        "defaults" | "backend" if value.is_none() => {}
        "defaults" | "backend" => {
            spec.preset = Some(preset_of(value.py(), name, &text(name, value)?)?);
        }
        "device" => spec.device = Some(read_device(value)?),
        "managed" => spec.managed = Some(read_managed(value)?),
        _ => check_name(NAMES, name)?,
    }
    Ok(())
}

/// Refuses names that are neither options nor in the list `further`.
///
/// # Errors
/// `TypeError`.
pub(crate) fn check_names(options: &Bound<'_, PyDict>, further: &str) -> PyResult<()> {
    let names = format!("{further}, {NAMES}");
    for name in options.keys() {
        check_name(&names, &name.cast_into::<PyString>()?.to_cow()?)?;
    }
    Ok(())
}

fn check_name(names: &str, name: &str) -> PyResult<()> {
    if names.split(", ").any(|known| known == name) {
        return Ok(());
    }
    let known = match name {
        "dtype" | "copy" => Some("only storage(...) converts and copies"),
        "value" => Some("its name is fill_value"),
        "order" => Some("use defaults='C' or 'F'"),
        "default_parameters" => Some("its name is defaults"),
        "axes" | "dimensions" | "mask" | "ndims" => Some("name the dimensions with dims"),
        "gpu" => Some("use device='gpu'"),
        "like" => Some("empty_like, zeros_like, ones_like and full_like take a model"),
        "managed_memory" => Some("use managed='cuda'"),
        "layout_map" => Some("its name is layout"),
        "alignment" => Some("use alignment_size, in bytes"),
        _ => None,
    };
    let way_out = known.map(String::from).or_else(|| did_you_mean(name, names.split(", ")));
    let way_out = way_out.map_or_else(String::new, |way_out| format!("; {way_out}"));
    Err(PyTypeError::new_err(format!("option '{name}': expected one of {names}{way_out}")))
}

/// Refuses options that `backend` decides: layout, alignment and device (storage allocation note).
fn check_exclusive(options: &Bound<'_, PyDict>) -> PyResult<()> {
    let given = |name: &str| -> PyResult<bool> {
        let value = options.get_item(name)?.filter(is_set);
        // None is a value for a device and a layout, but not for a preset.
        Ok(value.is_some_and(|value| name == "device" || name == "layout" || !value.is_none()))
    };
    if !given("backend")? {
        return Ok(());
    }
    for name in ["defaults", "alignment_size", "device", "layout"] {
        if given(name)? {
            return Err(PyValueError::new_err(format!(
                "backend: expected no '{name}' beside it, got both; use defaults= where explicit \
                 options are to override it"
            )));
        }
    }
    Ok(())
}

/// Refuses names that contradict those of the data. An axis that xarray or an import has only
/// numbered may get a name.
pub(super) fn agree(what: &str, spec: &Spec, given: Dims) -> PyResult<Dims> {
    let Some(found) = &spec.field.dims else { return Ok(given) };
    let mut both = found.iter().zip(&given).enumerate();
    let agree = both.all(|(axis, (found, given))| found == given || found.is_unnamed(axis));
    if agree && found.len() == given.len() {
        return Ok(given);
    }
    Err(PyValueError::new_err(format!(
        "{what}: expected {} as the array says, got {}; transpose or rename the array instead",
        show_dims(found),
        show_dims(&given)
    )))
}

/// Reads `device=`: None and "cpu" are the host, "gpu" is the GPU in use at the moment, and
/// `("gpu", n)` one by its number. The `device` of a storage is a "gpu" that has its number.
///
/// # Errors
/// `ValueError` for anything else.
pub(crate) fn read_device(device: &Bound<'_, PyAny>) -> PyResult<Target> {
    if device.is_none() {
        return Ok(Target::Host);
    }
    let wrong = || {
        let got = shown(device);
        let way_out =
            if got.to_lowercase().contains("cuda") { "; CUDA's devices are 'gpu'" } else { "" };
        Error::Argument(format!(
            "device: expected None, 'cpu', 'gpu' or ('gpu', n), got {got}{way_out}"
        ))
    };
    if let Ok(name) = device.cast::<PyString>() {
        let number = device.getattr_opt(intern!(device.py(), "device_id"))?;
        return match &*name.to_cow()? {
            "cpu" => Ok(Target::Host),
            "gpu" => Ok(Target::Gpu(number.map(|number| number.extract()).transpose()?)),
            _ => Err(wrong().into()),
        };
    }
    match device.extract::<(String, Bound<'_, PyAny>)>() {
        Ok((name, number)) if name == "gpu" && !number.is_instance_of::<PyBool>() => {
            let number = number.extract::<i32>().ok().filter(|&number| number >= 0);
            number.map(|number| Target::Gpu(Some(number))).ok_or_else(|| wrong().into())
        }
        _ => Err(wrong().into()),
    }
}

/// The values of `managed=` (GDP-3).
const MANAGED: [(Option<&str>, ManagedBy); 3] = [
    (None, ManagedBy::Nobody),
    (Some("gt4py"), ManagedBy::Dlfield),
    (Some("cuda"), ManagedBy::Cuda),
];

/// Reads `managed=`, which has no effect on the host.
pub(super) fn read_managed(managed: &Bound<'_, PyAny>) -> PyResult<ManagedBy> {
    let name = managed.extract::<Option<String>>().ok();
    let entry = name.and_then(|name| MANAGED.iter().find(|entry| entry.0 == name.as_deref()));
    entry.map(|entry| entry.1).ok_or_else(|| {
        let got = shown(managed);
        PyValueError::new_err(format!("managed: expected None, 'gt4py' or 'cuda', got {got}"))
    })
}

/// The value of `managed=` for a kind of storage.
pub(super) fn managed_name(managed: ManagedBy) -> Option<&'static str> {
    MANAGED.iter().find(|entry| entry.1 == managed).and_then(|entry| entry.0)
}

/// Reads `alignment_size=`, in bytes.
///
/// # Errors
/// `ValueError` for less than 1.
pub(super) fn alignment(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    int("alignment_size", value)?.try_into().ok().filter(|&bytes| bytes > 0).ok_or_else(|| {
        let got = shown(value);
        PyValueError::new_err(format!("alignment_size: expected at least 1 byte, got {got}"))
    })
}

/// Reads a halo: for each dimension an int for both ends, or a pair. In a mapping they are by name,
/// of the dimensions `dims`; those that it lacks have none.
pub(super) fn read_halo(value: &Bound<'_, PyAny>, dims: Option<&Dims>) -> PyResult<Halo> {
    if let Some(entries) = entries(value) {
        return entries.take(MAX_NDIM + 1).map(|entry| Ok(width("halo", &entry?)?)).collect();
    }
    if value.cast::<PyMapping>().is_err() {
        let expected = "a sequence with an int or a pair for each dimension, or a dict of them";
        return Err(wrong_type("halo", expected, value).into());
    }
    let dims = dims.ok_or_else(|| {
        let text = "halo: expected dims for widths by name, got none; pass dims= too, or a width \
                    for each dimension";
        PyValueError::new_err(text)
    })?;
    let widths = by_name("halo", value, dims, width)?;
    Ok(widths.into_iter().map(Option::unwrap_or_default).collect())
}

/// Reads values by name, of the dimensions `dims`; `None` for those that are missing.
///
/// # Errors
/// `TypeError` for something else than a mapping, `ValueError` for other names, and what `read`
/// refuses.
pub(super) fn by_name<T: Clone>(
    what: &str,
    value: &Bound<'_, PyAny>,
    dims: &Dims,
    read: impl Fn(&str, &Bound<'_, PyAny>) -> Result<T, Failure>,
) -> PyResult<Vec<Option<T>>> {
    let wrong = |_| wrong_type(what, "a dict by the names of dimensions", value);
    let mapping = value.cast::<PyMapping>().map_err(wrong)?;
    let mut found = vec![None; dims.len()];
    for entry in mapping.items()?.iter() {
        let (name, entry) = entry.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        let names = names_in(what, PyTuple::new(value.py(), [name])?.as_any())?;
        let Some(name) = names.first() else { continue };
        let axis = dims.iter().position(|dim| dim == name);
        let Some(place) = axis.and_then(|axis| found.get_mut(axis)) else {
            return Err(unknown_dim(what, &quoted(&name.to_string()), dims).into());
        };
        if place.replace(read(what, &entry)?).is_some() {
            let text = format!("{what}: expected one value for each name, got two for '{name}'");
            return Err(PyValueError::new_err(text));
        }
    }
    Ok(found)
}

/// True for widths by name.
fn is_by_name(halo: &Bound<'_, PyAny>) -> bool {
    entries(halo).is_none() && halo.cast::<PyMapping>().is_ok()
}

/// Reads points below and above: an int for both, or a pair.
///
/// # Errors
/// `TypeError` and `ValueError` for anything else.
pub(super) fn width(what: &str, entry: &Bound<'_, PyAny>) -> Result<HaloWidth, Failure> {
    match ints_or_int(what, entry)?.as_slice() {
        &[both] if entries(entry).is_none() => Ok((both, both)),
        &[low, high] => Ok((low, high)),
        other => Err(Error::Argument(format!(
            "{what}: expected an int or a pair for each dimension, got {other:?}"
        ))
        .into()),
    }
}

/// Reads `shape=` as NumPy does.
pub(super) fn read_shape(value: &Bound<'_, PyAny>) -> PyResult<Extents> {
    ints_or_int("shape", value).map_err(|failure| {
        let ndim = value.getattr_opt(intern!(value.py(), "ndim")).ok().flatten();
        match ndim.and_then(|ndim| ndim.extract::<usize>().ok()).filter(|&ndim| ndim > 0) {
            Some(ndim) => PyTypeError::new_err(format!(
                "shape: expected a sequence of ints or an int, got a {ndim}-dimensional array; \
                 use its shape, or empty_like, zeros_like, ones_like, full_like"
            )),
            None => failure.into(),
        }
    })
}

/// Names of dimensions as Python has them.
pub(super) fn texts<'py>(py: Python<'py>, dims: &[Dim]) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, dims.iter().map(Dim::to_string))
}

/// Reads a bool; `expected` lists the accepted values for the message.
///
/// # Errors
/// `TypeError` for anything else.
pub(super) fn switch(what: &str, expected: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.extract().map_err(|_| wrong_type(what, expected, value).into())
}

fn text(what: &str, value: &Bound<'_, PyAny>) -> Result<String, Failure> {
    let text = value.cast::<PyString>().map_err(|_| wrong_type(what, "a name", value))?;
    Ok(text.to_cow()?.into_owned())
}

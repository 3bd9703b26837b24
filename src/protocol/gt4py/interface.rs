//! Consumer: from `__gt_data_interface__`, or its older name `__gt_interface__`, to an [`Imported`].

use pyo3::exceptions::PyOverflowError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyString};

use super::hooks::Hooks;
use super::names::{entries, names};
use crate::device::{Device, DeviceKind, Target};
use crate::error::{Error, Failure};
use crate::field::{Dims, Halo, HaloWidth, Said, SaidHalo};
use crate::layout::MAX_NDIM;
use crate::managed::Imported;
use crate::protocol::{array_interface, cuda_array_interface};

/// Memory as an object offers it.
pub(in crate::protocol) struct Offer {
    pub(in crate::protocol) imported: Imported,
    pub(in crate::protocol) said: Said,
    pub(in crate::protocol) hooks: Hooks,
}

/// Which buffer of an object is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::protocol) enum Side {
    /// That of the host.
    Host,
    /// That of the host, else one of a GPU.
    HostFirst,
    /// That of the GPU with this number, or of any; else that of the host.
    GpuFirst(Option<i32>),
}

/// Reads the interface of one buffer, once. Zero-copy; holds the object. Calls nothing but what the
/// notes call a value that is a function.
pub(in crate::protocol) fn import(
    obj: &Bound<'_, PyAny>,
    side: Side,
) -> Result<Option<Offer>, Failure> {
    import_from(obj, interface_names(obj.py()), side)
}

/// As `import`, from the first of `names` that the object has.
pub(in crate::protocol) fn import_from<'py>(
    obj: &Bound<'py, PyAny>,
    names: impl IntoIterator<Item = &'py Bound<'py, PyString>>,
    side: Side,
) -> Result<Option<Offer>, Failure> {
    let Some((name, found)) = attribute(obj, names)? else {
        return Ok(None);
    };
    read(obj, found, side).map(Some).map_err(|failure| about(name, failure))
}

/// GDP-3's name, and the one before it.
pub(in crate::protocol) fn interface_names(py: Python<'_>) -> [&Bound<'_, PyString>; 2] {
    [intern!(py, "__gt_data_interface__"), intern!(py, "__gt_interface__")]
}

/// The dims that the interface of any device tells.
pub(in crate::protocol) fn dims_of_interface(
    obj: &Bound<'_, PyAny>,
) -> Result<Option<Dims>, Failure> {
    let Some((_, found)) = attribute(obj, interface_names(obj.py()))? else {
        return Ok(None);
    };
    for value in mapping(found, DEVICES)?.values()?.iter() {
        if let Some(dims) = entry(&called(value)?, "dims")? {
            return Ok(Some(names(&dims)?));
        }
    }
    Ok(None)
}

const DEVICES: &str = "a dict from devices to array interfaces";

type Attribute<'py> = (&'py Bound<'py, PyString>, Bound<'py, PyAny>);

fn attribute<'py>(
    obj: &Bound<'py, PyAny>,
    names: impl IntoIterator<Item = &'py Bound<'py, PyString>>,
) -> PyResult<Option<Attribute<'py>>> {
    for name in names {
        if let Some(found) = obj.getattr_opt(name)?.filter(|found| !found.is_none()) {
            return Ok(Some((name, found)));
        }
    }
    Ok(None)
}

/// A value is a dict, or a function that gives one (notes).
fn called(value: Bound<'_, PyAny>) -> Result<Bound<'_, PyMapping>, Failure> {
    let value = if value.is_callable() { value.call0()? } else { value };
    mapping(value, "a dict for each device, or a function that gives one")
}

fn about(name: &Bound<'_, PyString>, failure: Failure) -> Failure {
    match failure {
        Failure::Ours(error) => error.about(&name.to_string()).into(),
        theirs => theirs,
    }
}

fn read(obj: &Bound<'_, PyAny>, found: Bound<'_, PyAny>, side: Side) -> Result<Offer, Failure> {
    let devices = mapping(found, DEVICES)?;
    let (host, gpu) = match side {
        Side::Host => (on_host(&devices)?, None),
        Side::HostFirst => match on_host(&devices)? {
            Some(host) => (Some(host), None),
            None => (None, on_device(&devices, None)?),
        },
        Side::GpuFirst(number) => match on_device(&devices, number)? {
            Some(gpu) => (None, Some(gpu)),
            None => (on_host(&devices)?, None),
        },
    };
    let host = host.map(|host| (host, Device::CPU));
    let (chosen, device) = gpu.or(host).map_or_else(|| Err(neither(&devices, side)), Ok)?;
    let chosen = called(chosen)?;
    let stream = if device.is_host() { None } else { cuda_array_interface::stream(&chosen)? };
    let imported = array_interface::read(obj, &chosen, device)?;
    let halo = match entry(&chosen, "halo")? {
        Some(halo) => SaidHalo::Known(widths(&halo)?),
        None if chosen.contains("halo")? => SaidHalo::Unknown, // None says so
        None => SaidHalo::Nothing,
    };
    let dims = entry(&chosen, "dims")?.map(|dims| names(&dims)).transpose()?;
    Ok(Offer {
        said: Said { dims, halo, origin: None },
        hooks: Hooks::of(obj, &chosen)?,
        // SAFETY: as in the CUDA array interface: the stream lives as long as the object.
        imported: unsafe { imported.on_stream(stream) },
    })
}

type Found<'py> = (Bound<'py, PyAny>, Device);

/// The buffer of the GPU with a number: under that (notes), or under "gpu"; of any GPU without one.
fn on_device<'py>(
    devices: &Bound<'py, PyMapping>,
    number: Option<i32>,
) -> PyResult<Option<Found<'py>>> {
    let (py, gpu) = (devices.py(), intern!(devices.py(), "gpu"));
    let ordinal = number.unwrap_or(0);
    for key in [(gpu, ordinal).into_pyobject(py)?.into_any(), gpu.clone().into_any()] {
        if devices.contains(&key)? {
            return Ok(Some((devices.get_item(key)?, cuda(ordinal))));
        }
    }
    if number.is_some() {
        return Ok(None);
    }
    for key in devices.keys()?.iter() {
        if let Ok((name, ordinal)) = key.extract::<(String, i32)>()
            && name == "gpu"
        {
            return Ok(Some((devices.get_item(key)?, cuda(ordinal))));
        }
    }
    Ok(None)
}

fn cuda(ordinal: i32) -> Device {
    Device { kind: DeviceKind::Cuda, ordinal }
}

/// The buffer of the host: GDP-3 calls it None, the notes also "cpu".
fn on_host<'py>(devices: &Bound<'py, PyMapping>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = devices.py();
    for key in [py.None().into_bound(py), intern!(py, "cpu").clone().into_any()] {
        if devices.contains(&key)? {
            return devices.get_item(key).map(Some);
        }
    }
    Ok(None)
}

/// Why none of the buffers will do.
fn neither(devices: &Bound<'_, PyMapping>, side: Side) -> Failure {
    let keys = match devices.keys() {
        Ok(keys) => keys,
        Err(error) => return error.into(),
    };
    let text = match side {
        Side::Host => format!(
            "expected a buffer of the host under the key None or 'cpu', got the keys {keys}"
        ),
        Side::HostFirst => format!(
            "expected a buffer of the host under the key None or 'cpu', or one of a GPU under 'gpu', got the keys {keys}"
        ),
        Side::GpuFirst(number) => {
            let target = Target::Gpu(number);
            format!("expected a buffer of {target} or of the host, got the keys {keys}")
        }
    };
    if keys.is_empty() {
        return Error::Argument(text).into();
    }
    let target = if let Side::GpuFirst(number) = side { Target::Gpu(number) } else { Target::Host };
    Error::Device(format!("{text}; copy the field to {target} first")).into()
}

fn mapping<'py>(
    value: Bound<'py, PyAny>,
    expected: &str,
) -> Result<Bound<'py, PyMapping>, Failure> {
    value.cast_into::<PyMapping>().map_err(|error| {
        let value = error.into_inner();
        let got = value.repr().map_or_else(|_| "?".into(), |repr| repr.to_string());
        Error::Type(format!("expected {expected}, got {got}")).into()
    })
}

fn entry<'py>(interface: &Bound<'py, PyMapping>, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !interface.contains(key)? {
        return Ok(None);
    }
    Ok(Some(interface.get_item(key)?).filter(|value| !value.is_none()))
}

/// A pair of widths for each dimension.
fn widths(halo: &Bound<'_, PyAny>) -> Result<Halo, Failure> {
    let wrong = || {
        Error::Type(format!(
            "halo: expected a pair of ints for each dimension, got {}",
            shown(halo)
        ))
    };
    let widths = entries(halo).ok_or_else(wrong)?;
    widths.take(MAX_NDIM + 1).map(|entry| width(&entry?, &wrong)).collect()
}

fn width(entry: &Bound<'_, PyAny>, wrong: &impl Fn() -> Error) -> Result<HaloWidth, Failure> {
    let [low, high] = entry.extract::<[i64; 2]>().map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(entry.py()) {
            Error::Argument(format!("halo: expected widths of 64 bits, got {}", shown(entry)))
        } else {
            wrong()
        }
    })?;
    Ok((low, high))
}

fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| "?".into(), |repr| repr.to_string())
}

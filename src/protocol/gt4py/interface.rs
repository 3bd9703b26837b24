//! Consumer: from `__gt_data_interface__`, or its older name `__gt_interface__`, to checked claims.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyString};

use super::names::UNKNOWN_HALO;
use crate::device::{Device, DeviceKind, Target};
use crate::error::{Error, Failure};
use crate::field::{Dims, Halo, HaloLabel, Labels};
use crate::layout::MAX_NDIM;
use crate::protocol::door::{Answer, Memory, Offer, Reach, Request};
use crate::protocol::hooks::Hooks;
use crate::protocol::producer::Recognised;
use crate::protocol::read::{entries, entry, ints, mapping, names, wrong_type};
use crate::protocol::{array_interface, cuda_array_interface};

/// Reads the interface of one buffer, once. Zero-copy; holds the object. Calls only a value that is
/// a function (notes).
pub(in crate::protocol) fn import<'py>(
    obj: &Bound<'py, PyAny>,
    request: Request,
    known: Recognised,
) -> Answer<'py> {
    if !known.has_attributes() {
        return Ok(None);
    }
    import_from(obj, interface_names(obj.py()), request)
}

/// As `import`, from the first of `names` that the object has.
pub(in crate::protocol) fn import_from<'py>(
    obj: &Bound<'py, PyAny>,
    names: impl IntoIterator<Item = &'py Bound<'py, PyString>>,
    request: Request,
) -> Answer<'py> {
    let Some((name, found)) = attribute(obj, names)? else {
        return Ok(None);
    };
    read(obj, found, request).map(Some).map_err(|failure| failure.about(&name.to_string()))
}

/// GDP-3's name, and the one before it.
pub(in crate::protocol) fn interface_names(py: Python<'_>) -> [&Bound<'_, PyString>; 2] {
    [intern!(py, "__gt_data_interface__"), intern!(py, "__gt_interface__")]
}

/// The dims that the interface of any device tells, in the first of the attributes that `obj` has.
pub(in crate::protocol) fn dims_of_interface<'py>(
    obj: &Bound<'py, PyAny>,
    names_of_attributes: impl IntoIterator<Item = &'py Bound<'py, PyString>>,
) -> Result<Option<Dims>, Failure> {
    let Some((_, found)) = attribute(obj, names_of_attributes)? else {
        return Ok(None);
    };
    for value in mapping(DEVICES, found)?.values()?.iter() {
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
    Ok(mapping("a dict for each device, or a function that gives one", value)?)
}

fn read<'py>(
    obj: &Bound<'py, PyAny>,
    found: Bound<'py, PyAny>,
    request: Request,
) -> Result<Offer<'py>, Failure> {
    let devices = mapping(DEVICES, found)?;
    let (chosen, device) = buffer(&devices, request)?;
    let chosen = called(chosen)?;
    let stream = if device.is_host() { None } else { cuda_array_interface::stream(&chosen)? };
    let claims = array_interface::read(obj, "array interface", &chosen, device)?;
    let halo = match (entry(&chosen, "halo")?, entry(&chosen, UNKNOWN_HALO)?) {
        (Some(halo), _) => HaloLabel::Known(widths(&halo)?),
        (None, Some(unknown)) if unknown.is_truthy()? => HaloLabel::Unknown,
        (None, _) => HaloLabel::Nothing,
    };
    let dims = entry(&chosen, "dims")?.map(|dims| names(&dims)).transpose()?;
    let labels = Labels { dims, halo, origin: None };
    labels.check(claims.shape())?;
    // SAFETY: as in the CUDA array interface: the stream lives as long as the object.
    let claims = unsafe { claims.on_stream(stream) };
    let hooks = Hooks::from_interface(obj, &chosen)?;
    Ok(Offer { memory: Memory::Claims(claims), labels: labels.into(), hooks })
}

/// The buffer for a request, and the device that it is said to be on.
fn buffer<'py>(devices: &Bound<'py, PyMapping>, request: Request) -> Result<Found<'py>, Failure> {
    let found = match request.reach {
        Reach::Gpu(number) => match gpu_buffer(devices, number)? {
            None => host_buffer(devices)?,
            gpu => gpu,
        },
        _ => match host_buffer(devices)? {
            None if request.takes_device() => gpu_buffer(devices, None)?,
            host => host,
        },
    };
    found.ok_or_else(|| neither(devices, request))
}

type Found<'py> = (Bound<'py, PyAny>, Device);

/// The buffer of the GPU with a number: under that (notes), or under "gpu"; of any GPU without one.
fn gpu_buffer<'py>(
    devices: &Bound<'py, PyMapping>,
    number: Option<i32>,
) -> PyResult<Option<Found<'py>>> {
    let (py, gpu) = (devices.py(), intern!(devices.py(), "gpu"));
    let cuda = |ordinal| Device { kind: DeviceKind::Cuda, ordinal };
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

/// The buffer of the host: GDP-3 calls it None, the notes also "cpu".
fn host_buffer<'py>(devices: &Bound<'py, PyMapping>) -> PyResult<Option<Found<'py>>> {
    let py = devices.py();
    for key in [py.None().into_bound(py), intern!(py, "cpu").clone().into_any()] {
        if devices.contains(&key)? {
            return Ok(Some((devices.get_item(key)?, Device::CPU)));
        }
    }
    Ok(None)
}

/// The refusal of an object none of whose buffers serves the request.
fn neither(devices: &Bound<'_, PyMapping>, request: Request) -> Failure {
    let keys = match devices.keys() {
        Ok(keys) => keys,
        Err(error) => return error.into(),
    };
    let host = "a buffer of the host under the key None or 'cpu'";
    let (target, expected) = match request.reach {
        Reach::Gpu(number) => {
            let target = Target::Gpu(number);
            (target, format!("a buffer of {target} or of the host"))
        }
        _ if request.takes_device() => {
            (Target::Host, format!("{host}, or one of a GPU under 'gpu'"))
        }
        _ => (Target::Host, host.into()),
    };
    let text = format!("expected {expected}, got the keys {keys}");
    if keys.is_empty() {
        return Error::Argument(text).into();
    }
    Error::Device(format!("{text}; copy the field to {target} first")).into()
}

/// A pair of widths for each dimension.
fn widths(halo: &Bound<'_, PyAny>) -> Result<Halo, Failure> {
    let wrong = || wrong_type("halo", "a pair of ints for each dimension", halo);
    let width = |entry: Bound<'_, PyAny>| match entries(&entry).map(|_| ints("halo", &entry)) {
        Some(width) => match *width?.as_slice() {
            [low, high] => Ok((low, high)),
            _ => Err(wrong().into()),
        },
        None => Err(wrong().into()),
    };
    entries(halo).ok_or_else(wrong)?.take(MAX_NDIM + 1).map(|entry| width(entry?)).collect()
}

//! Door: `__cuda_array_interface__`, versions 0 to 3 in and 3 out, for memory of CUDA devices.
//!
//! Source: the specification of version 3 (Numba's documentation). The dict has no owner: an import
//! keeps the exporting *object* alive. It does not say which device has the memory, so the driver is
//! asked, which knows of memory of the host and of memory that was freed as well.
//!
//! Streams (specification, "Synchronization"): work on an import comes after what is on the producer's
//! stream, which then waits for it; neither blocks the host, but before version 3, which names no
//! stream: there the whole device is waited for. What is exported names dlfield's own
//! stream where dlfield has work in flight, and none otherwise. The two options that the specification
//! allows are environment variables, read once: `DLFIELD_CUDA_ARRAY_INTERFACE_SYNC=0` ignores the
//! streams of producers, `DLFIELD_CUDA_ARRAY_INTERFACE_STREAM=0` exports none.

use std::sync::OnceLock;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyMapping};

use super::{ImportRequest, array_interface};
use crate::cuda::{Stream, device_count, synchronize};
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Failure};
use crate::managed::{Imported, Managed};

const NAME: &str = "__cuda_array_interface__";

/// Reads the interface of an object. Zero-copy; holds the object.
pub(in crate::protocol) fn import(
    obj: &Bound<'_, PyAny>,
    request: ImportRequest,
) -> Result<Option<Imported>, Failure> {
    let Some(interface) = obj.getattr_opt(intern!(obj.py(), "__cuda_array_interface__"))? else {
        return Ok(None);
    };
    // The number that the driver tells takes the place of this one.
    let device = Device { kind: DeviceKind::Cuda, ordinal: 0 };
    let wanted = request.anywhere || request.may_copy;
    if !wanted && device_count().is_err() {
        device.check_on_host()?;
    }
    let interface = interface.cast_into::<PyMapping>().map_err(|error| {
        let got = error.into_inner().repr().map_or_else(|_| "?".into(), |repr| repr.to_string());
        Error::Type(format!("{NAME}: expected a dict, got {got}"))
    })?;
    let version = read_version(&interface)?;
    let stream = stream(&interface)?;
    let mut imported = array_interface::read(obj, &interface, device)?;
    if !wanted {
        imported.locate()?; // so that the message names the right one
        imported.device()?.check_on_host()?;
    }
    if version < 3 && stream.is_none() && is_honoured() && device_count().is_ok() {
        imported.locate()?;
        let ordinal = imported.device()?.ordinal;
        obj.py().detach(|| synchronize(ordinal))?; // WAIT since nobody names the producer's stream
    }
    // SAFETY: the specification's promise: the stream lives as long as the exporting object.
    Ok(Some(unsafe { imported.on_stream(stream) }))
}

/// Every version so far says the same with the keys that are read here.
fn read_version(interface: &Bound<'_, PyMapping>) -> Result<i64, Failure> {
    let version = if interface.contains("version")? {
        interface.get_item("version")?
    } else {
        interface.py().None().into_bound(interface.py())
    };
    let known = version.extract::<i64>().ok().filter(|&version| version >= 0);
    let known = known.filter(|_| !version.is_instance_of::<PyBool>());
    let got = version.repr()?;
    known.ok_or_else(|| {
        Error::Argument(format!("{NAME}: expected a version of at least 0, got {got}")).into()
    })
}

/// Handle of the stream on which the producer works; `None` where nothing is pending, or where the
/// user wants that assumed.
pub(in crate::protocol) fn stream(
    interface: &Bound<'_, PyMapping>,
) -> Result<Option<usize>, Failure> {
    if !interface.contains("stream")? {
        return Ok(None);
    }
    let stream = interface.get_item("stream")?;
    if stream.is_none() {
        return Ok(None);
    }
    if stream.is_instance_of::<PyBool>() || !stream.is_instance_of::<PyInt>() {
        let text = format!("stream: expected None or an int, got {}", stream.repr()?);
        return Err(Error::Type(text).into());
    }
    let handle = stream.extract::<usize>().ok().filter(|&handle| handle != 0);
    let handle = handle.ok_or_else(|| {
        Error::Argument(format!(
            "stream: expected None, 1 (the legacy default stream), 2 (the per-thread one) or a handle, got {stream}, \
             which the CUDA array interface does not allow"
        ))
    })?;
    Ok(Some(handle).filter(|_| is_honoured()))
}

fn is_honoured() -> bool {
    static HONOURED: OnceLock<bool> = OnceLock::new();
    *HONOURED.get_or_init(|| is_on("DLFIELD_CUDA_ARRAY_INTERFACE_SYNC"))
}

fn is_on(variable: &str) -> bool {
    std::env::var_os(variable).is_none_or(|value| value != "0")
}

/// The interface of a buffer as it is, without a word on what is in flight; `None` for types that it
/// cannot name.
///
/// # Errors
/// Only what building a dict may raise.
pub(crate) fn describe<'py>(
    py: Python<'py>,
    managed: &Managed,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(interface) = array_interface::export(py, managed)? else {
        return Ok(None);
    };
    let empty = managed.layout().size() == 0;
    let address = if empty { 0 } else { managed.address() };
    interface.set_item("data", (address, managed.readonly()))?;
    if managed.layout().is_c_contiguous() {
        interface.set_item("strides", py.None())?;
    }
    interface.set_item("stream", py.None())?;
    Ok(Some(interface))
}

/// The interface of a buffer, for somebody who honours its `stream`; `None` for types that it cannot
/// name.
///
/// # Errors
/// What CUDA refuses.
pub(crate) fn export<'py>(
    py: Python<'py>,
    managed: &Managed,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(interface) = describe(py, managed)? else {
        return Ok(None);
    };
    if let Some(stream) = stream_of(managed)? {
        interface.set_item("stream", stream.handle())?;
    }
    Ok(Some(interface))
}

/// dlfield's own stream, after all that is in flight; `None` where nothing is.
fn stream_of(managed: &Managed) -> Result<Option<Stream>, Error> {
    static NAMED: OnceLock<bool> = OnceLock::new();
    let Some(timeline) = managed.timeline().filter(|_| managed.layout().size() > 0) else {
        return Ok(None);
    };
    timeline.hand_out();
    let named = *NAMED.get_or_init(|| is_on("DLFIELD_CUDA_ARRAY_INTERFACE_STREAM"));
    if !named || (timeline.producer().is_none() && !timeline.is_pending()?) {
        return Ok(None);
    }
    let own = Stream::own(managed.device().ordinal)?;
    timeline.join(own)?; // WAIT of the exported stream for what is in flight
    Ok(Some(own))
}

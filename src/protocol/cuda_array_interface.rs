//! Door: `__cuda_array_interface__`, versions 0 to 3 in and 3 out, for memory of CUDA devices.
//!
//! Source: the specification of version 3 (Numba's documentation). The dict has no owner: an import
//! keeps the exporting *object* alive. It does not name the device of the memory, so the driver is
//! asked, which also recognises memory of the host and memory that was freed.
//!
//! Streams (specification, "Synchronization"): dlfield's work on an import follows the work on the
//! producer's stream, which then waits for dlfield. Neither blocks the host. Before version 3 no
//! stream is named, and the host waits for the whole device. An export names dlfield's own stream
//! if dlfield has work in flight, else none. Both options that the specification allows are
//! environment variables, read once (docs/gpu.md).

use std::sync::LazyLock;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyMapping};

use super::array_interface;
use super::door::{Answer, Price, Request};
use super::producer::Recognised;
use super::read::{entry, mapping, shown, wrong_type};
use crate::cuda::{Stream, is_available, synchronize};
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Failure};
use crate::managed::Managed;

const NAME: &str = "__cuda_array_interface__";

/// Reads the interface of an object. Zero-copy; holds the object.
pub(in crate::protocol) fn import<'py>(
    obj: &Bound<'py, PyAny>,
    request: Request,
    _: Recognised,
) -> Answer<'py> {
    let Some(interface) = obj.getattr_opt(intern!(obj.py(), "__cuda_array_interface__"))? else {
        return Ok(None);
    };
    // The driver's answer replaces this number.
    let device = Device { kind: DeviceKind::Cuda, ordinal: 0 };
    let wanted = request.takes_device() || request.price == Price::Copy;
    if !wanted && !is_available() {
        device.check_on_host()?;
    }
    let interface = mapping("a dict", interface).map_err(|error| error.about(NAME))?;
    let version = read_version(&interface)?;
    let stream = stream(&interface)?;
    let claims = array_interface::read(obj, NAME, &interface, device)?;
    if !wanted {
        claims.confirmed_device()?.check_on_host()?;
    }
    if version < 3 && stream.is_none() && *HONOURS_STREAMS && is_available() {
        let ordinal = claims.confirmed_device()?.ordinal;
        obj.py().detach(|| synchronize(ordinal))?; // WAIT since the producer's stream is unknown
    }
    // SAFETY: the stream lives as long as the exporting object (specification, "Lifetime
    // management").
    Ok(Some(unsafe { claims.on_stream(stream) }.into()))
}

/// Every version so far says the same with the keys that are read here.
fn read_version(interface: &Bound<'_, PyMapping>) -> Result<i64, Failure> {
    let found = entry(interface, "version")?;
    let number = found.as_ref().filter(|version| !version.is_instance_of::<PyBool>());
    let number = number.and_then(|version| version.extract().ok());
    number.filter(|&version| version >= 0).ok_or_else(|| {
        let got = found.map_or_else(|| "None".into(), |version| shown(&version));
        Error::Argument(format!("{NAME}: expected a version of at least 0, got {got}")).into()
    })
}

/// Handle of the stream on which the producer works. `None` if nothing is pending, or if the user
/// wants that assumed.
pub(in crate::protocol) fn stream(
    interface: &Bound<'_, PyMapping>,
) -> Result<Option<usize>, Failure> {
    let Some(stream) = entry(interface, "stream")? else { return Ok(None) };
    if stream.is_instance_of::<PyBool>() || !stream.is_instance_of::<PyInt>() {
        return Err(wrong_type("stream", "None or an int", &stream).into());
    }
    let handle = stream.extract::<usize>().ok().filter(|&handle| handle != 0);
    let handle = handle.ok_or_else(|| {
        Error::Argument(format!(
            "stream: expected None, 1 (the legacy default stream), 2 (the per-thread one) or a \
             handle, got {}, which the CUDA array interface does not allow",
            shown(&stream)
        ))
    })?;
    Ok(Some(handle).filter(|_| *HONOURS_STREAMS))
}

static HONOURS_STREAMS: LazyLock<bool> =
    LazyLock::new(|| is_on("DLFIELD_CUDA_ARRAY_INTERFACE_SYNC"));
static NAMES_STREAMS: LazyLock<bool> =
    LazyLock::new(|| is_on("DLFIELD_CUDA_ARRAY_INTERFACE_STREAM"));

fn is_on(variable: &str) -> bool {
    std::env::var_os(variable).is_none_or(|value| value != "0")
}

/// The interface of a buffer as it is, whatever work is in flight; `None` for types that it cannot
/// name. `readonly` alone decides if it is writable.
pub(crate) fn describe<'py>(
    py: Python<'py>,
    managed: &Managed,
    readonly: bool,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    of_address(py, managed, managed.address(), readonly)
}

/// The interface of a buffer for a consumer whose work the timeline of the memory will know. Its
/// stream has to follow that timeline.
pub(crate) fn in_order<'py>(
    py: Python<'py>,
    managed: &Managed,
    readonly: bool,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    of_address(py, managed, managed.position(), readonly)
}

fn of_address<'py>(
    py: Python<'py>,
    managed: &Managed,
    address: usize,
    readonly: bool,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(interface) = array_interface::describe(py, managed)? else {
        return Ok(None);
    };
    let empty = managed.layout().size() == 0;
    let address = if empty { 0 } else { address };
    interface.set_item("data", (address, readonly))?;
    if managed.layout().is_c_contiguous() {
        interface.set_item("strides", py.None())?;
    }
    interface.set_item("stream", py.None())?;
    Ok(Some(interface))
}

/// The interface of a buffer, for a consumer that honours its `stream`; `None` for types that it
/// cannot name.
pub(crate) fn export<'py>(
    py: Python<'py>,
    managed: &Managed,
    readonly: bool,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let interface = describe(py, managed, readonly)?;
    if let Some(interface) = &interface
        && let Some(stream) = stream_of(managed)?
    {
        interface.set_item("stream", stream.handle())?;
    }
    Ok(interface)
}

/// dlfield's own stream, after all work in flight; `None` if there is none.
fn stream_of(managed: &Managed) -> Result<Option<Stream>, Error> {
    let Some(timeline) = managed.timeline().filter(|_| managed.layout().size() > 0) else {
        return Ok(None);
    };
    if !*NAMES_STREAMS || (timeline.producer().is_none() && !timeline.is_pending()?) {
        return Ok(None);
    }
    let own = Stream::own(managed.device().ordinal)?;
    timeline.join(own)?; // WAIT of the exported stream for work in flight
    Ok(Some(own))
}

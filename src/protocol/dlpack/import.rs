//! Consumer: from `__dlpack__` to checked claims.

use std::ffi::{CStr, c_char};

use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{IntoPyDict, PyCapsule, PyCapsuleMethods, PyDict};
use pyo3::{ffi, intern};

use super::tensor::{LEGACY, USED_LEGACY, USED_VERSIONED, VERSIONED};
use crate::cuda::{Stream, device_count, enter, is_available};
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Failure};
use crate::interpreter::raised_by;
use crate::managed::{Checked, Refusal, Untrusted};
use crate::protocol::door::{Answer, Price, Request};
use crate::protocol::producer::Recognised;
use crate::protocol::read::{aligned, capsule, capsule_name, ints, pair};

/// Asks an object with `__dlpack__` for a capsule and takes the tensor out of it. Zero-copy unless
/// the request allows a copy to the host. The producer's deleter runs when the last view is
/// dropped.
pub(in crate::protocol) fn import<'py>(
    obj: &Bound<'py, PyAny>,
    request: Request,
    known: Recognised,
) -> Answer<'py> {
    let method = obj.getattr_opt(intern!(obj.py(), "__dlpack__"))?;
    let Some(method) = method.filter(|method| !method.is_none()) else {
        let Ok(bare) = obj.cast::<PyCapsule>() else { return Ok(None) };
        return take_bare(bare, request).map(|claims| Some(claims.into()));
    };
    match announced(obj, known)? {
        Some(device) => unless_reversed(obj, take_from(&method, device, request)),
        // The __dlpack__ of an array without memory explains why there is none.
        None => take_from(&method, Device::CPU, request)
            .map(|claims| Some(claims.into()))
            .map_err(|failure| with_callback(method.py(), failure)),
    }
}

/// Leaves an array with negative strides to its CUDA array interface if its capsule is refused: CuPy
/// 14.2 divides them by the size of an item as unsigned numbers.
fn unless_reversed<'py>(obj: &Bound<'py, PyAny>, answer: Result<Checked, Failure>) -> Answer<'py> {
    match answer {
        Err(Failure::Ours(Error::Buffer(_))) if is_reversed(obj)? => Ok(None),
        answer => answer.map(|claims| Some(claims.into())),
    }
}

/// True if an object has a CUDA array interface, and negative strides.
fn is_reversed(obj: &Bound<'_, PyAny>) -> Result<bool, Failure> {
    match negative_strides(obj) {
        // KeyboardInterrupt and SystemExit are not Exceptions: they pass.
        Err(Failure::Theirs(error)) if !error.is_instance_of::<PyException>(obj.py()) => {
            Err(error.into())
        }
        answer => Ok(answer.unwrap_or(false)),
    }
}

fn negative_strides(obj: &Bound<'_, PyAny>) -> Result<bool, Failure> {
    if obj.getattr_opt(intern!(obj.py(), "__cuda_array_interface__"))?.is_none() {
        return Ok(false);
    }
    let Some(strides) = obj.getattr_opt(intern!(obj.py(), "strides"))? else { return Ok(false) };
    Ok(ints("strides", &strides)?.iter().any(|&stride| stride < 0))
}

/// Adds the way out to what JAX says of an array whose values it does not know yet.
fn with_callback(py: Python<'_>, failure: Failure) -> Failure {
    let Failure::Theirs(error) = failure else { return failure };
    let traced = error.get_type(py).name().is_ok_and(|name| name == "ConcretizationTypeError");
    let text = "dlfield needs the values: inside of jax.jit, grad and vmap call it through \
                jax.pure_callback";
    let noted = if traced { error.value(py).call_method1("add_note", (text,)).err() } else { None };
    noted.unwrap_or(error).into()
}

/// Takes the tensor of a capsule that came without its producer, unless it is out of reach.
fn take_bare(capsule: &Bound<'_, PyCapsule>, request: Request) -> Result<Checked, Failure> {
    let claims = take(capsule, |device| request.check_reach(device))?; // else it stays there
    let kind = claims.device().kind;
    let on_cuda = matches!(kind, DeviceKind::Cuda | DeviceKind::CudaManaged) && is_available();
    // Without a stream a producer works on the legacy default one.
    let stream = on_cuda.then_some(Stream::LEGACY);
    // SAFETY: a stream of every device, which lives as long as the process.
    Ok(unsafe { claims.on_stream(stream) })
}

/// As [`import`], for an object that announces memory on a CUDA device, if there is a driver.
pub(in crate::protocol) fn import_from_cuda<'py>(
    obj: &Bound<'py, PyAny>,
    _: Request,
    known: Recognised,
) -> Answer<'py> {
    let Some(method) = obj.getattr_opt(intern!(obj.py(), "__dlpack__"))? else {
        return Ok(None);
    };
    let asked = obj.getattr_opt(intern!(obj.py(), "__dlpack_device__"))?.is_some();
    if !asked || !is_available() {
        return Ok(None);
    }
    match announced(obj, known)? {
        Some(Device { kind: DeviceKind::Cuda, ordinal }) => {
            unless_reversed(obj, take_on_device(&method, ordinal))
        }
        _ => Ok(None),
    }
}

/// Asks for the memory as it is, or on the host if only that serves the request.
fn take_from(
    method: &Bound<'_, PyAny>,
    device: Device,
    request: Request,
) -> Result<Checked, Failure> {
    let cuda = matches!(device.kind, DeviceKind::Cuda | DeviceKind::CudaManaged);
    if cuda && request.takes_device() {
        match device_count() {
            Ok(_) => return take_on_device(method, device.ordinal),
            Err(error) if device.kind == DeviceKind::Cuda && !request.trusts_device() => {
                return Err(error.about(&format!("memory on {device}")).into());
            }
            Err(_) => {}
        }
    }
    // Managed memory is in step with the host once the host asks for it.
    let as_is = device.is_host() || request.takes_device();
    if as_is && device.kind != DeviceKind::CudaManaged {
        // Today's keywords, then those of producers of 2023 and of 2021.
        let [all, versioned] = keywords(method.py())?;
        return take_answer(&call_with(method, all, versioned)?.0);
    }
    if request.price == Price::Share {
        device.check_on_host()?;
    }
    let answer = method.call((), Some(&keywords_to_host(method.py(), request)?));
    take_answer(&answer.map_err(|error| without_keywords(method.py(), device, error))?)
}

/// The refusal of a device, if its producer does not take the keywords that ask for host memory.
fn without_keywords(py: Python<'_>, device: Device, error: PyErr) -> Failure {
    match device.check_on_host() {
        Err(refusal) if error.is_instance_of::<PyTypeError>(py) => refusal.into(),
        _ => error.into(),
    }
}

/// Asks with the device's context current, which producers expect, and with the stream on which
/// dlfield works: the producer makes it wait for what is in flight.
fn take_on_device(method: &Bound<'_, PyAny>, ordinal: i32) -> Result<Checked, Failure> {
    let _current = enter(ordinal)?;
    let [all, versioned] = keywords(method.py())?.map(Bound::copy);
    let (all, versioned) = (all?, versioned?);
    let handle = Stream::current(ordinal)?.handle();
    for keywords in [&all, &versioned] {
        keywords.set_item(intern!(method.py(), "stream"), handle)?;
    }
    let (capsule, told) = call_with(method, &all, &versioned)?;
    // A producer that knows no streams uses the legacy default one.
    // SAFETY: a stream of every device, which lives as long as the process.
    let legacy = unsafe { Stream::foreign(Stream::LEGACY, ordinal) };
    let stream = if told { Stream::current(ordinal)? } else { legacy };
    Ok(take_answer(&capsule)?.after_work_on(stream))
}

/// The device that a producer announces for its capsule; `None` for an array without memory
/// (deleted, traced, meta). It is asked first so that a producer on another device does no work in
/// vain; the capsule may say otherwise.
fn announced(obj: &Bound<'_, PyAny>, known: Recognised) -> Result<Option<Device>, Failure> {
    match device_of(obj) {
        // KeyboardInterrupt and SystemExit are not Exceptions: they pass.
        Err(Failure::Theirs(error)) if !error.is_instance_of::<PyException>(obj.py()) => {
            Err(error.into())
        }
        Err(_) if known.producer.explains_itself() => Ok(None),
        answer => answer.map(Some),
    }
}

fn device_of(obj: &Bound<'_, PyAny>) -> Result<Device, Failure> {
    let name = intern!(obj.py(), "__dlpack_device__");
    let method = obj.getattr_opt(name)?.ok_or_else(|| {
        Error::Type("__dlpack_device__: expected a method beside __dlpack__, got none".into())
    })?;
    let (code, ordinal) = pair("__dlpack_device__", &method.call0()?)?;
    let (Ok(code), Ok(ordinal)) = (i32::try_from(code), i32::try_from(ordinal)) else {
        return Err(Error::Argument(format!(
            "__dlpack_device__: expected a device type and a device id, got ({code}, {ordinal})"
        ))
        .into());
    };
    Ok(Device::from_dlpack(code.into(), ordinal)?)
}

/// Calls with all keywords, then with fewer after a `TypeError`, as NumPy, torch and JAX do: it may
/// be about a keyword that the producer, or one that it forwards to, does not know. If no call
/// succeeds the first `TypeError` is raised. Every other exception passes at once. Returns false
/// with the capsule of a producer that knows no keyword.
fn call_with<'py>(
    method: &Bound<'py, PyAny>,
    all: &Bound<'py, PyDict>,
    versioned: &Bound<'py, PyDict>,
) -> PyResult<(Bound<'py, PyAny>, bool)> {
    let py = method.py();
    // A producer may keep or change what it gets: each has its own.
    let ask = |keywords: &Bound<'py, PyDict>| match method.call((), Some(&keywords.copy()?)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => Ok(Err(error)),
        answer => answer.map(Ok),
    };
    let first = match ask(all)? {
        Ok(capsule) => return Ok((capsule, true)),
        Err(error) => error,
    };
    if let Ok(capsule) = ask(versioned)? {
        return Ok((capsule, true));
    }
    // Those of 2021 know the stream alone, and without it mean the legacy default one.
    if let Some(stream) = all.get_item(intern!(py, "stream"))?
        && let Ok(capsule) = ask(&[("stream", stream)].into_py_dict(py)?)?
    {
        return Ok((capsule, true));
    }
    let answer = method
        .call0()
        .map_err(|third| if third.is_instance_of::<PyTypeError>(py) { first } else { third })?;
    Ok((answer, false))
}

/// `max_version=(1, 3)` with and without `copy=False`, made once.
fn keywords(py: Python<'_>) -> PyResult<[&Bound<'_, PyDict>; 2]> {
    static KEYWORDS: PyOnceLock<[Py<PyDict>; 2]> = PyOnceLock::new();
    let [all, versioned] = KEYWORDS.get_or_try_init(py, || {
        let versioned = version_keyword(py)?;
        let all = versioned.copy()?;
        all.set_item("copy", false)?;
        PyResult::Ok([all.unbind(), versioned.unbind()])
    })?;
    Ok([all.bind(py), versioned.bind(py)])
}

fn version_keyword(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    [("max_version", (1, 3))].into_py_dict(py)
}

/// What asks a producer on a device for host memory. There is no way to ask an old one.
fn keywords_to_host(py: Python<'_>, request: Request) -> PyResult<Bound<'_, PyDict>> {
    let keywords = version_keyword(py)?;
    keywords.set_item("dl_device", (1, 0))?;
    if request.price != Price::Copy {
        keywords.set_item("copy", false)?;
    }
    Ok(keywords)
}

/// Takes the tensor of the capsule that `__dlpack__` gave, wherever it is.
fn take_answer(answer: &Bound<'_, PyAny>) -> Result<Checked, Failure> {
    take(capsule("__dlpack__", answer)?, |_| Ok(()))
}

/// Takes ownership of a capsule's tensor, once its claims hold and its device is admitted.
///
/// A tensor that is refused stays with its capsule, whose own destructor releases it: if the name
/// lies about the struct, the deleter that dlfield would call lies elsewhere.
fn take(
    capsule: &Bound<'_, PyCapsule>,
    admit: impl FnOnce(Device) -> Result<(), Error>,
) -> Result<Checked, Failure> {
    // No other thread takes the tensor between the checks and the renaming: no Python code runs
    // there, and without the GIL the critical section keeps threads of all modules out.
    with_critical_section(capsule, || take_now(capsule, admit))
}

fn take_now(
    capsule: &Bound<'_, PyCapsule>,
    admit: impl FnOnce(Device) -> Result<(), Error>,
) -> Result<Checked, Failure> {
    let what = "DLPack capsule";
    if capsule.is_valid_checked(Some(VERSIONED)) {
        let tensor = aligned(what, capsule, Some(VERSIONED))?;
        // SAFETY: a capsule of this name holds a DLManagedTensorVersioned (DLPack's Python
        // specification), which `owned` leaves to the capsule unless it renames it.
        return owned(unsafe { Untrusted::from_versioned(tensor) }, capsule, USED_VERSIONED, admit);
    }
    if capsule.is_valid_checked(Some(LEGACY)) {
        let tensor = aligned(what, capsule, Some(LEGACY))?;
        // SAFETY: a capsule of this name holds a DLManagedTensor; `owned` as above.
        return owned(unsafe { Untrusted::from_legacy(tensor) }, capsule, USED_LEGACY, admit);
    }
    let name = capsule_name(capsule);
    let used = name.starts_with("'used_");
    let hint = if used { "; it was consumed before: call __dlpack__ again" } else { "" };
    Err(Error::Argument(format!(
        "{what}: expected the name 'dltensor_versioned' or 'dltensor', got {name}{hint}"
    ))
    .into())
}

fn owned(
    tensor: Untrusted,
    capsule: &Bound<'_, PyCapsule>,
    used: &'static CStr,
    admit: impl FnOnce(Device) -> Result<(), Error>,
) -> Result<Checked, Failure> {
    let checked = tensor.check().map_err(Refusal::give_back)?;
    if let Err(error) = admit(checked.device()) {
        checked.give_back();
        return Err(error.into());
    }
    // SAFETY: a capsule (its type was checked) and a name that lives forever.
    let renamed =
        unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr().cast::<c_char>()) };
    if renamed != 0 {
        checked.give_back();
        return Err(raised_by(capsule.py(), "DLPack capsule").into());
    }
    Ok(checked)
}

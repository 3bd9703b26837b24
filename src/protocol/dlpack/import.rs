//! Consumer: from `__dlpack__` to an [`Imported`].

use std::ffi::{CStr, c_char};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyDict, PyInt, PyTuple};
use pyo3::{ffi, intern};

use super::{LEGACY, USED_LEGACY, USED_VERSIONED, VERSIONED};
use crate::cuda::{Stream, device_count, enter};
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Failure};
use crate::managed::Imported;
use crate::protocol::ImportRequest;
use crate::protocol::capsule::shown_name;
use crate::protocol::keep::raised_by;

/// Asks an object with `__dlpack__` for a capsule and takes the tensor out of it. Zero-copy unless
/// the request allows a copy to the host. The producer's deleter runs when the last view is
/// dropped.
pub(in crate::protocol) fn import(
    obj: &Bound<'_, PyAny>,
    request: ImportRequest,
) -> Result<Option<Imported>, Failure> {
    let py = obj.py();
    let Some(method) = obj.getattr_opt(intern!(py, "__dlpack__"))? else {
        return Ok(None);
    };
    let device = match announced(obj) {
        // An array without memory (deleted, traced, meta) stumbles here, and explains itself there.
        Err(error) if request.explains && !is_interrupt(py, &error) => Device::CPU,
        answer => answer?,
    };
    let managed = device.kind == DeviceKind::CudaManaged; // in step with the host once it is asked for
    let driver = device_count().map_err(|error| error.about(&format!("memory on {device}")));
    match (device.kind, driver) {
        (DeviceKind::Cuda | DeviceKind::CudaManaged, Ok(_)) if request.anywhere => {
            return on_device(&method, device.ordinal).map(Some);
        }
        (DeviceKind::Cuda, Err(error)) if request.anywhere && !request.believed => {
            return Err(error.into());
        }
        _ => {}
    }
    if !managed && (device.is_host() || request.anywhere) {
        return take(&call_producer(&method)?).map(Some);
    }
    if !request.to_host {
        device.check_on_host()?;
    }
    take(&method.call((), Some(&keywords_to_host(py, request)?))?).map(Some)
}

/// As [`import`], where the producer says that its memory is on a CUDA device, and there is a driver.
pub(in crate::protocol) fn import_of_cuda(
    obj: &Bound<'_, PyAny>,
    request: ImportRequest,
) -> Result<Option<Imported>, Failure> {
    let Some(method) = obj.getattr_opt(intern!(obj.py(), "__dlpack__"))? else {
        return Ok(None);
    };
    let asked = obj.getattr_opt(intern!(obj.py(), "__dlpack_device__"))?.is_some();
    if device_count().is_err() || !asked {
        return Ok(None);
    }
    match announced(obj) {
        Err(error) if request.explains && !is_interrupt(obj.py(), &error) => Ok(None),
        Err(error) => Err(error),
        Ok(device) if device.kind == DeviceKind::Cuda => {
            on_device(&method, device.ordinal).map(Some)
        }
        Ok(_) => Ok(None),
    }
}

/// Asks with the device's context current, which producers expect, and with the stream on which
/// dlfield works: the producer lets it wait for what is in flight.
fn on_device(method: &Bound<'_, PyAny>, ordinal: i32) -> Result<Imported, Failure> {
    let _current = enter(ordinal)?;
    let keywords = keywords(method.py())?.map(Bound::copy);
    let [all, versioned] = keywords;
    let (all, versioned) = (all?, versioned?);
    let handle = Stream::current(ordinal)?.handle();
    for keywords in [&all, &versioned] {
        keywords.set_item(intern!(method.py(), "stream"), handle)?;
    }
    let (capsule, told) = call_with(method, &all, &versioned)?;
    // Who knows no streams means the legacy default one.
    // SAFETY: a stream of every device, which lives as long as the process.
    let legacy = unsafe { Stream::foreign(Stream::LEGACY, ordinal) };
    let stream = if told { Stream::current(ordinal)? } else { legacy };
    Ok(take(&capsule)?.after_work_on(stream))
}

/// An exception that nobody may answer with another question: KeyboardInterrupt, SystemExit.
fn is_interrupt(py: Python<'_>, failure: &Failure) -> bool {
    matches!(failure, Failure::Theirs(error) if !error.is_instance_of::<PyException>(py))
}

/// The device that a producer says its capsule will be on. What the capsule says counts more; this
/// is asked first so that a producer on another device does no work in vain.
fn announced(obj: &Bound<'_, PyAny>) -> Result<Device, Failure> {
    let wrong = |got: &str| {
        Error::Type(format!(
            "__dlpack_device__: expected a method that gives a pair of ints, got {got}"
        ))
    };
    let method = obj.getattr_opt(intern!(obj.py(), "__dlpack_device__"))?;
    let answer = method.ok_or_else(|| wrong("none beside __dlpack__"))?.call0()?;
    let pair = answer.cast::<PyTuple>().ok().filter(|pair| {
        pair.len() == 2 && pair.iter().all(|number| number.is_instance_of::<PyInt>())
    });
    let pair = match pair {
        Some(pair) => pair,
        None => return Err(wrong(&answer.repr()?.to_string()).into()),
    };
    let (code, ordinal) = pair.extract::<(i32, i32)>().map_err(|_| {
        Error::Argument(format!(
            "__dlpack_device__: expected a device type and a device id, got {pair}"
        ))
    })?;
    Ok(Device::from_dlpack(code.into(), ordinal)?)
}

/// Calls with today's keywords, then as producers of 2023 and of 2021 know them. A producer whose
/// signature lacks a keyword is called without; every other exception is its own and passes.
fn call_producer<'py>(method: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let [all, versioned] = keywords(method.py())?;
    call_with(method, all, versioned).map(|(capsule, _)| capsule)
}

/// What the producer answers, and whether it knew the keywords.
fn call_with<'py>(
    method: &Bound<'py, PyAny>,
    all: &Bound<'py, PyDict>,
    versioned: &Bound<'py, PyDict>,
) -> PyResult<(Bound<'py, PyAny>, bool)> {
    let py = method.py();
    let told = |capsule| (capsule, true);
    // A producer may keep or change what it gets: each has its own.
    let first = match method.call((), Some(&all.copy()?)) {
        Err(error) if is_about_the_signature(py, &error) => error,
        answer => return answer.map(told),
    };
    match method.call((), Some(&versioned.copy()?)) {
        Err(error) if is_about_the_signature(py, &error) => {}
        answer => return answer.map(told),
    }
    // Those of 2021 know the stream alone, and without it mean the legacy default one.
    if let Some(stream) = all.get_item(intern!(py, "stream"))? {
        let keywords = PyDict::new(py);
        keywords.set_item(intern!(py, "stream"), stream)?;
        match method.call((), Some(&keywords)) {
            Err(error) if is_about_the_signature(py, &error) => {}
            answer => return answer.map(told),
        }
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
    let keywords = PyDict::new(py);
    keywords.set_item("max_version", PyTuple::new(py, [1, 3])?)?;
    Ok(keywords)
}

/// What asks a producer on a device for host memory. There is no way to ask an old one.
fn keywords_to_host(py: Python<'_>, request: ImportRequest) -> PyResult<Bound<'_, PyDict>> {
    let keywords = version_keyword(py)?;
    keywords.set_item("dl_device", PyTuple::new(py, [1, 0])?)?;
    if !request.may_copy {
        keywords.set_item("copy", false)?;
    }
    Ok(keywords)
}

/// A TypeError about unknown keywords is raised before any frame of the producer is entered; one
/// from inside has a traceback. Subclasses (pyarrow's, for instance) are the producer's own.
fn is_about_the_signature(py: Python<'_>, error: &PyErr) -> bool {
    error.get_type(py).is(py.get_type::<PyTypeError>()) && error.traceback(py).is_none()
}

/// Takes ownership of a capsule's tensor, once its claims hold.
///
/// A tensor that is refused stays with its capsule, whose own destructor releases it: where the
/// name lies about the struct, the deleter that dlfield would call lies elsewhere. No Python code
/// runs between the checks and the renaming, so nobody else takes the tensor meanwhile.
fn take(answer: &Bound<'_, PyAny>) -> Result<Imported, Failure> {
    let capsule = answer.cast::<PyCapsule>().map_err(|_| {
        let name = answer.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
        Error::Type(format!("__dlpack__: expected a capsule, got an object of type '{name}'"))
    })?;
    if capsule.is_valid_checked(Some(VERSIONED)) {
        let tensor = aligned(capsule, VERSIONED)?;
        // SAFETY: a capsule of this name holds a DLManagedTensorVersioned (DLPack's Python
        // specification). It is owned once `checked` has renamed the capsule, and not dropped
        // before.
        let imported = ManuallyDrop::new(unsafe { Imported::from_versioned(tensor) });
        return checked(imported, capsule, USED_VERSIONED);
    }
    if capsule.is_valid_checked(Some(LEGACY)) {
        let tensor = aligned(capsule, LEGACY)?;
        // SAFETY: as above, for DLManagedTensor.
        let imported = ManuallyDrop::new(unsafe { Imported::from_legacy(tensor) });
        return checked(imported, capsule, USED_LEGACY);
    }
    Err(unknown_name(capsule).into())
}

fn aligned<T>(capsule: &Bound<'_, PyCapsule>, name: &CStr) -> Result<NonNull<T>, Failure> {
    let tensor = capsule.pointer_checked(Some(name))?.cast::<T>();
    if tensor.is_aligned() {
        return Ok(tensor);
    }
    let text = format!("DLPack capsule: expected an aligned struct, got one at {tensor:p}");
    Err(Error::Buffer(text).into())
}

fn checked(
    mut imported: ManuallyDrop<Imported>,
    capsule: &Bound<'_, PyCapsule>,
    used: &'static CStr,
) -> Result<Imported, Failure> {
    if let Err(error) = imported.check() {
        ManuallyDrop::into_inner(imported).leave();
        return Err(error.into());
    }
    // SAFETY: a capsule (its type was checked) and a name that lives for ever.
    let renamed =
        unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr().cast::<c_char>()) };
    if renamed != 0 {
        ManuallyDrop::into_inner(imported).leave();
        return Err(raised_by(capsule.py(), "DLPack capsule").into());
    }
    Ok(ManuallyDrop::into_inner(imported))
}

fn unknown_name(capsule: &Bound<'_, PyCapsule>) -> Error {
    let shown = shown_name(capsule);
    let hint = if shown.starts_with("'used_") {
        "; it was consumed before: call __dlpack__ again"
    } else {
        ""
    };
    Error::Argument(format!(
        "DLPack capsule: expected the name 'dltensor_versioned' or 'dltensor', got {shown}{hint}"
    ))
}

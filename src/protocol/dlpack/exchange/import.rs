//! Imports an object through the DLPack exchange table of its type.

use std::ptr::NonNull;

use dlpark::ffi::DLDeviceType;
use pyo3::prelude::*;

use super::lookup::{Functions, functions};
use crate::cuda::{Stream, is_available, synchronize};
use crate::device::{Device, DeviceKind};
use crate::error::Error;
use crate::interpreter::raised;
use crate::managed::{Checked, Untrusted};
use crate::protocol::door::{Answer, Price, Request};
use crate::protocol::producer::Recognised;

/// Asks the table of the object's type for a tensor. Zero-copy; the deleter runs when the last
/// view is dropped.
///
/// `None` if the type has no table, or one whose failure `__dlpack__` explains better; and if memory
/// of the host is requested and the tensor is elsewhere, or in memory that a device may be writing:
/// only `__dlpack__` can be asked to move or wait.
pub(in crate::protocol) fn import<'py>(
    obj: &Bound<'py, PyAny>,
    request: Request,
    known: Recognised,
) -> Answer<'py> {
    let py = obj.py();
    let Some(functions) = functions(&obj.get_type())? else {
        return Ok(None);
    };
    let mut tensor = std::ptr::null_mut();
    // SAFETY: the function of a table that was found on the type of this very object, called with
    // the interpreter attached and room for a pointer (dlpack.h).
    let code = unsafe { (functions.from_py)(obj.as_ptr().cast(), &raw mut tensor) };
    let error = raised(py);
    if code != 0 && known.producer.explains_itself() {
        return Ok(None); // its __dlpack__ explains why the table has failed
    }
    if code != 0 {
        return Err(error.map_or_else(|| silent("failed without an exception").into(), Into::into));
    }
    // Nothing of a misaligned tensor can be read, not even its deleter.
    let tensor = match NonNull::new(tensor) {
        Some(tensor) if tensor.is_aligned() => Ok(tensor),
        Some(_) => Err("gave a misaligned pointer"),
        None => Err("gave NULL"),
    };
    // SAFETY: the function returned 0, so by dlpack.h the tensor is ours, with a deleter that any
    // thread may call once. It is aligned (above); check() below looks at its version and claims.
    let tensor = tensor.map(|tensor| unsafe { Untrusted::from_versioned(tensor) });
    if let Some(error) = error {
        return Err(error.into()); // releases a tensor that was given nevertheless
    }
    in_order(py, tensor.map_err(silent)?.check().map_err(Error::from)?, functions, request)
}

/// Orders dlfield's work after that of the tensor's library; `None` if only `__dlpack__` can bring
/// the tensor to the host.
fn in_order<'py>(
    py: Python<'py>,
    claims: Checked,
    functions: Functions,
    request: Request,
) -> Answer<'py> {
    let device = claims.device();
    let shared = device.kind == DeviceKind::CudaManaged;
    let to_move = request.price != Price::Share && !device.is_host();
    if (shared || to_move) && !request.takes_device() {
        return Ok(None);
    }
    if device.kind != DeviceKind::Cuda || !is_available() {
        return Ok(Some(claims.into())); // without a driver, entrance.rs refuses or trusts it
    }
    let stream = work_stream(functions, device);
    drop(raised(py)); // without a known stream, the whole device is waited for below
    if stream.is_none() {
        py.detach(|| synchronize(device.ordinal))?; // WAIT since the producer's stream is unknown
    }
    // SAFETY: the stream on which the library works. dlpack.h does not say how long it lives: torch
    // never destroys its own; a user who selects another stream keeps it alive (docs/gpu.md).
    Ok(Some(unsafe { claims.on_stream(stream) }.into()))
}

/// Handle of the stream on which the object's library works on a device.
fn work_stream(functions: Functions, device: Device) -> Option<usize> {
    let ask = functions.work_stream?;
    let code = u32::try_from(device.code()).ok()?;
    let mut stream = std::ptr::null_mut();
    // SAFETY: a function of the table that `lookup` found on the type, called with the interpreter
    // attached and room for a pointer (dlpack.h).
    let answer = unsafe { ask(DLDeviceType(code), device.ordinal, &raw mut stream) };
    let handle = stream.expose_provenance();
    // NULL is the default stream, which the driver calls legacy unless it is told otherwise.
    (answer == 0).then_some(if handle == 0 { Stream::LEGACY } else { handle })
}

fn silent(what: &str) -> Error {
    Error::Buffer(format!(
        "DLPack exchange table: expected a tensor or an exception, got a function that {what}"
    ))
}

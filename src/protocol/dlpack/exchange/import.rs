//! Consumer: an owning tensor from an object whose type has a table.

use std::ptr::NonNull;

use dlpark::ffi::DLDeviceType;
use pyo3::prelude::*;

use super::lookup::{Functions, functions};
use crate::cuda::{Stream, device_count, synchronize};
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Failure};
use crate::managed::Imported;
use crate::protocol::ImportRequest;
use crate::protocol::keep::raised;

/// Asks the table of the object's type for a tensor. Zero-copy; the deleter runs when the last
/// view is dropped.
///
/// Where memory of the host is asked for and the tensor is elsewhere, or in memory that a device
/// may be writing, this door does not count: only `__dlpack__` can be asked to move or wait.
pub(in crate::protocol) fn import(
    obj: &Bound<'_, PyAny>,
    request: ImportRequest,
) -> Result<Option<Imported>, Failure> {
    let py = obj.py();
    let Some(functions) = functions(&obj.get_type())? else {
        return Ok(None);
    };
    let mut tensor = std::ptr::null_mut();
    // SAFETY: the function of a table that was found on the type of this very object, called with
    // the interpreter attached and room for a pointer (dlpack.h).
    let code = unsafe { (functions.from_py)(obj.as_ptr().cast(), &raw mut tensor) };
    let error = raised(py);
    if code != 0 && request.explains {
        return Ok(None); // torch's __dlpack__ says why its table has failed
    }
    if code != 0 {
        return Err(error.map_or_else(|| silent("failed without an exception").into(), Into::into));
    }
    let tensor = NonNull::new(tensor).ok_or("gave NULL");
    // Nothing of a misaligned tensor can be read, its deleter neither.
    let tensor = tensor.and_then(|tensor| {
        if tensor.is_aligned() { Ok(tensor) } else { Err("gave a misaligned pointer") }
    });
    // SAFETY: the function said that it gave an owning tensor; of which version is checked.
    let imported = tensor.map(|tensor| unsafe { Imported::from_versioned(tensor) });
    if let Some(error) = error {
        return Err(error.into()); // whatever was given is released
    }
    let mut imported = imported.map_err(silent)?;
    let device = imported.device()?;
    let shared = device.kind == DeviceKind::CudaManaged && !request.anywhere;
    if shared || request.to_host && !request.anywhere && !device.is_host() {
        return Ok(None);
    }
    if device.kind != DeviceKind::Cuda || device_count().is_err() {
        return Ok(Some(imported)); // what no driver knows is refused, or believed, later
    }
    let stream = work_stream(functions, device);
    drop(raised(py)); // a stream that cannot be told is waited for in another way
    if stream.is_none() {
        py.detach(|| synchronize(device.ordinal))?; // WAIT since nobody names the producer's stream
    }
    // SAFETY: the stream on which the library works. dlpack.h does not say how long it lives: torch never
    // destroys its own; who makes it work on another one keeps that (docs/gpu.md).
    Ok(Some(unsafe { imported.on_stream(stream) }))
}

/// Handle of the stream on which the object's library works on a device.
fn work_stream(functions: Functions, device: Device) -> Option<usize> {
    let ask = functions.work_stream?;
    let code = u32::try_from(device.code()).ok()?;
    let mut stream = std::ptr::null_mut();
    // SAFETY: a function of the table, with room for a pointer (dlpack.h).
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

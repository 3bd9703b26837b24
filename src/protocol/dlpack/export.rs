//! Producer: from a [`Managed`] to a capsule, as `__dlpack__` is asked for it.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use dlpark::ManagedTensorBase;
use dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyInt, PyTuple};

use super::{LEGACY, VERSIONED, to_legacy, to_versioned};
use crate::cuda::Stream;
use crate::device::{Device, DeviceKind};
use crate::error::Result;
use crate::managed::Managed;
use crate::protocol::keep::undisturbed;

/// The keywords of `__dlpack__`, as they came.
pub(crate) struct ExportRequest<'a, 'py> {
    pub(crate) stream: Option<&'a Bound<'py, PyAny>>,
    pub(crate) max_version: Option<&'a Bound<'py, PyAny>>,
    pub(crate) dl_device: Option<&'a Bound<'py, PyAny>>,
    pub(crate) copy: Option<&'a Bound<'py, PyAny>>,
}

/// What the keywords ask for, once they are known to make sense for the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Whether the consumer knows the versioned struct.
    pub(crate) versioned: bool,
    /// Whether it wants memory of its own (`Some(false)`: by no means).
    pub(crate) copy: Option<bool>,
    /// Where it wants the memory.
    pub(crate) device: Device,
    /// Handle of the stream that is to wait for what is in flight; `None`: none is.
    pub(crate) stream: Option<usize>,
}

impl ExportRequest<'_, '_> {
    /// Checks every keyword, for memory that announces one device and can be had on the host and on
    /// `own`.
    ///
    /// # Errors
    /// `TypeError` for a wrong type, `ValueError` for a wrong value, `BufferError` for a device
    /// that the memory is not on.
    pub(crate) fn check(&self, announced: Device, own: Option<Device>) -> PyResult<Answer> {
        let device = match self.dl_device {
            None => announced,
            Some(wanted) => chosen(wanted, announced, own)?,
        };
        let stream = match self.stream {
            Some(stream) if device.kind == DeviceKind::Cuda => checked_stream(stream)?,
            None if device.kind == DeviceKind::Cuda => Some(Stream::LEGACY),
            Some(stream) if device.kind == DeviceKind::Rocm => {
                check_rocm_stream(stream).map(|()| None)?
            }
            // The host gets what is finished.
            Some(stream) => check_stream(stream).map(|()| None)?,
            None => None,
        };
        let versioned = self.max_version.map_or(Ok(false), knows_versioned)?;
        let copy = self.copy.map_or(Ok(None), |copy| match copy.cast::<PyBool>() {
            Ok(copy) => Ok(Some(copy.is_true())),
            Err(_) => Err(wrong_type("copy", "True, False or None", copy)),
        })?;
        Ok(Answer { versioned, copy, device, stream })
    }
}

/// Host memory has no stream: None, or -1 for "do not synchronise".
fn check_stream(stream: &Bound<'_, PyAny>) -> PyResult<()> {
    if is_handle(stream, "None or -1 for host memory")?
        && stream.extract::<i64>().is_ok_and(|stream| stream == -1)
    {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("stream: expected None or -1 for host memory, got {stream}")))
}

/// A stream of CUDA, by DLPack's numbers: 1 and 2 are the default streams, 0 is ambiguous.
fn checked_stream(stream: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    is_handle(stream, "None or an int for memory of a CUDA device")?;
    match stream.extract::<i128>() {
        Ok(-1) => Ok(None),
        Ok(handle) if handle > 0 => {
            usize::try_from(handle).map(Some).map_err(|_| wrong_stream(stream))
        }
        _ => Err(wrong_stream(stream)),
    }
}

/// A stream of ROCm: 0 is its default stream, 1 and 2 are none. Nothing of dlfield's is in flight there.
fn check_rocm_stream(stream: &Bound<'_, PyAny>) -> PyResult<()> {
    is_handle(stream, "None or an int for memory of a ROCm device")?;
    let known = stream.extract::<i128>().is_ok_and(|handle| {
        handle == -1 || handle == 0 || (handle > 2 && usize::try_from(handle).is_ok())
    });
    if known {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "stream: expected -1 (no synchronisation), 0 (the default stream) or a handle of 64 bits, got {stream}, which \
         DLPack does not allow for ROCm"
    )))
}

fn wrong_stream(stream: &Bound<'_, PyAny>) -> PyErr {
    PyValueError::new_err(format!(
        "stream: expected -1 (no synchronisation), 1 (the legacy default stream), 2 (the per-thread one) or a handle \
         of 64 bits, got {stream}, which DLPack does not allow"
    ))
}

fn is_handle(stream: &Bound<'_, PyAny>, expected: &str) -> PyResult<bool> {
    if stream.is_instance_of::<PyBool>() || !stream.is_instance_of::<PyInt>() {
        return Err(wrong_type("stream", expected, stream));
    }
    Ok(true)
}

/// The host, the device that the memory is on, or what it announces.
fn chosen(wanted: &Bound<'_, PyAny>, announced: Device, own: Option<Device>) -> PyResult<Device> {
    let pair = pair("dl_device", wanted)?;
    let known = [Some(Device::CPU), own, Some(announced)].into_iter().flatten();
    let mut found = known.filter(|one| pair == (one.code(), i64::from(one.ordinal)));
    found.next().ok_or_else(|| {
        let beside = own.map_or_else(String::new, |own| format!(" or ({}, {})", own.code(), own.ordinal));
        PyBufferError::new_err(format!(
            "dl_device: expected (1, 0){beside}, where the memory is, got ({}, {}); move the result yourself",
            pair.0, pair.1
        ))
    })
}

fn knows_versioned(version: &Bound<'_, PyAny>) -> PyResult<bool> {
    let (major, minor) = pair("max_version", version)?;
    if major < 0 || minor < 0 {
        return Err(PyValueError::new_err(format!(
            "max_version: expected numbers of at least 0, got ({major}, {minor})"
        )));
    }
    Ok(major >= 1)
}

fn pair(what: &str, value: &Bound<'_, PyAny>) -> PyResult<(i64, i64)> {
    let wrong = || wrong_type(what, "a pair of ints", value);
    let tuple = value.cast::<PyTuple>().ok().filter(|tuple| tuple.len() == 2).ok_or_else(wrong)?;
    let number = |at: usize| {
        let item = tuple.get_borrowed_item(at)?;
        let item = item.cast::<PyInt>().map_err(|_| wrong())?;
        item.extract::<i64>().map_err(|_| {
            PyValueError::new_err(format!("{what}: expected numbers of 64 bits, got {value}"))
        })
    };
    Ok((number(0)?, number(1)?))
}

fn wrong_type(what: &str, expected: &str, got: &Bound<'_, PyAny>) -> PyErr {
    let got = got.repr().map_or_else(|_| "?".into(), |repr| repr.to_string());
    PyTypeError::new_err(format!("{what}: expected {expected}, got {got}"))
}

/// Memory of a device goes to somebody whose stream waits for what is in flight on it.
fn hand_over(managed: &Managed, stream: Option<usize>) -> Result<()> {
    let Some(timeline) = managed.timeline().filter(|_| !managed.device().is_host()) else {
        return Ok(());
    };
    timeline.hand_out();
    let Some(handle) = stream else { return Ok(()) };
    // SAFETY: DLPack's promise: a stream of the consumer, of the device that it asks for.
    let stream = unsafe { Stream::foreign(handle, managed.device().ordinal) };
    timeline.join(stream) // WAIT of the consumer for what is in flight
}

/// A capsule over `managed`. Zero-copy; where `copied`, the caller has just made the copy.
///
/// # Errors
/// `BufferError` for negative strides, and for read-only memory in a legacy capsule, which has no
/// word for it.
pub(crate) fn export<'py>(
    py: Python<'py>,
    managed: &Managed,
    answer: Answer,
    copied: bool,
) -> PyResult<Bound<'py, PyCapsule>> {
    let managed = &managed.clone().seen_at(answer.device);
    hand_over(managed, answer.stream)?;
    if answer.versioned {
        return capsule::<DLManagedTensorVersioned>(
            py,
            to_versioned(managed, copied)?,
            VERSIONED,
            drop_versioned,
        );
    }
    if managed.readonly() {
        return Err(PyBufferError::new_err(
            "DLPack export: expected max_version=(1, 0) or higher for read-only memory, got a request for the \
             legacy capsule, which cannot say so; use to_jax() for JAX, or hand over a copy",
        ));
    }
    legacy(py, managed)
}

/// A legacy capsule for a consumer that is known never to write, of read-only memory too.
pub(crate) fn legacy_for_reader<'py>(
    py: Python<'py>,
    managed: &Managed,
    answer: Answer,
) -> PyResult<Bound<'py, PyCapsule>> {
    hand_over(managed, answer.stream)?;
    legacy(py, managed)
}

fn legacy<'py>(py: Python<'py>, managed: &Managed) -> PyResult<Bound<'py, PyCapsule>> {
    capsule::<DLManagedTensor>(py, to_legacy(managed)?, LEGACY, drop_legacy)
}

fn capsule<'py, M: ManagedTensorBase>(
    py: Python<'py>,
    tensor: dlpark::Managed<M>,
    name: &'static CStr,
    destructor: ffi::PyCapsule_Destructor,
) -> PyResult<Bound<'py, PyCapsule>> {
    let raw = tensor.into_raw();
    let pointer = NonNull::new(raw.cast::<c_void>())
        .ok_or_else(|| PyBufferError::new_err("DLPack export: no tensor"))?;
    // SAFETY: the destructor belongs to this name and type; it releases the tensor where nobody
    // renamed the capsule.
    let made =
        unsafe { PyCapsule::new_with_pointer_and_destructor(py, pointer, name, Some(destructor)) };
    if made.is_err() {
        // SAFETY: no capsule took the tensor; it came from into_raw above.
        drop(unsafe { dlpark::Managed::from_raw(raw) });
    }
    made
}

unsafe extern "C" fn drop_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with the dying capsule that `capsule` made of this type.
    unsafe { release::<DLManagedTensorVersioned>(capsule, VERSIONED) };
}

unsafe extern "C" fn drop_legacy(capsule: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe { release::<DLManagedTensor>(capsule, LEGACY) };
}

/// Releases the tensor of a capsule that nobody consumed. A consumed one has another name.
///
/// # Safety
/// `capsule` was made by [`capsule`] with `M` and `name`, and dies now.
unsafe fn release<M: ManagedTensorBase>(capsule: *mut ffi::PyObject, name: &'static CStr) {
    // SAFETY: a capsule, attached to the interpreter; sets no exception, whatever is pending.
    if unsafe { ffi::PyCapsule_IsValid(capsule, name.as_ptr()) } == 0 {
        return;
    }
    // SAFETY: valid under this name, so that this cannot fail or touch a pending exception.
    let tensor = unsafe { ffi::PyCapsule_GetPointer(capsule, name.as_ptr()) };
    // SAFETY: the capsule still owns the tensor that `capsule` gave it.
    let owned = unsafe { dlpark::Managed::from_raw(tensor.cast::<M>()) };
    // SAFETY: a destructor is called with the interpreter attached.
    let py = unsafe { Python::assume_attached() };
    undisturbed(py, || drop(owned));
}

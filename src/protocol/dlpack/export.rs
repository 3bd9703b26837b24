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
use crate::device::Device;
use crate::managed::Managed;
use crate::protocol::keep::undisturbed;

/// The keywords of `__dlpack__`, as they came.
pub(crate) struct ExportRequest<'a, 'py> {
    pub(crate) stream: Option<&'a Bound<'py, PyAny>>,
    pub(crate) max_version: Option<&'a Bound<'py, PyAny>>,
    pub(crate) dl_device: Option<&'a Bound<'py, PyAny>>,
    pub(crate) copy: Option<&'a Bound<'py, PyAny>>,
}

/// What the keywords ask for, once they are known to make sense for host memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Whether the consumer knows the versioned struct.
    pub(crate) versioned: bool,
    /// Whether it wants memory of its own.
    pub(crate) copy: bool,
}

impl ExportRequest<'_, '_> {
    /// Checks every keyword.
    ///
    /// # Errors
    /// `TypeError` for a wrong type, `ValueError` for a wrong value, `BufferError` for a device
    /// that the memory is not on.
    pub(crate) fn check(&self) -> PyResult<Answer> {
        self.stream.map_or(Ok(()), check_stream)?;
        self.dl_device.map_or(Ok(()), check_device)?;
        let versioned = self.max_version.map_or(Ok(false), knows_versioned)?;
        let copy = self.copy.map_or(Ok(false), |copy| match copy.cast::<PyBool>() {
            Ok(copy) => Ok(copy.is_true()),
            Err(_) => Err(wrong_type("copy", "True, False or None", copy)),
        })?;
        Ok(Answer { versioned, copy })
    }
}

/// Host memory has no stream: None, or -1 for "do not synchronise".
fn check_stream(stream: &Bound<'_, PyAny>) -> PyResult<()> {
    if stream.is_instance_of::<PyBool>() || !stream.is_instance_of::<PyInt>() {
        return Err(wrong_type("stream", "None or -1 for host memory", stream));
    }
    if stream.extract::<i64>().is_ok_and(|stream| stream == -1) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("stream: expected None or -1 for host memory, got {stream}")))
}

fn check_device(device: &Bound<'_, PyAny>) -> PyResult<()> {
    let (code, ordinal) = pair("dl_device", device)?;
    if code == Device::CPU.code() && ordinal == 0 {
        return Ok(());
    }
    Err(PyBufferError::new_err(format!(
        "dl_device: expected (1, 0), where the memory is, got ({code}, {ordinal}); move the result yourself"
    )))
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
    let tuple = value.cast::<PyTuple>().map_err(|_| wrong())?;
    let ints = tuple.len() == 2 && tuple.iter().all(|item| item.is_instance_of::<PyInt>());
    if !ints {
        return Err(wrong());
    }
    tuple.extract().map_err(|_| {
        PyValueError::new_err(format!("{what}: expected numbers of 64 bits, got {value}"))
    })
}

fn wrong_type(what: &str, expected: &str, got: &Bound<'_, PyAny>) -> PyErr {
    let got = got.repr().map_or_else(|_| "?".into(), |repr| repr.to_string());
    PyTypeError::new_err(format!("{what}: expected {expected}, got {got}"))
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
    legacy_for_reader(py, managed)
}

/// A legacy capsule for a consumer that is known never to write, of read-only memory too.
pub(crate) fn legacy_for_reader<'py>(
    py: Python<'py>,
    managed: &Managed,
) -> PyResult<Bound<'py, PyCapsule>> {
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

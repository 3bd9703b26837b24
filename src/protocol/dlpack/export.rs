//! Producer: from a [`Managed`] to a capsule, as `__dlpack__` is asked for it.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use dlpark::ManagedTensorBase;
use dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned};
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyCapsule, PyInt, PyTuple};

use super::tensor::{LEGACY, VERSIONED, to_legacy_on, to_versioned_on};
use crate::cuda::Stream;
use crate::device::{Device, DeviceKind};
use crate::error::Result;
use crate::interpreter::{InObject, Inside};
use crate::managed::Managed;
use crate::protocol::read::{pair, shown, wrong_type};

/// The keywords of `__dlpack__`, as they came.
pub(crate) struct ExportRequest<'a, 'py> {
    pub(crate) stream: Option<&'a Bound<'py, PyAny>>,
    pub(crate) max_version: Option<&'a Bound<'py, PyAny>>,
    pub(crate) dl_device: Option<&'a Bound<'py, PyAny>>,
    pub(crate) copy: Option<&'a Bound<'py, PyAny>>,
}

/// The keywords, checked for the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExportTerms {
    /// True if the consumer knows the versioned struct.
    pub(crate) versioned: bool,
    /// True if it wants a copy, false if it refuses one.
    pub(crate) copy: Option<bool>,
    /// The device on which it wants the memory.
    pub(crate) device: Device,
    /// Handle of the stream that waits for work in flight; `None` for no stream.
    pub(crate) stream: Option<usize>,
}

impl ExportRequest<'_, '_> {
    /// Checks every keyword, for memory that announces one device and can be had on the host and on
    /// `own`.
    ///
    /// # Errors
    /// `TypeError` for a wrong type, `ValueError` for a wrong value, `BufferError` for a device
    /// that the memory is not on; `RuntimeError` for a stream of the host, and `ValueError` for any
    /// wrong `copy`, as NumPy.
    pub(crate) fn check(&self, announced: Device, own: Option<Device>) -> PyResult<ExportTerms> {
        let device = match self.dl_device {
            None => announced,
            Some(wanted) => chosen(wanted, announced, own)?,
        };
        let stream = match self.stream {
            Some(stream) => read_stream(stream, device.kind)?,
            None => Some(Stream::LEGACY).filter(|_| device.kind == DeviceKind::Cuda),
        };
        let versioned = self.max_version.map_or(Ok(false), knows_versioned)?;
        let copy = self.copy.map(|copy| match copy.cast::<PyBool>() {
            Ok(copy) => Ok(copy.is_true()),
            Err(_) => Err(PyValueError::new_err(format!(
                "copy: expected True, False or None, got {}",
                shown(copy)
            ))),
        });
        let copy = copy.transpose()?;
        Ok(ExportTerms { versioned, copy, device, stream })
    }
}

/// Handle of the stream that waits for work in flight, by DLPack's numbers: -1 for none. 1 and 2
/// are CUDA's default streams, and 0 is ambiguous there; 0 is ROCm's, where dlfield has no work.
fn read_stream(stream: &Bound<'_, PyAny>, kind: DeviceKind) -> PyResult<Option<usize>> {
    let (known, expected) = match kind {
        DeviceKind::Cuda => (1..3, "1 (the legacy default stream), 2 (the per-thread one)"),
        DeviceKind::Rocm => (0..1, "0 (the default stream)"),
        _ => (0..0, ""),
    };
    let number = stream.is_instance_of::<PyInt>() && !stream.is_instance_of::<PyBool>();
    if !number && !known.is_empty() {
        return Err(wrong_type("stream", "None or an int", stream).into());
    }
    let _inside = (!number).then(|| Inside::enter(stream.py()));
    match stream.extract::<i128>().map(|number| (number, usize::try_from(number))) {
        Ok((-1, _)) if number => Ok(None),
        Ok((_, Ok(handle))) if known.contains(&handle) || (handle > 2 && !known.is_empty()) => {
            Ok(Some(handle).filter(|_| kind == DeviceKind::Cuda))
        }
        _ if known.is_empty() => Err(PyRuntimeError::new_err(format!(
            "stream: expected None or -1 for host memory, got {}",
            shown(stream)
        ))),
        _ => Err(PyValueError::new_err(format!(
            "stream: expected -1 (no synchronisation), {expected} or a handle of 64 bits, got {}, \
             which DLPack does not allow for this device",
            shown(stream)
        ))),
    }
}

/// The host, the device that has the memory, or the announced device.
fn chosen(wanted: &Bound<'_, PyAny>, announced: Device, own: Option<Device>) -> PyResult<Device> {
    let pair = pair("dl_device", wanted)?;
    let known = [Some(Device::CPU), own, Some(announced)].into_iter().flatten();
    let mut found = known.filter(|one| pair == (one.code(), i64::from(one.ordinal)));
    found.next().ok_or_else(|| {
        let written = |(code, ordinal)| format!("({code}, {ordinal})");
        let own = own.map(|own| format!(" or {}", written((own.code(), own.ordinal.into()))));
        PyBufferError::new_err(format!(
            "dl_device: expected (1, 0){}, where the memory is, got {}; move the result yourself",
            own.unwrap_or_default(),
            written(pair)
        ))
    })
}

fn knows_versioned(version: &Bound<'_, PyAny>) -> PyResult<bool> {
    // Consumers ask with the same tuple each time.
    static SEEN: [PyOnceLock<(Py<PyAny>, bool)>; 4] = [const { PyOnceLock::new() }; 4];
    let py = version.py();
    let seen = SEEN.iter().map_while(|seen| seen.get(py)).find(|seen| seen.0.is(version));
    if let Some((_, knows)) = seen {
        return Ok(*knows);
    }
    let (major, minor) = pair("max_version", version)?;
    if major < 0 || minor < 0 {
        return Err(PyValueError::new_err(format!(
            "max_version: expected numbers of at least 0, got ({major}, {minor})"
        )));
    }
    let knows = major >= 1;
    if is_fixed(version) {
        let _is_kept =
            SEEN.iter().any(|place| place.set(py, (version.clone().unbind(), knows)).is_ok());
    }
    Ok(knows)
}

/// True for a tuple of ints that can never read as anything else.
fn is_fixed(version: &Bound<'_, PyAny>) -> bool {
    let plain = |entry: Borrowed<'_, '_, PyAny>| entry.is_exact_instance_of::<PyInt>();
    version.cast_exact::<PyTuple>().is_ok_and(|tuple| tuple.iter_borrowed().all(plain))
}

/// Makes the consumer's stream wait for work in flight on memory that it takes on a device.
fn hand_over(managed: &Managed, device: Device, stream: Option<usize>) -> Result<()> {
    let Some(timeline) = managed.timeline().filter(|_| !device.is_host()) else {
        return Ok(());
    };
    let Some(handle) = stream else { return Ok(()) };
    // SAFETY: a stream of the consumer, on the device that it asks for (DLPack's Python
    // specification, `stream`).
    let stream = unsafe { Stream::foreign(handle, device.ordinal) };
    timeline.join(stream) // WAIT of the consumer for work in flight
}

/// A capsule over `managed`. Zero-copy. `copied` is true for a copy that the caller has just made.
///
/// # Errors
/// `BufferError` for negative strides, and for read-only memory in a legacy capsule, which cannot
/// say so.
pub(crate) fn export<'py>(
    py: Python<'py>,
    managed: &Managed,
    answer: ExportTerms,
    copied: bool,
) -> PyResult<Bound<'py, PyCapsule>> {
    let device = match managed.device() {
        memory if answer.device.is_host() && memory.is_host() => Device::CPU,
        memory => memory.announced(),
    };
    hand_over(managed, device, answer.stream)?;
    if answer.versioned {
        return capsule(py, to_versioned_on(managed, device, copied)?);
    }
    if managed.readonly() {
        return Err(PyBufferError::new_err(
            "DLPack export: expected max_version=(1, 0) or higher for read-only memory, got a \
             request for the legacy capsule, which cannot say so; for JAX use \
             storage.to_jax(copy=None), which shares the memory, or jnp.asarray(storage); hand a \
             copy to others",
        ));
    }
    capsule(py, to_legacy_on(managed, device)?)
}

/// A legacy capsule for a consumer that is known never to write, of read-only memory too.
pub(crate) fn legacy_for_reader<'py>(
    py: Python<'py>,
    managed: &Managed,
    answer: ExportTerms,
) -> PyResult<Bound<'py, PyCapsule>> {
    hand_over(managed, managed.device(), answer.stream)?;
    capsule(py, to_legacy_on(managed, managed.device())?)
}

/// A struct, and the name of a capsule that holds it.
trait InCapsule: ManagedTensorBase {
    const NAME: &'static CStr;
}

impl InCapsule for DLManagedTensorVersioned {
    const NAME: &'static CStr = VERSIONED;
}

impl InCapsule for DLManagedTensor {
    const NAME: &'static CStr = LEGACY;
}

fn capsule<M: InCapsule>(
    py: Python<'_>,
    tensor: dlpark::Managed<M>,
) -> PyResult<Bound<'_, PyCapsule>> {
    let raw = tensor.into_raw();
    let pointer = NonNull::new(raw.cast::<c_void>())
        .ok_or_else(|| PyBufferError::new_err("DLPack export: no tensor"))?;
    let release = Some(release::<M> as ffi::PyCapsule_Destructor);
    // SAFETY: the destructor belongs to this name and type; it releases the tensor where nobody
    // renamed the capsule.
    let made = unsafe { PyCapsule::new_with_pointer_and_destructor(py, pointer, M::NAME, release) };
    if made.is_err() {
        // SAFETY: no capsule took the tensor; it came from into_raw above.
        drop(unsafe { dlpark::Managed::from_raw(raw) });
    }
    made
}

/// Releases the tensor of a capsule that nobody consumed. A consumed one has another name.
///
/// # Safety
/// `capsule` was made by [`capsule`] with `M`, and dies now.
unsafe extern "C" fn release<M: InCapsule>(capsule: *mut ffi::PyObject) {
    // SAFETY: a capsule, and Python frees objects attached; sets no exception, whatever is pending.
    if unsafe { ffi::PyCapsule_IsValid(capsule, M::NAME.as_ptr()) } == 0 {
        return;
    }
    // SAFETY: valid under this name, so that this cannot fail or touch a pending exception.
    let tensor = unsafe { ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr()) };
    // SAFETY: the capsule still owns the tensor that `capsule` gave it.
    let owned = unsafe { dlpark::Managed::from_raw(tensor.cast::<M>()) };
    // SAFETY: the capsule's; Python frees it attached.
    drop(unsafe { InObject::new(owned) });
}

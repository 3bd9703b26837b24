//! Streams of the user: `use_stream`, and the release of the GIL while freed memory waits.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyTuple};

use crate::cuda::{Stream, choose, release_interpreter_by, unchoose};
use crate::error::{Error, Failure};
use crate::interpreter::{Inside, attached, is_attached};
use crate::protocol::read::{int, wrong_type};

/// Releases the GIL while freed memory waits for a device, from the first call on.
pub(crate) fn let_go_while_freeing() {
    release_interpreter_by(|wait| {
        // Never acquire the GIL here: a deleter may run while its caller holds locks.
        let waited = is_attached().then(|| attached(|py| py.detach(&mut *wait))).flatten();
        if waited.is_none() {
            wait(); // without the GIL, or after Python has ended
        }
    });
}

/// The context manager that `use_stream` makes.
#[pyclass(frozen, name = "UsedStream", module = "dlfield")]
pub(crate) struct UsedStream {
    stream: Stream,
    /// The object that keeps the stream.
    _owner: Py<PyAny>,
}

#[pymethods]
impl UsedStream {
    fn __enter__(slf: Py<Self>) -> Py<Self> {
        choose(slf.get().stream);
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        unchoose(self.stream);
    }

    /// Return the handle of the stream.
    fn __int__(&self) -> usize {
        self.stream.handle()
    }

    fn __repr__(&self) -> String {
        format!("use_stream({:#x}) on GPU {}", self.stream.handle(), self.stream.ordinal())
    }
}

/// Let dlfield work on a stream of yours: `with dlfield.use_stream(stream):`.
///
/// In the block, copies and fills that this thread asks for run on that stream, for memory of its
/// device. They wait by events for work in flight on other streams. The exchange
/// table of a storage names the stream to others; work that they put on it after the block is not
/// followed. Outside of such blocks dlfield works on a stream of its own for each device, which
/// keeps order with the legacy default stream.
///
/// Parameters
/// ----------
/// stream
///     An object with `__cuda_stream__`, `cuda_stream` (torch) or `ptr` (CuPy), which is kept, or a
///     handle as an int: 1 is the legacy default stream, 2 the per-thread one. Any other stream
///     must outlive all memory that is used in the block.
///
/// Raises
/// ------
/// TypeError, ValueError
///     For anything but a stream; 0 is ambiguous, as in the CUDA array interface.
/// DeviceUnavailable
///     If CUDA cannot be used, or refuses the stream. CUDA may fail to notice that a handle is not
///     a stream.
#[pyfunction]
pub(crate) fn use_stream(stream: &Bound<'_, PyAny>) -> PyResult<UsedStream> {
    let _inside = Inside::enter(stream.py());
    let handle = handle(stream)?;
    // SAFETY: the object's, or the user's, promise: a stream, for longer than it is used.
    let found = unsafe { Stream::from_handle(handle) }?;
    Ok(UsedStream { stream: found, _owner: stream.clone().unbind() })
}

/// The stream of an object that has one, on a known GPU.
///
/// # Safety
/// The stream exists on the GPU `ordinal` as long as the result is used.
pub(crate) unsafe fn stream_of(stream: &Bound<'_, PyAny>, ordinal: i32) -> PyResult<Stream> {
    let handle = handle(stream)?;
    // SAFETY: the caller's promise.
    Ok(unsafe { Stream::foreign(handle, ordinal) })
}

fn handle(stream: &Bound<'_, PyAny>) -> Result<usize, Failure> {
    let py = stream.py();
    if stream.is_instance_of::<PyInt>() {
        return match number(stream)? {
            0 => Err(not_a_handle(stream).into()),
            handle => Ok(handle),
        };
    }
    let found = if let Some(method) = stream.getattr_opt(intern!(py, "__cuda_stream__"))? {
        let pair = if method.is_callable() { method.call0()? } else { method };
        match pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() {
            Ok((version, handle)) if version.eq(0)? => Some(handle),
            _ => None, // not the protocol, or a later version of it
        }
    } else if let Some(handle) = stream.getattr_opt(intern!(py, "cuda_stream"))? {
        Some(handle)
    } else {
        stream.getattr_opt(intern!(py, "ptr"))?
    };
    let handle = number(&found.ok_or_else(|| not_a_stream(stream))?)?;
    // The default stream of an object is the legacy one.
    Ok(if handle == 0 { Stream::LEGACY } else { handle })
}

fn number(handle: &Bound<'_, PyAny>) -> Result<usize, Failure> {
    if !handle.is_instance_of::<PyInt>() || handle.is_instance_of::<PyBool>() {
        return Err(not_a_stream(handle).into());
    }
    usize::try_from(int("stream", handle)?).map_err(|_| not_a_handle(handle).into())
}

fn not_a_handle(handle: &Bound<'_, PyAny>) -> Error {
    Error::Argument(format!(
        "stream: expected 1 (the legacy default stream), 2 (the per-thread one) or a handle, got \
         {handle}"
    ))
}

fn not_a_stream(stream: &Bound<'_, PyAny>) -> Error {
    wrong_type("stream", "an object with __cuda_stream__, cuda_stream or ptr, or an int", stream)
}

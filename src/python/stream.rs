//! Streams of the user: `use_stream`, and letting the interpreter go while memory that is freed waits.

use std::ffi::c_int;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyTuple};

use crate::cuda::{Stream, choose, of_handle, release_interpreter_by, unchoose};

/// Lets the interpreter go while memory that is freed waits for a device, from the first call on.
pub(super) fn let_go_while_freeing() {
    release_interpreter_by(|wait| {
        // Who has not got it must not ask for it: a deleter may be called with locks held.
        let waited = if PyGILState_Check() == 0 {
            None
        } else {
            Python::try_attach(|py| py.detach(&mut *wait))
        };
        if waited.is_none() {
            wait(); // where Python has ended nobody wants the interpreter either
        }
    });
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let_go_while_freeing();
    module.add_class::<UsedStream>()?;
    module.add_function(wrap_pyfunction!(use_stream, module)?)
}

unsafe extern "C" {
    // SAFETY: the C API's function of this name: no arguments, an int, for any thread at any time.
    /// Whether this thread has the interpreter. Every Python that abi3 is for exports it, though it is no
    /// part of abi3; where there are several interpreters it may say yes to anybody.
    safe fn PyGILState_Check() -> c_int;
}

/// Made by `use_stream`.
#[pyclass(frozen, name = "UsedStream", module = "dlfield")]
struct UsedStream {
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

    /// Handle of the stream.
    fn __int__(&self) -> usize {
        self.stream.handle()
    }

    fn __repr__(&self) -> String {
        format!("use_stream({:#x}) on GPU {}", self.stream.handle(), self.stream.ordinal())
    }
}

/// Let dlfield work on a stream of yours: `with dlfield.use_stream(stream):`.
///
/// Copies and fills that this thread asks for in the block are put on that stream, for memory of its
/// device; what is in flight elsewhere is waited for by events. What others do on it after the block,
/// because the exchange table of a storage named it to them, is not followed. Otherwise dlfield works on a stream of
/// its own for each device, which keeps order with the legacy default stream.
///
/// Parameters
/// ----------
/// stream
///     An object with `__cuda_stream__`, `cuda_stream` (torch) or `ptr` (CuPy), which is kept, or a
///     handle as an int (1 is the legacy default stream, 2 the per-thread one), which has to live
///     longer than any memory that is used in the block.
///
/// Raises
/// ------
/// TypeError, ValueError
///     For what is no stream; 0 is ambiguous, as in the CUDA array interface.
/// DeviceUnavailable
///     Where CUDA cannot be used, or refuses the stream. It need not find out that a handle is none.
#[pyfunction]
fn use_stream(stream: &Bound<'_, PyAny>) -> PyResult<UsedStream> {
    let handle = handle(stream)?;
    // SAFETY: the object's, or the user's, promise: a stream, for longer than it is used.
    let found = unsafe { of_handle(handle) }?;
    Ok(UsedStream { stream: found, _owner: stream.clone().unbind() })
}

fn handle(stream: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = stream.py();
    if stream.is_instance_of::<PyInt>() && !stream.is_instance_of::<PyBool>() {
        let handle = stream.extract::<usize>().ok().filter(|&handle| handle != 0);
        return handle.ok_or_else(|| {
            PyValueError::new_err(format!(
                "stream: expected 1 (the legacy default stream), 2 (the per-thread one) or a handle, got {stream}"
            ))
        });
    }
    let found = if let Some(method) = stream.getattr_opt(intern!(py, "__cuda_stream__"))? {
        let pair = if method.is_callable() { method.call0()? } else { method };
        let pair = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>();
        let (version, handle) = pair.map_err(|_| wrong(stream))?;
        if !version.eq(0)? {
            return Err(wrong(stream)); // of a protocol that nobody knows yet
        }
        Some(number(&handle)?)
    } else if let Some(handle) = stream.getattr_opt(intern!(py, "cuda_stream"))? {
        Some(number(&handle)?)
    } else {
        let pointer = stream.getattr_opt(intern!(py, "ptr"))?;
        pointer.map(|pointer| number(&pointer)).transpose()?
    };
    // The default stream of an object is the legacy one.
    let handle = found.map(|handle| if handle == 0 { Stream::LEGACY } else { handle });
    handle.ok_or_else(|| wrong(stream))
}

/// A handle as an object tells it.
fn number(handle: &Bound<'_, PyAny>) -> PyResult<usize> {
    if !handle.is_instance_of::<PyInt>() || handle.is_instance_of::<PyBool>() {
        return Err(wrong(handle));
    }
    handle.extract().map_err(|_| {
        PyValueError::new_err(format!("stream: expected a handle of 64 bits, got {handle}"))
    })
}

fn wrong(stream: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "stream: expected an object with __cuda_stream__, cuda_stream or ptr, or an int, got {}",
        stream.repr().map_or_else(|_| "?".into(), |repr| repr.to_string())
    ))
}

//! The handler itself, and the Python functions that it calls, by the text that names them.

use std::collections::HashSet;
use std::ffi::{CString, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use pyo3::exceptions::{PyBufferError, PyLookupError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

use super::abi::{
    Api, CallFrame, ERROR_CREATE_ARGS, EXECUTE, ErrorCreateArgs, INTERNAL, INVALID_ARGUMENT,
    METADATA, METADATA_SIZE, MetadataExtension, UNAVAILABLE, VERSION, XlaError,
};
use super::frame::{Frame, Lent};
use crate::interpreter::{Inside, attached_and_counted};
use crate::python::numpy::array_over;

/// XLA's error code and a text.
type Failed = (u32, String);

/// Return the dict of entries by name, each `(function, asks_writable)`.
///
/// The function takes arrays of NumPy, the inputs and then the outputs, and may not keep them. If it
/// asks for writable inputs it must not write them all the same.
#[pyfunction]
pub(super) fn xla_entries(py: Python<'_>) -> Bound<'_, PyDict> {
    static ENTRIES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    ENTRIES.get_or_init(py, || PyDict::new(py).unbind()).bind(py).clone()
}

/// Return a capsule with the handler, for `jax.ffi.register_ffi_target`.
#[pyfunction]
pub(super) fn xla_handler(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let handler: unsafe extern "C" fn(*mut CallFrame) -> *mut XlaError = handle;
    // SAFETY: a function, which lives as long as the process and needs no destructor. JAX asks for a
    // capsule without a name.
    let capsule = unsafe { ffi::PyCapsule_New(handler as *mut c_void, ptr::null(), None) };
    // SAFETY: a new reference, or NULL with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }
}

/// XLA calls this, on any of its threads, with the GIL held or not.
///
/// # Safety
/// `frame` is a call frame of XLA's.
unsafe extern "C" fn handle(frame: *mut CallFrame) -> *mut XlaError {
    // SAFETY: XLA passes a live frame.
    let frame = unsafe { &*frame };
    // SAFETY: as above.
    if unsafe { tells_metadata(frame) } || frame.stage != EXECUTE {
        return ptr::null_mut();
    }
    let done = catch_unwind(AssertUnwindSafe(|| execute(frame)));
    match done.unwrap_or_else(|_| Err((INTERNAL, "dlfield: panicked; please report it".into()))) {
        Ok(()) => ptr::null_mut(),
        Err(failed) => error(frame.api, failed),
    }
}

/// Tells XLA the version of the handler, where it asks for that.
///
/// # Safety
/// `frame` is a call frame of XLA's.
unsafe fn tells_metadata(frame: &CallFrame) -> bool {
    // SAFETY: NULL, or an extension.
    let Some(extension) = (unsafe { frame.extensions.as_ref() }) else { return false };
    if extension.kind != METADATA || extension.size < size_of::<MetadataExtension>() {
        return false;
    }
    // SAFETY: NULL, as in jaxlib 0.8, or XLA's table, which lives as long as the process.
    let api = unsafe { frame.api.as_ref() };
    if api.is_some_and(|api| api.error_create.is_none()) {
        return true; // without a version XLA registers nothing, as errors could not be told
    }
    // SAFETY: an extension of this kind.
    let metadata = unsafe { (*frame.extensions.cast::<MetadataExtension>()).metadata };
    // SAFETY: NULL, or a struct that nobody else uses now.
    if let Some(metadata) = unsafe { metadata.as_mut() }.filter(|one| one.size >= METADATA_SIZE) {
        (metadata.version.major, metadata.version.minor) = VERSION;
        metadata.traits = 0;
    }
    true
}

fn execute(frame: &CallFrame) -> Result<(), Failed> {
    let frame = Frame::read(frame).map_err(|error| (INVALID_ARGUMENT, error.to_string()))?;
    // Counted, so that an exception is dropped in the call, which is asked whether arrays are kept.
    attached_and_counted(|py| {
        let _inside = Inside::enter(py);
        call(py, &frame)
    })
    .unwrap_or_else(|| Err((UNAVAILABLE, "dlfield: the interpreter has ended".into())))
}

/// Calls the entry with arrays over XLA's memory, and makes sure that it keeps none.
fn call(py: Python<'_>, frame: &Frame<'_>) -> Result<(), Failed> {
    let raised = |error: PyErr| failed(py, &error);
    let (name, function, asks_writable) = entry(py, frame).map_err(raised)?;
    let lent = Lent::default();
    // An exception is dropped here, with the frames that it came through, which hold the arrays.
    let done = compute(py, frame, &lent, &function, asks_writable).map_err(|error| {
        clear_frames(py, &error);
        raised(error)
    });
    if !lent.is_in_use() {
        return done;
    }
    let before = done.err().map(|(_, text)| format!("{text}; ")).unwrap_or_default();
    let text = format!(
        "{before}'{name}': expected that it keeps no array after the call, got one that is still in \
         use; copy what is to be kept: XLA uses the memory again"
    );
    Err((INVALID_ARGUMENT, text))
}

/// The entry that a call names: name, function, and whether it asks for writable inputs.
fn entry<'py, 'a>(
    py: Python<'py>,
    frame: &Frame<'a>,
) -> PyResult<(&'a str, Bound<'py, PyAny>, bool)> {
    let name = frame.entry()?;
    let entry = xla_entries(py).get_item(name)?.ok_or_else(|| {
        PyLookupError::new_err(format!(
            "dlfield.jax_call: needs '{name}' in this process; call jax_call there, and keep what it \
             belongs to"
        ))
    })?;
    let (function, asks_writable) = entry.extract()?;
    Ok((name, function, asks_writable))
}

/// Calls a function with arrays over the memory that XLA lends.
fn compute(
    py: Python<'_>,
    frame: &Frame<'_>,
    lent: &Lent,
    function: &Bound<'_, PyAny>,
    asks_writable: bool,
) -> PyResult<()> {
    let inputs = frame.inputs(lent)?;
    let outputs = frame.outputs(lent)?;
    let inputs = inputs.iter().map(|one| array_over(py, one, !asks_writable));
    let arrays = inputs.chain(outputs.iter().map(|one| array_over(py, one, false)));
    let arrays = PyTuple::new(py, arrays.collect::<PyResult<Vec<_>>>()?)?;
    function.call1(arrays).map(drop)
}

/// Lets the frames that an exception came through forget their arrays: an exception that a variable
/// in one of them holds would keep the frame until a collection of garbage. So would one that it
/// comes from.
fn clear_frames(py: Python<'_>, error: &PyErr) {
    let Ok(clear) = py.import("traceback").and_then(|module| module.getattr("clear_frames")) else {
        return;
    };
    let mut left = vec![error.value(py).clone().into_any()];
    let mut seen = HashSet::new();
    while let Some(one) = left.pop() {
        if one.is_none() || !seen.insert(one.as_ptr()) {
            continue;
        }
        let follow = |name| one.getattr(name).ok();
        if let Some(traceback) = follow("__traceback__").filter(|traceback| !traceback.is_none()) {
            let _as_far_as_it_can = clear.call1((traceback,));
        }
        left.extend(["__cause__", "__context__"].into_iter().filter_map(follow));
    }
}

fn failed(py: Python<'_>, error: &PyErr) -> Failed {
    let is_argument = error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyBufferError>(py);
    let code = if is_argument { INVALID_ARGUMENT } else { INTERNAL };
    (code, error.to_string())
}

/// An error of XLA's with a text, which it copies. The process ends if XLA has passed no function that
/// makes one: the call would pass for one that has computed.
fn error(api: *const Api, (code, text): Failed) -> *mut XlaError {
    let message = CString::new(text.replace('\0', " ")).unwrap_or_default();
    let mut arguments = ErrorCreateArgs {
        size: ERROR_CREATE_ARGS,
        extensions: ptr::null_mut(),
        message: message.as_ptr(),
        code,
    };
    // SAFETY: NULL, or XLA's table, which lives as long as the process.
    let create = unsafe { api.as_ref() }.and_then(|api| api.error_create);
    match create {
        // SAFETY: XLA's own function, with the struct that it takes.
        Some(create) => unsafe { create(&raw mut arguments) },
        None => {
            eprintln!("dlfield: XLA has no function for errors, and a call has failed: {text}");
            std::process::abort()
        }
    }
}

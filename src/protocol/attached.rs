//! Keeping Python objects alive from memory that may be dropped anywhere, and leaving a pending
//! exception alone while foreign code runs.

use std::mem::ManuallyDrop;
use std::ops::Deref;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::ending::Inside;

/// Keeps a value whose drop needs the interpreter. Dropping it, on any thread, attaches the
/// interpreter and keeps a pending exception.
///
/// A plain `Py` would wait for the next call of this module if PyO3 cannot see that the interpreter
/// is attached, as in the deleter of a capsule.
pub(crate) struct DropAttached<T>(ManuallyDrop<T>);

impl<T> DropAttached<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T> Deref for DropAttached<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for DropAttached<T> {
    fn drop(&mut self) {
        // After the interpreter has ended the value leaks.
        let _ = Python::try_attach(|py| {
            // SAFETY: taken once, here; the value is not used again.
            let value = unsafe { ManuallyDrop::take(&mut self.0) };
            let _inside = Inside::enter(py);
            undisturbed(py, || drop(value));
        });
    }
}

/// Runs `f`, which may run Python code, and keeps a pending exception. An exception that `f` leaves
/// is dropped.
pub(super) fn undisturbed<R>(py: Python<'_>, f: impl FnOnce() -> R) -> R {
    let mut pending = [std::ptr::null_mut(); 3];
    if PyErr::occurred(py) {
        let [kind, value, traceback] = &mut pending;
        // SAFETY: attached; takes the exception.
        unsafe { ffi::PyErr_Fetch(kind, value, traceback) };
    }
    let result = f();
    let [kind, value, traceback] = pending;
    if !kind.is_null() || PyErr::occurred(py) {
        // SAFETY: attached; gives back exactly what was taken, in place of what f has left.
        unsafe { ffi::PyErr_Restore(kind, value, traceback) };
    }
    result
}

/// Takes the exception that a call has set, if any.
pub(super) fn raised(py: Python<'_>) -> Option<PyErr> {
    if PyErr::occurred(py) { PyErr::take(py) } else { None }
}

/// Takes the exception of a call that has failed, or makes one if there is none.
pub(super) fn raised_by(py: Python<'_>, what: &str) -> PyErr {
    raised(py).unwrap_or_else(|| {
        PyBufferError::new_err(format!(
            "{what}: expected an exception from a failed call, got none"
        ))
    })
}

//! Keeping Python objects alive from memory that may be dropped anywhere, and leaving a pending
//! exception alone while foreign code runs.

use std::mem::ManuallyDrop;
use std::ops::Deref;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Something of Python's, or of a foreign producer's, that is given back where it is dropped, on any
/// thread, with the interpreter attached and a pending exception kept.
///
/// A plain `Py` would wait for the next call of this module where PyO3 cannot see that the
/// interpreter is attached, as in the deleter of a capsule.
pub(crate) struct Keep<T>(ManuallyDrop<T>);

impl<T> Keep<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T> Deref for Keep<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for Keep<T> {
    fn drop(&mut self) {
        // After the interpreter is gone nothing can be given back: it leaks.
        let _ = Python::try_attach(|py| {
            // SAFETY: taken once, here; the value is not used again.
            let value = unsafe { ManuallyDrop::take(&mut self.0) };
            undisturbed(py, || drop(value));
        });
    }
}

/// Runs `f`, which may run Python code, without losing an exception that is on its way. What `f`
/// leaves behind is dropped: nobody is there to take it.
pub(super) fn undisturbed<R>(py: Python<'_>, f: impl FnOnce() -> R) -> R {
    let mut pending = [std::ptr::null_mut(); 3];
    if is_pending(py) {
        let [kind, value, traceback] = &mut pending;
        // SAFETY: attached; takes the exception.
        unsafe { ffi::PyErr_Fetch(kind, value, traceback) };
    }
    let result = f();
    let [kind, value, traceback] = pending;
    if !kind.is_null() || is_pending(py) {
        // SAFETY: attached; gives back exactly what was taken, in place of what f has left.
        unsafe { ffi::PyErr_Restore(kind, value, traceback) };
    }
    result
}

/// The exception that a call has set, if it has.
pub(super) fn raised(py: Python<'_>) -> Option<PyErr> {
    if is_pending(py) { PyErr::take(py) } else { None }
}

/// The exception of a call that has failed. One that fails without any gets one.
pub(super) fn raised_by(py: Python<'_>, what: &str) -> PyErr {
    raised(py).unwrap_or_else(|| {
        PyBufferError::new_err(format!(
            "{what}: expected an exception from a failed call, got none"
        ))
    })
}

fn is_pending(_py: Python<'_>) -> bool {
    // SAFETY: attached, which the token shows; only looks.
    unsafe { !ffi::PyErr_Occurred().is_null() }
}

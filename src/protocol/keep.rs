//! Keeping Python objects alive from memory that may be dropped anywhere, and leaving a pending
//! exception alone while foreign code runs.

use std::mem::ManuallyDrop;

use pyo3::ffi;
use pyo3::prelude::*;

/// A reference to an object that is given back at once where it is dropped, on any thread.
///
/// PyO3's own reference waits for the next call of this module where it cannot see that the
/// interpreter is attached, as in the deleter of a capsule.
pub(super) struct Keep(ManuallyDrop<Py<PyAny>>);

impl Keep {
    pub(super) fn new(obj: &Bound<'_, PyAny>) -> Self {
        Self(ManuallyDrop::new(obj.clone().unbind()))
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        // After the interpreter is gone the reference leaks with its object.
        let _ = Python::try_attach(|py| {
            // SAFETY: taken once, here; the value is not used again.
            let object = unsafe { ManuallyDrop::take(&mut self.0) };
            undisturbed(py, || drop(object));
        });
    }
}

/// Runs `f`, which may run Python code, without losing an exception that is on its way.
pub(super) fn undisturbed<R>(_py: Python<'_>, f: impl FnOnce() -> R) -> R {
    let mut pending = [std::ptr::null_mut(); 3];
    let [kind, value, traceback] = &mut pending;
    // SAFETY: attached; takes the exception, or leaves three NULLs.
    unsafe { ffi::PyErr_Fetch(kind, value, traceback) };
    let result = f();
    let [kind, value, traceback] = pending;
    // SAFETY: attached; gives back exactly what was taken, in place of what f may have left.
    unsafe { ffi::PyErr_Restore(kind, value, traceback) };
    result
}

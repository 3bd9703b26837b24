//! The bound stencil whose call runs on a thread, for the checker: what that call makes GT4Py do has
//! been checked.

use std::cell::Cell;

use pyo3::prelude::*;

thread_local! {
    /// The address of the stencil of the innermost call; 0 if there is none.
    static RUNNING: Cell<usize> = const { Cell::new(0) };
}

/// A call of a bound stencil, until it is dropped.
pub(super) struct Running {
    outer: usize,
}

impl Running {
    pub(super) fn enter(stencil: &Py<PyAny>) -> Self {
        Self { outer: RUNNING.replace(stencil.as_ptr().addr()) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.set(self.outer);
    }
}

/// Return whether the innermost call of a bound stencil on this thread is one of `stencil`.
#[pyfunction]
pub(super) fn is_bound_call(stencil: &Bound<'_, PyAny>) -> bool {
    RUNNING.get() == stencil.as_ptr().addr()
}

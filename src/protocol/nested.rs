//! Counts imports that run inside one another, and refuses too many: the stack is finite.

use std::cell::Cell;

use pyo3::exceptions::PyRecursionError;
use pyo3::prelude::*;

/// An import that may run inside others: of what a wrapper holds, or by a producer that imports.
pub(super) struct Nested;

thread_local! {
    static NESTED: Cell<usize> = const { Cell::new(0) };
}

impl Nested {
    /// How deep imports may nest: the stack ends before Python's own limit.
    const MAX: usize = 100;

    /// Counts one more import, until this is dropped.
    ///
    /// # Errors
    /// `RecursionError`.
    pub(super) fn enter() -> PyResult<Self> {
        let depth = NESTED.get();
        if depth >= Self::MAX {
            return Err(PyRecursionError::new_err(format!(
                "array: expected one, got wrappers (.ndarray, .data) around each other, or imports inside each \
                 other, {} deep",
                Self::MAX
            )));
        }
        NESTED.set(depth + 1);
        Ok(Self)
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        NESTED.set(NESTED.get().saturating_sub(1));
    }
}

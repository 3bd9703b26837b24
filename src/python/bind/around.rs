//! What the arguments want called around a run (GDP-3 and the notes): acquire, in the order of the
//! arguments and once for each object; touch, for what the stencil wrote; release.

use pyo3::prelude::*;

use crate::protocol::gt4py::{Acquired, Hooks};

/// The objects of one call that want to be told.
#[derive(Default)]
pub(super) struct Around(Vec<Told>);

struct Told {
    hooks: Hooks,
    written: bool,
}

impl Around {
    /// Notes an argument. An object that comes twice, by itself or in a wrapper, is told once.
    pub(super) fn add(&mut self, py: Python<'_>, hooks: Hooks, written: bool) {
        if hooks.is_empty() {
            return;
        }
        match self.0.iter_mut().find(|told| told.hooks.are_of_one_object(&hooks, py)) {
            Some(told) => told.written |= written,
            None => self.0.push(Told { hooks, written }),
        }
    }

    /// Whether nothing will be called.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Acquires everything, or nothing: what was acquired before one that fails is released.
    pub(super) fn acquire(&self, py: Python<'_>) -> PyResult<Vec<Acquired>> {
        self.0.iter().map(|told| told.hooks.acquire(py)).collect()
    }

    /// Says of what may have been written that it was, also where `outcome` is an error.
    pub(super) fn touch(&self, py: Python<'_>, outcome: PyResult<()>) -> PyResult<()> {
        let written = self.0.iter().filter(|told| told.written);
        written.fold(outcome, |outcome, told| first_of(py, outcome, told.hooks.touch(py)))
    }
}

/// Releases everything, whatever fails.
pub(super) fn release(
    py: Python<'_>,
    acquired: Vec<Acquired>,
    outcome: PyResult<()>,
) -> PyResult<()> {
    acquired.into_iter().fold(outcome, |outcome, one| first_of(py, outcome, one.release(py)))
}

/// The first error is raised, a later one is reported as unraisable.
pub(super) fn first_of(py: Python<'_>, first: PyResult<()>, second: PyResult<()>) -> PyResult<()> {
    match (first, second) {
        (Err(first), Err(second)) => {
            second.write_unraisable(py, None);
            Err(first)
        }
        (first, second) => first.and(second),
    }
}

//! What the arguments want called around a run (GDP-3 and the notes): acquire, in the order of the
//! arguments and once for each object; touch, for what the stencil wrote; release.

use pyo3::prelude::*;

use crate::protocol::gt4py::Hooks;

/// The objects of one call that want to be told.
#[derive(Default)]
pub(super) struct Around(Vec<Told>);

struct Told {
    hooks: Hooks,
    written: bool,
}

impl Around {
    /// Notes an argument. An object that comes twice, by itself or in a wrapper, is told once.
    pub(super) fn add(&mut self, hooks: Hooks, written: bool) {
        if hooks.is_empty() {
            return;
        }
        match self.0.iter_mut().find(|told| told.hooks.are_of_one_object(&hooks)) {
            Some(told) => told.written |= written,
            None => self.0.push(Told { hooks, written }),
        }
    }

    /// Runs `f` between the calls. What was acquired is released in any case, and what may have been
    /// written is touched, also where `f` fails. The first error is raised, later ones are reported
    /// as unraisable.
    pub(super) fn call(&self, py: Python<'_>, f: impl FnOnce() -> PyResult<()>) -> PyResult<()> {
        let acquired: PyResult<Vec<_>> = self.0.iter().map(|told| told.hooks.acquire(py)).collect();
        let acquired = acquired?; // those acquired so far are released as they are dropped
        let mut outcome = f();
        for told in self.0.iter().filter(|told| told.written) {
            outcome = first_of(py, outcome, told.hooks.touch(py));
        }
        for one in acquired {
            outcome = first_of(py, outcome, one.release(py));
        }
        outcome
    }
}

fn first_of(py: Python<'_>, first: PyResult<()>, second: PyResult<()>) -> PyResult<()> {
    match (first, second) {
        (Err(first), Err(second)) => {
            second.write_unraisable(py, None);
            Err(first)
        }
        (first, second) => first.and(second),
    }
}

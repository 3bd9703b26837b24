//! The functions that the arguments want called around a run (GDP-3 and the notes): acquire, in the
//! order of the arguments and once for each object; touch, after the stencil wrote; release.

use pyo3::prelude::*;

use super::incoming::IncomingFields;
use crate::protocol::hooks::{Acquired, Hooks};

/// For steps that all have to be done: the first error is raised, a later one is reported as
/// unraisable.
pub(super) fn first_of(py: Python<'_>, first: PyResult<()>, second: PyResult<()>) -> PyResult<()> {
    match (first, second) {
        (Err(first), Err(second)) => {
            second.write_unraisable(py, None);
            Err(first)
        }
        (first, second) => first.and(second),
    }
}

/// The hooks of one call, those of each object once.
pub(super) struct HookSet<'a>(Vec<OneObject<'a>>);

struct OneObject<'a> {
    hooks: &'a Hooks,
    written: bool,
}

impl<'a> HookSet<'a> {
    /// An object that comes twice, by itself or in a wrapper, is acquired and touched once. One
    /// that is read counts as written if its memory is written through another argument.
    pub(super) fn new(py: Python<'_>, fields: &'a IncomingFields) -> Self {
        let mut set: Vec<OneObject<'a>> = Vec::new();
        for field in fields.given().filter(|field| !field.hooks.is_empty()) {
            let (hooks, written) = (&field.hooks, fields.writes_memory_of(field));
            match set.iter_mut().find(|one| one.hooks.are_of_one_object(hooks, py)) {
                Some(known) => known.written |= written,
                None => set.push(OneObject { hooks, written }),
            }
        }
        Self(set)
    }

    /// Acquires everything, or nothing: if one fails, those before it are released.
    pub(super) fn acquire(&self, py: Python<'_>) -> PyResult<Vec<Acquired>> {
        self.0.iter().map(|one| one.hooks.acquire(py)).collect()
    }

    /// Touches what the stencil may have written, even if `outcome` is an error.
    pub(super) fn touch(&self, py: Python<'_>, outcome: PyResult<()>) -> PyResult<()> {
        let written = self.0.iter().filter(|one| one.written);
        written.fold(outcome, |outcome, one| first_of(py, outcome, one.hooks.touch(py)))
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

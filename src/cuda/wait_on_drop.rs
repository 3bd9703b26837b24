//! Waits for work on memory before the memory is released.

use std::sync::{Arc, OnceLock};

use super::context::synchronize;
use super::driver::is_ready;
use super::timeline::Timeline;
use crate::error::Result;

/// Waits on drop until the memory may return to its producer. To be dropped before the memory's
/// owner.
#[derive(Debug)]
pub(crate) struct WaitOnDrop {
    pub(crate) timeline: Arc<Timeline>,
    pub(crate) ordinal: i32,
    /// True if the producer reuses the memory in the order of the stream that it named.
    pub(crate) in_order: bool,
}

impl WaitOnDrop {
    fn settle(&self) -> Result<()> {
        self.timeline.settle_others(self.ordinal)?;
        if self.in_order && self.timeline.producer().is_some() {
            return Ok(()); // the producer's stream waits already (Timeline::leave)
        }
        without_interpreter(|| self.timeline.wait_for_own()) // WAIT for dlfield's work
    }
}

impl Drop for WaitOnDrop {
    fn drop(&mut self) {
        if is_ready() {
            let _ = self.settle(); // a failed device has no work in flight
        }
    }
}

impl Timeline {
    /// Waits for work of others, if they have the address.
    pub(super) fn settle_others(&self, ordinal: i32) -> Result<()> {
        if !self.is_exposed() {
            return Ok(());
        }
        without_interpreter(|| synchronize(ordinal)) // WAIT for work of others
    }
}

/// Runs a wait with Python's interpreter released.
type Release = fn(&mut (dyn FnMut() + Send));

static RELEASE: OnceLock<Release> = OnceLock::new();

/// Sets the function that releases the interpreter during a wait: a deleter may run attached to it.
pub(crate) fn release_interpreter_by(release: Release) {
    let _first_wins = RELEASE.set(release);
}

/// Runs `wait` with the interpreter released, if there is one.
pub(super) fn without_interpreter(wait: impl FnOnce() -> Result<()> + Send) -> Result<()> {
    let Some(release) = RELEASE.get() else {
        return wait();
    };
    let (mut wait, mut outcome) = (Some(wait), Ok(()));
    release(&mut || {
        if let Some(wait) = wait.take() {
            outcome = wait();
        }
    });
    outcome
}

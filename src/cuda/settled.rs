//! Waiting for work on memory before the memory goes.

use std::sync::{Arc, OnceLock};

use super::context::enter;
use super::driver::is_ready;
use super::timeline::Timeline;
use crate::error::Result;

/// Waits, where it is dropped, until the producer of memory may have it back.
#[derive(Debug)]
pub(crate) struct Settled {
    timeline: Arc<Timeline>,
    ordinal: i32,
    /// Whether the producer gives the memory to others in the order of the stream that it named.
    in_order: bool,
}

impl Settled {
    /// To be dropped before the memory is given back.
    pub(crate) fn before_giving_back(
        timeline: Arc<Timeline>,
        ordinal: i32,
        in_order: bool,
    ) -> Self {
        Self { timeline, ordinal, in_order }
    }

    fn settle(&self) -> Result<()> {
        self.timeline.settle_others(self.ordinal)?;
        if self.in_order && self.timeline.producer().is_some() {
            return Ok(()); // whose stream waits already
        }
        without_interpreter(|| self.timeline.wait_for_own()) // WAIT for dlfield's work before giving back
    }
}

impl Drop for Settled {
    fn drop(&mut self) {
        if is_ready() {
            let _ = self.settle(); // a device that has failed works on nothing any more
        }
    }
}

impl Timeline {
    /// Waits for those who have got the address and may work where dlfield is not told.
    pub(super) fn settle_others(&self, ordinal: i32) -> Result<()> {
        if !self.is_handed_out() {
            return Ok(());
        }
        without_interpreter(|| enter(ordinal)?.synchronize()) // WAIT for work of others before the end
    }
}

/// Runs a wait with Python's interpreter free for others.
type Release = fn(&mut (dyn FnMut() + Send));

static RELEASE: OnceLock<Release> = OnceLock::new();

/// Says how to let the interpreter go while a block that is freed waits: a deleter may hold it.
#[cfg(feature = "python")]
pub(crate) fn release_interpreter_by(release: Release) {
    let _the_first_counts = RELEASE.set(release);
}

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

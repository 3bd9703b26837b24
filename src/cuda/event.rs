//! Events: points in the work of a stream.

use std::mem::ManuallyDrop;

use super::calls::{self, Refused};
use super::context::enter;
use super::driver::is_ready;
use super::stream::Stream;
use crate::error::Result;

/// An owned event of the driver, or a foreign one that is never dropped.
#[derive(Debug)]
pub(crate) struct Event {
    handle: usize,
    ordinal: i32,
}

impl Event {
    /// Wraps an event of a producer, which destroys it.
    ///
    /// # Safety
    /// `handle` is a valid event as long as this value is used.
    pub(crate) unsafe fn foreign(handle: usize, ordinal: i32) -> ManuallyDrop<Self> {
        ManuallyDrop::new(Self { handle, ordinal })
    }

    /// Creates an event at the end of the current work on a stream.
    pub(super) fn after(stream: Stream) -> Result<Self> {
        let _current = enter(stream.ordinal())?;
        let event =
            Self { handle: calls::cuEventCreate(WITHOUT_TIMING)?, ordinal: stream.ordinal() };
        event.record(stream)?;
        Ok(event)
    }

    /// Moves the event to the end of the current work on a stream of the same device.
    pub(super) fn record(&self, stream: Stream) -> Result<()> {
        let _current = enter(self.ordinal)?;
        // SAFETY: the event is valid (after, foreign); a Stream holds a valid handle.
        Ok(unsafe { calls::cuEventRecord(self.handle, stream.handle()) }?)
    }

    /// Orders later work on `stream` after the event. Does not wait.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if the driver fails.
    pub(crate) fn hold_back(&self, stream: Stream) -> Result<()> {
        let _current = enter(stream.ordinal())?;
        // SAFETY: the event is valid (after, foreign); a Stream holds a valid handle.
        Ok(unsafe { calls::cuStreamWaitEvent(stream.handle(), self.handle, 0) }?)
    }

    /// Address of the handle: a pointer to a `cudaEvent_t` in C.
    pub(crate) fn address(&self) -> *const usize {
        &raw const self.handle
    }

    /// True if the work before the event is done. Does not wait.
    pub(super) fn is_done(&self) -> Result<bool> {
        let _current = enter(self.ordinal)?;
        // SAFETY: the event is valid (after, foreign).
        match unsafe { calls::cuEventQuery(self.handle) } {
            Err(refused) if refused.is(Refused::NOT_READY) => Ok(false),
            answer => Ok(answer.map(|()| true)?),
        }
    }

    /// Waits until the work before the event is done.
    ///
    /// # Errors
    /// The error of an earlier operation.
    pub(crate) fn wait(&self) -> Result<()> {
        let _current = enter(self.ordinal)?;
        // SAFETY: the event is valid (after, foreign).
        Ok(unsafe { calls::cuEventSynchronize(self.handle) }?)
    }
}

const WITHOUT_TIMING: u32 = 2;

impl Stream {
    /// Orders later work on this stream after the current work on `other`. Does not wait.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if the driver fails.
    pub(crate) fn follow(self, other: Self) -> Result<()> {
        if self.is_the_same_as(other) {
            return Ok(());
        }
        Event::after(other)?.hold_back(self)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if !is_ready() {
            return; // in a forked child, it belongs to the parent
        }
        let Ok(_current) = enter(self.ordinal) else { return };
        // SAFETY: `after` made the event (foreign ones are not dropped), and only this destroys it.
        // The driver keeps pending waits.
        let _ = unsafe { calls::cuEventDestroy_v2(self.handle) };
    }
}

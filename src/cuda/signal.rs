//! Events that cross the border: dlfield's for others to wait for, and those of others.

use std::sync::Arc;

use super::calls;
use super::context::enter;
use super::event::Event;
use super::stream::Stream;
use super::timeline::Timeline;
use crate::error::Result;

/// The end of all that is in flight on some memory, for a consumer that waits for events. It is there as long as
/// this is.
#[derive(Debug)]
pub(crate) struct Signal(Event);

impl Signal {
    /// # Errors
    /// What the driver refuses.
    pub(crate) fn after(timeline: &Timeline, ordinal: i32) -> Result<Arc<Self>> {
        let stream = Stream::current(ordinal)?;
        timeline.join(stream)?; // WAIT for what is in flight, which the event then stands for
        Ok(Arc::new(Self(Event::after(stream)?)))
    }

    /// Where the handle of the event is, as C has it: a pointer to a `cudaEvent_t`.
    pub(crate) fn address(&self) -> *const usize {
        self.0.place()
    }
}

/// An event of somebody else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ForeignEvent {
    handle: usize,
    ordinal: i32,
}

impl ForeignEvent {
    /// # Safety
    /// `handle` is an event for as long as this is used.
    pub(crate) unsafe fn new(handle: usize, ordinal: i32) -> Self {
        Self { handle, ordinal }
    }

    /// Work that is put on `stream` from now on comes after it. Does not wait.
    ///
    /// # Errors
    /// What the driver refuses.
    pub(crate) fn hold_back(self, stream: Stream) -> Result<()> {
        let _current = enter(stream.ordinal())?;
        // SAFETY: an event (ForeignEvent::new), and a stream, which its type vouches for.
        Ok(unsafe { calls::wait_event(stream.handle(), self.handle) }?)
    }

    /// Waits until the work before it is done.
    ///
    /// # Errors
    /// What an earlier operation has failed with.
    pub(crate) fn wait(self) -> Result<()> {
        let _current = enter(self.ordinal)?;
        // SAFETY: an event (ForeignEvent::new).
        Ok(unsafe { calls::synchronize_event(self.handle) }?)
    }
}

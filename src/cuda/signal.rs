//! An event for somebody else to wait for.

use std::sync::Arc;

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

impl Stream {
    /// Work put on this stream from now on comes after an event of somebody else. Does not wait.
    ///
    /// # Errors
    /// What the driver refuses.
    ///
    /// # Safety
    /// `handle` is an event.
    pub(crate) unsafe fn follow_event(self, handle: usize) -> Result<()> {
        let _current = super::context::enter(self.ordinal())?;
        // SAFETY: the caller's promise, and a stream, which its type vouches for.
        Ok(unsafe { super::calls::wait_event(self.handle(), handle) }?)
    }
}

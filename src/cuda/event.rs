//! A point in the work of a stream.

use super::calls;
use super::context::enter;
use super::driver::is_ready;
use super::stream::Stream;
use crate::error::Result;

/// An event of the driver, destroyed when this is dropped.
#[derive(Debug)]
pub(super) struct Event {
    handle: usize,
    ordinal: i32,
}

impl Event {
    /// The end of the work that is on a stream now.
    pub(super) fn after(stream: Stream) -> Result<Self> {
        let _current = enter(stream.ordinal())?;
        let event = Self { handle: calls::create_event()?, ordinal: stream.ordinal() };
        event.record(stream)?;
        Ok(event)
    }

    /// The same for another point, and a stream of the same device.
    pub(super) fn record(&self, stream: Stream) -> Result<()> {
        let _current = enter(self.ordinal)?;
        // SAFETY: an event that `after` made, and a stream, which its type vouches for.
        Ok(unsafe { calls::record_event(self.handle, stream.handle()) }?)
    }

    /// Work that is put on `stream` from now on comes after it. Does not wait.
    pub(super) fn hold_back(&self, stream: Stream) -> Result<()> {
        let _current = enter(stream.ordinal())?;
        // SAFETY: an event that `after` made, and a stream, which its type vouches for.
        Ok(unsafe { calls::wait_event(stream.handle(), self.handle) }?)
    }

    /// Where its handle is.
    #[cfg(all(feature = "arrow", feature = "python"))]
    pub(super) fn place(&self) -> *const usize {
        &raw const self.handle
    }

    /// Whether the work before it is done. Does not wait.
    pub(super) fn is_done(&self) -> Result<bool> {
        let _current = enter(self.ordinal)?;
        // SAFETY: an event that `after` made.
        Ok(unsafe { calls::query_event(self.handle) }?)
    }

    /// Waits until the work before it is done.
    pub(super) fn wait(&self) -> Result<()> {
        let _current = enter(self.ordinal)?;
        // SAFETY: an event that `after` made.
        Ok(unsafe { calls::synchronize_event(self.handle) }?)
    }
}

impl Stream {
    /// Work put on this stream from now on comes after what is on `other` now. Does not wait.
    ///
    /// # Errors
    /// What the driver refuses.
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
            return; // a forked child: it belongs to the parent
        }
        let Ok(_current) = enter(self.ordinal) else { return };
        // SAFETY: an event that `after` made, destroyed once, here; the driver keeps what waits for it.
        let _ = unsafe { calls::destroy_event(self.handle) };
    }
}

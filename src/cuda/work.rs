//! Work of another library on one stream.

use std::sync::Arc;

use super::stream::Stream;
use super::timeline::Timeline;
use crate::error::Result;

/// Work that another library puts on a stream, in order with all work on the memory that it uses.
pub(crate) struct Work {
    stream: Stream,
    /// The stream that the user has chosen, if the work belongs there.
    within: Option<Stream>,
    /// The orders of the work on that memory.
    used: Vec<Arc<Timeline>>,
}

impl Work {
    pub(crate) fn on(stream: Stream) -> Self {
        Self { stream, within: None, used: Vec::new() }
    }

    /// Work that belongs to the stream that the user has chosen, put on another one.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if the driver fails.
    pub(crate) fn away_on(stream: Stream) -> Result<Self> {
        let within = Stream::chosen(stream.ordinal());
        if let Some(chosen) = within {
            stream.follow(chosen)?; // WAIT of the other library for the user's work
        }
        Ok(Self { within, ..Self::on(stream) })
    }

    /// Lets the stream wait for what is in flight on memory, which it may use from now on. The host
    /// does not wait.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if the driver fails.
    pub(crate) fn join(&mut self, timeline: Option<&Arc<Timeline>>) -> Result<()> {
        if let Some(timeline) = timeline {
            timeline.join(self.stream)?; // WAIT of the other library for work in flight
            self.used.push(Arc::clone(timeline));
        }
        Ok(())
    }

    /// Records that others have the addresses of the memory.
    pub(crate) fn expose(&self) {
        self.used.iter().for_each(|timeline| timeline.expose());
    }

    /// Records that the current work on the stream may use the memory, also if the library failed.
    ///
    /// # Errors
    /// [`crate::Error::Device`]: the first failure of the driver, which leaves the rest in order.
    pub(crate) fn leave(&self) -> Result<()> {
        let left = |outcome: Result<()>, timeline: &Arc<Timeline>| {
            let next = timeline.leave(self.stream);
            outcome.and(next)
        };
        let (outcome, last) = (self.used.iter().fold(Ok(()), left), self.hand_back());
        outcome.and(last)
    }

    fn hand_back(&self) -> Result<()> {
        match self.within {
            Some(chosen) => chosen.follow(self.stream), // WAIT of the user for the other library
            None => Ok(()),
        }
    }
}

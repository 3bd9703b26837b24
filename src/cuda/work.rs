//! Work of another library on one stream.

use std::sync::Arc;

use super::stream::Stream;
use super::timeline::Timeline;
use crate::error::Result;

/// Work that another library puts on a stream, in order with all work on the memory that it uses.
pub(crate) struct Work {
    stream: Stream,
    /// The stream that the user has chosen, if the work is to be in order with it.
    chosen: Option<Stream>,
    /// The timelines of the memory that the work uses.
    used: Vec<Arc<Timeline>>,
}

impl Work {
    pub(crate) fn on(stream: Stream) -> Self {
        Self { stream, chosen: None, used: Vec::new() }
    }

    /// Starts work on a stream other than the one that the user has chosen, if any. `stream` waits
    /// for the chosen one here; the chosen one waits for the work in [`Work::leave`].
    ///
    /// # Errors
    /// [`crate::Error::Device`] if the driver fails.
    pub(crate) fn away_on(stream: Stream) -> Result<Self> {
        let chosen = Stream::chosen(stream.ordinal());
        if let Some(chosen) = chosen {
            stream.follow(chosen)?; // WAIT of the other library for the user's work
        }
        Ok(Self { chosen, ..Self::on(stream) })
    }

    /// Makes the stream wait for the work in flight on memory, which the other library may use from
    /// now on. The host does not wait.
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

    /// Records that the current work on the stream may use the memory, even if the library failed.
    ///
    /// # Errors
    /// [`crate::Error::Device`]: the first failure of the driver. The rest is recorded all the same.
    pub(crate) fn leave(&self) -> Result<()> {
        let left = |outcome: Result<()>, timeline: &Arc<Timeline>| {
            let next = timeline.leave(self.stream);
            outcome.and(next)
        };
        let (outcome, last) = (self.used.iter().fold(Ok(()), left), self.hand_back());
        outcome.and(last)
    }

    fn hand_back(&self) -> Result<()> {
        match self.chosen {
            Some(chosen) => chosen.follow(self.stream), // WAIT of the user for the other library
            None => Ok(()),
        }
    }
}

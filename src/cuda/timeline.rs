//! Work in flight on a block of memory, shared by all views of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use super::event::Event;
use super::stream::Stream;
use crate::error::Result;

/// One mark per stream; mostly there is one.
type Marks = SmallVec<[(Arc<Event>, Stream); 1]>;

/// Orders all known work on one block of memory.
///
/// To work on the memory, call [`Timeline::join`], enqueue the work on a stream, and call
/// [`Timeline::leave`]. Two threads that do so at once are ordered arbitrarily; guarding the values
/// is up to the user.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// Stream that the producer named for the memory, and keeps alive.
    producer: Option<Stream>,
    /// End of the work that the producer had in flight when it handed the memory over.
    arrival: Option<(Event, Stream)>,
    /// Ends of dlfield's work, by stream. Never locked during a wait.
    last: Mutex<Marks>,
    /// True if others have the address and may enqueue work unknown to dlfield.
    exposed: AtomicBool,
}

impl Timeline {
    /// Starts a timeline for memory on which the stream `producer` may work now and later. Other
    /// work in flight precedes the current end of the stream `after`.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if the driver fails.
    pub(crate) fn new(producer: Option<Stream>, after: Option<Stream>) -> Result<Self> {
        let arrival = after.map(|stream| Event::after(stream).map(|event| (event, stream)));
        Ok(Self { producer, arrival: arrival.transpose()?, ..Self::default() })
    }

    fn last(&self) -> MutexGuard<'_, Marks> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Orders later work on `stream` after all known work. Does not wait.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if the driver fails.
    pub(crate) fn join(&self, stream: Stream) -> Result<()> {
        if let Some(producer) = self.producer {
            stream.follow(producer)?; // WAIT for the producer's work
        }
        if let Some((event, on)) = &self.arrival
            && !on.is_the_same_as(stream)
        {
            event.hold_back(stream)?; // WAIT for the work in flight at the arrival
        }
        for (event, _) in self.last().iter().filter(|(_, on)| !on.is_the_same_as(stream)) {
            event.hold_back(stream)?; // WAIT for dlfield's work
        }
        Ok(())
    }

    /// Records that the current work on `stream` may use this memory. The producer's stream waits
    /// for it; the host does not.
    ///
    /// # Errors
    /// As [`Timeline::join`].
    pub(crate) fn leave(&self, stream: Stream) -> Result<()> {
        let event = self.mark(stream)?;
        if let Some(producer) = self.producer.filter(|producer| !producer.is_the_same_as(stream)) {
            event.hold_back(producer)?; // WAIT of the producer for dlfield's work
        }
        Ok(())
    }

    /// Marks the current end of a stream. If the driver fails, the marks stay as they are.
    fn mark(&self, stream: Stream) -> Result<Arc<Event>> {
        let mut last = self.last();
        if let Some((event, _)) = last.iter().find(|(_, on)| on.is_the_same_as(stream)) {
            event.record(stream)?;
            return Ok(Arc::clone(event));
        }
        let event = Arc::new(Event::after(stream)?);
        last.retain(|(event, _)| !event.is_done().unwrap_or(false)); // keeps their number small
        last.push((Arc::clone(&event), stream));
        Ok(event)
    }

    /// Waits until all known work is done.
    ///
    /// # Errors
    /// The error of an earlier operation.
    pub(crate) fn wait(&self) -> Result<()> {
        if let Some(producer) = self.producer {
            producer.wait()?; // WAIT of the host for the producer's work
        }
        if let Some((event, _)) = &self.arrival {
            event.wait()?; // WAIT of the host for what was in flight at the arrival
        }
        self.wait_for_own()
    }

    /// Waits until dlfield's own work is done.
    ///
    /// # Errors
    /// The error of an earlier operation.
    pub(super) fn wait_for_own(&self) -> Result<()> {
        let marks = self.last().clone();
        marks.iter().try_for_each(|(event, _)| event.wait()) // WAIT of the host for dlfield's work
    }

    /// True if work other than that of the producer's stream may be in flight. Does not wait.
    ///
    /// # Errors
    /// The error of an earlier operation.
    pub(crate) fn is_pending(&self) -> Result<bool> {
        let marks = self.last().clone();
        let arrival = self.arrival.iter().map(|(event, _)| event);
        for event in arrival.chain(marks.iter().map(|(event, _)| &**event)) {
            if !event.is_done()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// An event after all known work, for a consumer.
    ///
    /// # Errors
    /// As [`Timeline::join`].
    pub(crate) fn end(&self, ordinal: i32) -> Result<Event> {
        let stream = Stream::current(ordinal)?;
        self.join(stream)?; // WAIT for the work in flight, which the event represents
        Event::after(stream)
    }

    /// Stream that the producer named.
    pub(crate) fn producer(&self) -> Option<Stream> {
        self.producer
    }

    /// Records that others have the address.
    pub(crate) fn expose(&self) {
        self.exposed.store(true, Ordering::Relaxed);
    }

    /// True if others may enqueue work unknown to dlfield.
    pub(crate) fn is_exposed(&self) -> bool {
        self.exposed.load(Ordering::Relaxed)
    }
}

//! What is still being done to memory of a device, shared by all views of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use super::event::Event;
use super::stream::Stream;
use crate::error::Result;

/// One for each stream; mostly there is one.
type Marks = SmallVec<[(Arc<Event>, Stream); 1]>;

/// Orders all work on one block of memory, whoever does it, as far as dlfield is told of it.
///
/// Who works on the memory calls [`Timeline::join`], puts the work on a stream, and calls
/// [`Timeline::leave`]. Two threads that do so at once are ordered as they come; the values are the
/// users' to guard.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// The stream that the producer named for the memory, which keeps it alive.
    producer: Option<Stream>,
    /// The end of what the producer had in flight when it handed the memory over.
    arrival: Option<(Event, Stream)>,
    /// The ends of dlfield's work, by where it is. Never held while anybody waits.
    last: Mutex<Marks>,
    /// Whether others have the address, and may work where dlfield is not told.
    handed_out: AtomicBool,
}

impl Timeline {
    /// For memory on which work of `producer` may be in flight, now and later, and that of another
    /// before what is on `after` now.
    ///
    /// # Errors
    /// What the driver refuses.
    pub(crate) fn of(producer: Option<Stream>, after: Option<Stream>) -> Result<Self> {
        let arrival = after.map(|stream| Event::after(stream).map(|event| (event, stream)));
        Ok(Self { producer, arrival: arrival.transpose()?, ..Self::default() })
    }

    fn last(&self) -> MutexGuard<'_, Marks> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Work that is put on `stream` from now on comes after all that is known of. Does not wait.
    ///
    /// # Errors
    /// [`crate::Error::Device`]: what the driver refuses.
    pub(crate) fn join(&self, stream: Stream) -> Result<()> {
        if let Some(producer) = self.producer {
            stream.follow(producer)?; // WAIT for the producer's work
        }
        if let Some((event, on)) = &self.arrival
            && !on.is_the_same_as(stream)
        {
            event.hold_back(stream)?; // WAIT for what was in flight at the arrival
        }
        for (event, _) in self.last().iter().filter(|(_, on)| !on.is_the_same_as(stream)) {
            event.hold_back(stream)?; // WAIT for dlfield's work
        }
        Ok(())
    }

    /// Notes that what is on `stream` now may be work on this memory. The producer's stream waits for
    /// it; the host does not.
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

    /// The end of what is on a stream now, among the marks. Where the driver refuses, they stay.
    fn mark(&self, stream: Stream) -> Result<Arc<Event>> {
        let mut last = self.last();
        if let Some((event, _)) = last.iter().find(|(_, on)| on.is_the_same_as(stream)) {
            event.record(stream)?;
            return Ok(Arc::clone(event));
        }
        let event = Arc::new(Event::after(stream)?);
        last.retain(|(event, _)| !event.is_done().unwrap_or(false)); // so that they stay few
        last.push((Arc::clone(&event), stream));
        Ok(event)
    }

    /// Waits until all that is known of is done.
    ///
    /// # Errors
    /// What an earlier operation has failed with.
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
    /// What an earlier operation has failed with.
    pub(super) fn wait_for_own(&self) -> Result<()> {
        let marks = self.last().clone();
        marks.iter().try_for_each(|(event, _)| event.wait()) // WAIT of the host for dlfield's work
    }

    /// Whether work, but the producer's, may still be in flight. Does not wait.
    ///
    /// # Errors
    /// What an earlier operation has failed with.
    pub(crate) fn is_pending(&self) -> Result<bool> {
        let arrived = self.arrival.as_ref().map_or(Ok(true), |(event, _)| event.is_done())?;
        let marks = self.last().clone();
        let pending = marks.iter().map(|(event, _)| event.is_done());
        let done = pending.collect::<Result<SmallVec<[bool; 1]>>>()?.into_iter().all(|done| done);
        Ok(!arrived || !done)
    }

    /// The stream that the producer named.
    pub(crate) fn producer(&self) -> Option<Stream> {
        self.producer
    }

    /// Notes that others have got the address.
    pub(crate) fn hand_out(&self) {
        self.handed_out.store(true, Ordering::Relaxed);
    }

    /// Whether others may be working on it where dlfield is not told.
    pub(crate) fn is_handed_out(&self) -> bool {
        self.handed_out.load(Ordering::Relaxed)
    }
}

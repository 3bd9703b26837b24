//! Streams: dlfield's own, one for each device, and those of others.
//!
//! dlfield's stream keeps order with the legacy default stream (it is a *blocking* one), on which
//! torch, CuPy, numba and GT4Py put their work unless told otherwise: between it and them nobody has
//! to wait for anybody. It is never destroyed, so that it outlives whatever it is handed out with.

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

use super::calls;
use super::context::enter;
use super::driver::check_ordinal;
use crate::error::Result;

/// A stream of a device, for as long as somebody else keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stream {
    handle: usize,
    ordinal: i32,
}

static OWN: Mutex<Vec<Option<usize>>> = Mutex::new(Vec::new());

thread_local! {
    /// Streams that the user has chosen, the last one first asked.
    static CHOSEN: RefCell<Vec<Stream>> = const { RefCell::new(Vec::new()) };
}

impl Stream {
    /// Handle of the legacy default stream.
    pub(crate) const LEGACY: usize = 1;
    /// Handle of the per-thread default stream.
    pub(crate) const PER_THREAD: usize = 2;

    /// A stream of somebody else.
    ///
    /// # Safety
    /// `handle` is a stream of the device `ordinal` for as long as it is used.
    pub(crate) unsafe fn foreign(handle: usize, ordinal: i32) -> Self {
        Self { handle, ordinal }
    }

    /// The stream on which dlfield works on this thread: the user's, or its own.
    ///
    /// # Errors
    /// [`crate::Error::Device`] where there is no such device.
    pub(crate) fn current(ordinal: i32) -> Result<Self> {
        let chosen = CHOSEN.with_borrow(|chosen| {
            chosen.iter().rev().find(|stream| stream.ordinal == ordinal).copied()
        });
        chosen.map_or_else(|| Self::own(ordinal), Ok)
    }

    /// dlfield's own stream of a device.
    ///
    /// # Errors
    /// As [`Stream::current`].
    pub(crate) fn own(ordinal: i32) -> Result<Self> {
        check_ordinal(ordinal)?;
        let place = usize::try_from(ordinal).unwrap_or(0); // not negative (check_ordinal)
        let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
        if own.len() <= place {
            own.resize(place.saturating_add(1), None);
        }
        let known = own.get(place).copied().flatten();
        let handle = match known {
            Some(handle) => handle,
            None => {
                let _current = enter(ordinal)?;
                calls::create_stream(BLOCKING)?
            }
        };
        if let Some(slot) = own.get_mut(place) {
            *slot = Some(handle);
        }
        Ok(Self { handle, ordinal })
    }

    /// Whether work on both is in order by itself. The per-thread streams of two threads have one handle.
    pub(crate) fn is_the_same_as(self, other: Self) -> bool {
        self == other && self.handle != Self::PER_THREAD
    }

    pub(crate) fn handle(self) -> usize {
        self.handle
    }

    pub(crate) fn ordinal(self) -> i32 {
        self.ordinal
    }

    /// Waits until all work on the stream is done.
    ///
    /// # Errors
    /// What an earlier operation has failed with.
    pub(crate) fn wait(self) -> Result<()> {
        let _current = enter(self.ordinal)?;
        // SAFETY: a stream, which the type vouches for.
        Ok(unsafe { calls::synchronize_stream(self.handle) }?)
    }
}

const BLOCKING: u32 = 0;

/// The stream of somebody else that a handle stands for, with its device: for the two default
/// streams that of the thread's context, or the first.
///
/// # Errors
/// [`crate::Error::Device`] where the driver knows no such stream.
///
/// # Safety
/// `handle` is a stream for as long as the result is used.
pub(crate) unsafe fn of_handle(handle: usize) -> Result<Stream> {
    check_ordinal(0)?;
    let context = if handle <= Stream::PER_THREAD {
        calls::current()?
    } else {
        // SAFETY: the caller's promise.
        unsafe { calls::context_of_stream(handle) }?
    };
    if context == 0 {
        return Ok(Stream { handle, ordinal: 0 });
    }
    calls::push(context)?;
    let device = calls::current_device();
    calls::pop()?;
    Ok(Stream { handle, ordinal: device? })
}

/// Makes this thread work on a stream, for memory of its device, until [`unchoose`].
#[cfg(feature = "python")]
pub(crate) fn choose(stream: Stream) {
    CHOSEN.with_borrow_mut(|chosen| chosen.push(stream));
}

/// Takes the last choice of a stream back.
#[cfg(feature = "python")]
pub(crate) fn unchoose(stream: Stream) {
    CHOSEN.with_borrow_mut(|chosen| {
        if let Some(last) = chosen.iter().rposition(|one| *one == stream) {
            chosen.remove(last);
        }
    });
}

//! Streams: dlfield's own, one per device, and those of producers and users.
//!
//! dlfield's stream is a *blocking* one, which keeps order with the legacy default stream, where
//! torch, CuPy, numba and GT4Py enqueue their work by default: no waits are needed between these.
//! It is never destroyed, so that it outlives everything that is exported with it.

use std::cell::RefCell;

use super::calls;
use super::context::enter;
use super::driver::{PerDevice, check_ordinal};
use crate::error::Result;

/// A stream of a device. Does not own the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stream {
    handle: usize,
    ordinal: i32,
}

thread_local! {
    /// Streams that the user has chosen; the last one per device counts.
    static CHOSEN: RefCell<Vec<Stream>> = const { RefCell::new(Vec::new()) };
}

impl Stream {
    /// Handle of the legacy default stream.
    pub(crate) const LEGACY: usize = 1;
    /// Handle of the per-thread default stream.
    pub(crate) const PER_THREAD: usize = 2;

    /// The legacy default stream of a device.
    pub(crate) fn legacy(ordinal: i32) -> Self {
        Self { handle: Self::LEGACY, ordinal }
    }

    /// Wraps a foreign stream of a known device.
    ///
    /// # Safety
    /// `handle` is a valid stream of the device `ordinal` as long as the result is used.
    pub(crate) unsafe fn foreign(handle: usize, ordinal: i32) -> Self {
        Self { handle, ordinal }
    }

    /// The stream that the user has chosen for this thread's work on a device.
    pub(crate) fn chosen(ordinal: i32) -> Option<Self> {
        CHOSEN.with_borrow(|chosen| {
            chosen.iter().rev().find(|stream| stream.ordinal == ordinal).copied()
        })
    }

    /// The stream for dlfield's work on this thread: the user's choice, or its own.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if there is no such device.
    pub(crate) fn current(ordinal: i32) -> Result<Self> {
        Self::chosen(ordinal).map_or_else(|| Self::own(ordinal), Ok)
    }

    /// dlfield's own stream of a device.
    ///
    /// # Errors
    /// As [`Stream::current`].
    pub(crate) fn own(ordinal: i32) -> Result<Self> {
        static OWN: PerDevice = PerDevice::new();
        let handle = OWN.get(ordinal, || {
            let _current = enter(ordinal)?;
            Ok(calls::cuStreamCreate(BLOCKING)?)
        })?;
        Ok(Self { handle, ordinal })
    }

    /// True if work on both is in order anyway. The per-thread streams of all threads share a
    /// handle.
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
    /// The error of an earlier operation.
    pub(crate) fn wait(self) -> Result<()> {
        let _current = enter(self.ordinal)?;
        // SAFETY: a Stream holds a valid handle (own, foreign, from_handle).
        Ok(unsafe { calls::cuStreamSynchronize(self.handle) }?)
    }

    /// Wraps a foreign stream and looks up its device. The device of the two default streams is
    /// that of the thread's context, or the first.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if the driver does not know the stream.
    ///
    /// # Safety
    /// `handle` is a valid stream as long as the result is used.
    pub(crate) unsafe fn from_handle(handle: usize) -> Result<Self> {
        check_ordinal(0)?;
        let mut context = 0;
        if handle <= Self::PER_THREAD {
            context = calls::cuCtxGetCurrent()?;
        } else {
            // SAFETY: the caller guarantees that the handle is valid.
            unsafe { calls::cuStreamGetCtx(handle, &raw mut context) }?;
        }
        if context == 0 {
            return Ok(Self { handle, ordinal: 0 });
        }
        calls::cuCtxPushCurrent_v2(context)?;
        let device = calls::cuCtxGetDevice();
        calls::cuCtxPopCurrent_v2()?;
        Ok(Self { handle, ordinal: device? })
    }
}

const BLOCKING: u32 = 0;

/// Selects a stream for this thread's work on its device, until [`unchoose`].
pub(crate) fn choose(stream: Stream) {
    CHOSEN.with_borrow_mut(|chosen| chosen.push(stream));
}

/// Reverts the last choice of a stream.
pub(crate) fn unchoose(stream: Stream) {
    CHOSEN.with_borrow_mut(|chosen| {
        if let Some(last) = chosen.iter().rposition(|one| *one == stream) {
            chosen.remove(last);
        }
    });
}

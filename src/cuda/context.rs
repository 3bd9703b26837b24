//! The primary context of a device, made current for as long as a guard lives.
//!
//! A context that is retained once stays: torch, CuPy, JAX and numba share it, and would have to start
//! anew where the last one lets it go.

use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use super::calls;
use super::driver::check_ordinal;
#[cfg(feature = "python")]
use crate::device::Target;
use crate::error::Result;

/// The device's context is current on this thread; what was current before is again afterwards.
#[must_use = "the context is current as long as this lives"]
pub(crate) struct Entered {
    pushed: bool,
    /// Belongs to its thread.
    _thread: PhantomData<*const ()>,
}

/// Contexts by the number of their device.
static RETAINED: Mutex<Vec<Option<usize>>> = Mutex::new(Vec::new());

/// Makes the context of a device current.
///
/// # Errors
/// [`crate::Error::Device`] where there is no such device, or the driver refuses.
pub(crate) fn enter(ordinal: i32) -> Result<Entered> {
    let context = context(ordinal)?;
    let pushed = calls::current()? != context;
    if pushed {
        calls::push(context)?;
    }
    Ok(Entered { pushed, _thread: PhantomData })
}

/// The driver's handle of the context of a device.
pub(super) fn context(ordinal: i32) -> Result<usize> {
    check_ordinal(ordinal)?;
    let place = usize::try_from(ordinal).unwrap_or(0); // not negative (check_ordinal)
    let mut retained = RETAINED.lock().unwrap_or_else(PoisonError::into_inner);
    if retained.len() <= place {
        retained.resize(place.saturating_add(1), None);
    }
    let Some(slot) = retained.get_mut(place) else {
        return Ok(0);
    };
    match *slot {
        Some(context) => Ok(context),
        None => {
            let context = calls::retain_primary(calls::device(ordinal)?)?;
            *slot = Some(context);
            Ok(context)
        }
    }
}

impl Entered {
    /// Waits until all work in the context is done.
    ///
    /// # Errors
    /// What an earlier operation has failed with.
    pub(super) fn synchronize(&self) -> Result<()> {
        Ok(calls::synchronize_context()?)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.pushed {
            let _ = calls::pop(); // a context that is gone is no longer there to be popped
        }
    }
}

/// Waits until all work on a device is done, whoever has put it there.
///
/// # Errors
/// What an earlier operation has failed with.
#[cfg(feature = "python")]
pub(crate) fn synchronize(ordinal: i32) -> Result<()> {
    enter(ordinal)?.synchronize() // WAIT for all work on the device
}

/// The device that this thread works on: that of its context, or the first.
///
/// # Errors
/// [`crate::Error::Device`] where there is no device.
pub(crate) fn current_ordinal() -> Result<i32> {
    check_ordinal(0)?;
    Ok(if calls::current()? == 0 { 0 } else { calls::current_device()? })
}

/// The number of the GPU that is meant; "any" is the one that this thread works on.
///
/// # Errors
/// As [`current_ordinal`].
#[cfg(feature = "python")]
pub(crate) fn ordinal_of(target: Target) -> Result<i32> {
    match target {
        Target::Gpu(Some(number)) => Ok(number),
        Target::Gpu(None) | Target::Host => current_ordinal(),
    }
}

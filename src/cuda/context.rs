//! The primary context of a device, current while a guard lives.
//!
//! A context is retained once and never released: torch, CuPy, JAX and numba share it, and would
//! have to start again if the last user released it.

use std::marker::PhantomData;

use super::calls;
use super::driver::{PerDevice, check_ordinal};
use crate::device::Target;
use crate::error::Result;

/// Keeps the device's context current on this thread, and restores the previous one.
#[must_use = "the context is current as long as this lives"]
pub(crate) struct ContextGuard {
    pushed: bool,
    /// Makes the guard stay on its thread.
    _thread: PhantomData<*const ()>,
}

/// Makes the context of a device current.
///
/// # Errors
/// [`crate::Error::Device`] if there is no such device, or the driver fails.
pub(crate) fn enter(ordinal: i32) -> Result<ContextGuard> {
    let context = context(ordinal)?;
    let pushed = calls::cuCtxGetCurrent()? != context;
    if pushed {
        calls::cuCtxPushCurrent_v2(context)?;
    }
    Ok(ContextGuard { pushed, _thread: PhantomData })
}

/// The driver's handle of the context of a device.
pub(super) fn context(ordinal: i32) -> Result<usize> {
    static RETAINED: PerDevice = PerDevice::new();
    RETAINED.get(ordinal, || Ok(calls::cuDevicePrimaryCtxRetain(calls::cuDeviceGet(ordinal)?)?))
}

impl Drop for ContextGuard {
    fn drop(&mut self) {
        if self.pushed {
            let _ = calls::cuCtxPopCurrent_v2(); // a destroyed context cannot be popped
        }
    }
}

/// Waits until all work on a device is done, including that of other libraries.
///
/// # Errors
/// The error of an earlier operation.
pub(crate) fn synchronize(ordinal: i32) -> Result<()> {
    let _current = enter(ordinal)?;
    Ok(calls::cuCtxSynchronize()?) // WAIT for all work on the device
}

/// Number of this thread's device: that of its context, or the first.
///
/// # Errors
/// [`crate::Error::Device`] if there is no device.
pub(crate) fn current_ordinal() -> Result<i32> {
    check_ordinal(0)?;
    Ok(if calls::cuCtxGetCurrent()? == 0 { 0 } else { calls::cuCtxGetDevice()? })
}

/// Number of the target GPU. "Any" means this thread's device.
///
/// # Errors
/// As [`current_ordinal`].
pub(crate) fn ordinal_of(target: Target) -> Result<i32> {
    match target {
        Target::Gpu(Some(number)) => Ok(number),
        Target::Gpu(None) | Target::Host => current_ordinal(),
    }
}

//! Copies and fills by the driver.
//!
//! All of them are enqueued on a stream and done later, except copies between a device and
//! *pageable* host memory: copies to the host are complete on return; for copies from the host, the
//! source has been read on return.

use super::calls::{self, Pitched};
use super::context::{context, enter};
use super::stream::Stream;
use crate::error::Result;

/// Copies `bytes` bytes between any two addresses.
///
/// # Errors
/// [`crate::Error::Device`] if the driver fails, for all functions of this file.
///
/// # Safety
/// For all functions of this file: until the work is done, `bytes` bytes may be read from `source`
/// on and written from `target` on, and the stream's device reaches both.
pub(crate) unsafe fn copy_linear(
    target: u64,
    source: u64,
    bytes: usize,
    stream: Stream,
) -> Result<()> {
    let _current = enter(stream.ordinal())?;
    // SAFETY: the caller keeps both ranges valid until the work is done; a Stream holds a valid
    // handle.
    Ok(unsafe { calls::cuMemcpyAsync(target, source, bytes, stream.handle()) }?)
}

/// Copies `bytes` bytes between the devices with the given numbers, through the host if they cannot
/// reach each other.
///
/// # Errors
/// # Safety
/// As [`copy_linear`].
pub(crate) unsafe fn copy_peer(
    (target, to): (u64, i32),
    (source, from): (u64, i32),
    bytes: usize,
    stream: Stream,
) -> Result<()> {
    let (to, from) = (context(to)?, context(from)?);
    let _current = enter(stream.ordinal())?;
    // SAFETY: as in `copy_linear`; `context` returned the contexts of the devices.
    Ok(unsafe { calls::cuMemcpyPeerAsync(target, to, source, from, bytes, stream.handle()) }?)
}

/// Copies planes of rows.
///
/// # Errors
/// # Safety
/// As [`copy_linear`], for every row of every plane.
pub(crate) unsafe fn copy_planes(copy: &Pitched, stream: Stream) -> Result<()> {
    let _current = enter(stream.ordinal())?;
    // SAFETY: as in `copy_linear`.
    Ok(unsafe { calls::cuMemcpy3DAsync_v2(copy, stream.handle()) }?)
}

/// Writes the first `width` (1, 2 or 4) bytes of `value` `count` times.
///
/// # Errors
/// # Safety
/// As [`copy_linear`]; the address is a multiple of `width`.
pub(crate) unsafe fn set(
    target: u64,
    value: [u8; 4],
    width: usize,
    count: usize,
    stream: Stream,
) -> Result<()> {
    let _current = enter(stream.ordinal())?;
    let [a, b, ..] = value;
    let (short, long) = (u16::from_ne_bytes([a, b]), u32::from_ne_bytes(value));
    match width {
        // SAFETY: as in `copy_linear`.
        1 => unsafe { calls::cuMemsetD8Async(target, a, count, stream.handle()) }?,
        // SAFETY: as in `copy_linear`.
        2 => unsafe { calls::cuMemsetD16Async(target, short, count, stream.handle()) }?,
        // SAFETY: as in `copy_linear`.
        _ => unsafe { calls::cuMemsetD32Async(target, long, count, stream.handle()) }?,
    }
    Ok(())
}

//! Copies and fills that the driver does by itself.
//!
//! All of them are put on a stream and done later, but for copies between a device and *pageable*
//! host memory: those to the host are done on return, of those from it the source has been read.

use super::calls;
use super::context::{context, enter};
use super::pitched::Pitched;
use super::stream::Stream;
use crate::error::Result;

/// Copies `bytes`, wherever both addresses are.
///
/// # Errors
/// What the driver refuses. So for all functions of this file.
///
/// # Safety
/// `bytes` from `source` on may be read and from `target` on written until the work is done; memory
/// of a device is one that the stream's device reaches. So for all functions of this file.
pub(crate) unsafe fn copy_linear(
    target: u64,
    source: u64,
    bytes: usize,
    stream: Stream,
) -> Result<()> {
    let _current = enter(stream.ordinal())?;
    // SAFETY: the caller's promise; the stream's type vouches for the stream.
    Ok(unsafe { calls::copy(target, source, bytes, stream.handle()) }?)
}

/// Copies `bytes` between devices, of which the numbers are given, through the host where they do not
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
    // SAFETY: as in `copy_linear`; the contexts are those of the devices.
    Ok(unsafe { calls::copy_peer((target, to), (source, from), bytes, stream.handle()) }?)
}

/// Copies rows.
///
/// # Errors
/// # Safety
/// As [`copy_linear`], for every row.
pub(crate) unsafe fn copy_2d(copy: &Pitched, stream: Stream) -> Result<()> {
    let _current = enter(stream.ordinal())?;
    // SAFETY: as in `copy_linear`.
    Ok(unsafe { calls::copy_2d(copy, stream.handle()) }?)
}

/// Copies planes of rows.
///
/// # Errors
/// # Safety
/// As [`copy_linear`], for every row of every plane.
pub(crate) unsafe fn copy_3d(copy: &Pitched, stream: Stream) -> Result<()> {
    let _current = enter(stream.ordinal())?;
    // SAFETY: as in `copy_linear`.
    Ok(unsafe { calls::copy_3d(copy, stream.handle()) }?)
}

/// Writes `count` times the first `width` (1, 2 or 4) bytes of `value`.
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
    // SAFETY: as in `copy_linear`.
    Ok(unsafe { calls::set(target, value, width, count, stream.handle()) }?)
}

//! Copies on the host in every way.

use crate::copy::copy_by as copy;
use crate::error::Result;
use crate::layout::Layout;

/// Copies every element of the source to the same index of the target in the way with this number:
/// with one kind of registers, through the caches or past them. Returns false if there are fewer ways.
///
/// # Errors
/// [`Error::Argument`](crate::Error::Argument) if shapes or item sizes differ.
///
/// # Safety
/// The elements of both layouts are there, with the first ones at these addresses, and no other code
/// uses them meanwhile. The target has an element for every index, and shares no byte with the source.
pub unsafe fn copy_by(
    way: usize,
    source: (&Layout, *const u8),
    target: (&Layout, *mut u8),
) -> Result<bool> {
    // SAFETY: the caller's promise.
    unsafe { copy(way, source, target) }
}

//! Start address of a field in its block: aligned, and staggered over a page for large fields.
//!
//! A stencil reads the same point of many fields. A cache selects the set of a line by the last
//! bits of its address, so that fields with equal starts compete for the few lines of one set. Each
//! field therefore starts some lines further than the one before.
#![forbid(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};

/// Size in bytes from which fields are staggered.
const FROM: usize = 32 << 10;

/// Distance in bytes after which the sets of a first-level cache repeat.
const PAGE: usize = 4096;

/// Distance in bytes from one start to the next: five lines, which uses all 64 lines of a page.
const STEP: usize = 5 * 64;

/// Upper bound of the offset of a start.
pub(super) const MOST: usize = PAGE;

/// Offset of the next field: a multiple of the alignment and of a cache line.
pub(super) fn stagger(bytes: usize, alignment: usize) -> usize {
    static FIELDS: AtomicUsize = AtomicUsize::new(0);
    if bytes < FROM || alignment == 0 || !PAGE.is_multiple_of(alignment) {
        return 0;
    }
    let step = FIELDS.fetch_add(1, Ordering::Relaxed).wrapping_mul(STEP) % PAGE;
    step - step % alignment.max(64)
}

/// Adds room for moving the start.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(super) fn padded(bytes: usize, more: usize) -> Result<usize> {
    bytes
        .checked_add(more)
        .filter(|&total| isize::try_from(total).is_ok())
        .ok_or(Error::OutOfMemory(bytes))
}

/// Moves an address up to a multiple of `alignment`.
pub(super) fn align_up(block: NonNull<u8>, alignment: usize) -> NonNull<u8> {
    let past = block.addr().get() % alignment;
    moved(block, if past == 0 { 0 } else { alignment - past })
}

/// Moves an address up by `by` bytes.
pub(super) fn moved(start: NonNull<u8>, by: usize) -> NonNull<u8> {
    start.map_addr(|address| address.saturating_add(by))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_fields_start_at_different_aligned_lines_of_a_page() {
        let starts: Vec<_> = (0..10).map(|_| stagger(1 << 20, 64)).collect();
        let mut different = starts.clone();
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > 8, "{starts:?}"); // other tests allocate at the same time
        assert!(starts.iter().all(|start| start.is_multiple_of(64) && *start < MOST));
        assert!((0..10).all(|_| stagger(1 << 20, 256).is_multiple_of(256)));
    }

    #[test]
    fn small_fields_and_odd_alignments_are_not_staggered() {
        assert!((0..10).all(|_| stagger(1000, 64) == 0));
        assert!((0..10).all(|_| stagger(1 << 20, 192) == 0));
        assert!((0..10).all(|_| stagger(1 << 20, 1 << 21) == 0));
    }
}

//! Where a field starts in its block: on its boundary, and large ones not all at the same place of a page.
//!
//! A stencil reads the same point of many fields. A cache finds room for a line by the last bits of its
//! address: where all fields start alike, their lines compete for the few places of one set. Each field
//! starts some lines further than the one before.
#![forbid(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};

/// Smaller fields lie where the heap puts them.
const FROM: usize = 32 << 10;

/// The places of a cache repeat after a page, at most.
const PAGE: usize = 4096;

/// From a field to the next, in bytes: five lines, with which all 64 places of a page are used.
const STEP: usize = 5 * 64;

/// No field starts further than this.
pub(super) const MOST: usize = PAGE;

/// How far the next field starts from its boundary: a multiple of the alignment and of a cache line.
pub(super) fn stagger(bytes: usize, alignment: usize) -> usize {
    static FIELDS: AtomicUsize = AtomicUsize::new(0);
    if bytes < FROM || alignment == 0 || !PAGE.is_multiple_of(alignment) {
        return 0;
    }
    let step = FIELDS.fetch_add(1, Ordering::Relaxed).wrapping_mul(STEP) % PAGE;
    step - step % alignment.max(64)
}

/// So many bytes and more, so that the start can be moved.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(super) fn padded(bytes: usize, more: usize) -> Result<usize> {
    bytes
        .checked_add(more)
        .filter(|&total| isize::try_from(total).is_ok())
        .ok_or(Error::OutOfMemory(bytes))
}

pub(super) fn align_up(block: NonNull<u8>, alignment: usize) -> NonNull<u8> {
    let past = block.addr().get() % alignment;
    moved(block, if past == 0 { 0 } else { alignment - past })
}

pub(super) fn moved(start: NonNull<u8>, by: usize) -> NonNull<u8> {
    start.map_addr(|address| address.saturating_add(by))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_fields_start_at_different_lines_of_a_page_on_their_boundary() {
        let starts: Vec<_> = (0..10).map(|_| stagger(1 << 20, 64)).collect();
        let mut different = starts.clone();
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > 8, "{starts:?}"); // other tests allocate meanwhile
        assert!(starts.iter().all(|start| start.is_multiple_of(64) && *start < MOST));
        assert!((0..10).all(|_| stagger(1 << 20, 256).is_multiple_of(256)));
    }

    #[test]
    fn small_fields_and_odd_alignments_start_on_their_boundary() {
        assert!((0..10).all(|_| stagger(1000, 64) == 0));
        assert!((0..10).all(|_| stagger(1 << 20, 192) == 0));
        assert!((0..10).all(|_| stagger(1 << 20, 1 << 21) == 0));
    }
}

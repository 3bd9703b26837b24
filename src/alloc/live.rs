//! Counter of live blocks.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering};

/// Live blocks. The counter orders nothing: for the number after other threads have dropped their
/// blocks, join those threads first.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Number of host and device blocks that dlfield has allocated in this process and not yet freed.
/// Foreign memory inside storages does not count.
#[must_use]
pub fn live_allocations() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// Token of one live block.
#[derive(Debug)]
pub(super) struct Counted(());

impl Counted {
    pub(super) fn new() -> Self {
        LIVE.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

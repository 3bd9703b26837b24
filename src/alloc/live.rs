//! How many blocks there are.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering};

/// Blocks that exist. Orders nothing: who wants the number after other threads have dropped theirs
/// waits for those threads.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Blocks of memory, of the host and of devices, that dlfield has allocated and not yet freed, in the
/// whole process. Memory of others, which a storage only holds, is not counted.
#[must_use]
pub fn live_allocations() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// Stands for one block that exists.
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

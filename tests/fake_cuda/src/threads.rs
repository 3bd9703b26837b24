//! State of a thread: its contexts, its number, and whether it runs a callback.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ffi::Handle;

static NEXT_THREAD: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Stack of contexts; the last one is current.
    static CONTEXTS: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
    static CALLING_BACK: Cell<bool> = const { Cell::new(false) };
    static NUMBER: u64 = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
}

/// Unique number of this thread in the process, never reused.
pub(crate) fn number() -> u64 {
    NUMBER.with(|number| *number)
}

/// True if this thread has ended, except for destructors that still run in it. At the end of the
/// process these may call the driver.
pub(crate) fn has_ended() -> bool {
    CONTEXTS.try_with(|_| ()).is_err()
}

pub(crate) fn current() -> Option<Handle> {
    CONTEXTS.with_borrow(|contexts| contexts.last().copied())
}

pub(crate) fn push(context: Handle) {
    CONTEXTS.with_borrow_mut(|contexts| contexts.push(context));
}

pub(crate) fn pop() -> Option<Handle> {
    CONTEXTS.with_borrow_mut(Vec::pop)
}

/// True inside a kernel's emulation or a host function, which must not call the driver.
pub(crate) fn calling_back() -> bool {
    CALLING_BACK.get()
}

/// Runs a callback, during which the driver refuses calls of this thread.
pub(crate) fn call_back(callback: impl FnOnce()) {
    CALLING_BACK.set(true);
    callback();
    CALLING_BACK.set(false);
}

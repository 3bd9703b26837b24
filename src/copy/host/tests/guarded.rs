//! Memory between guard pages.

use std::ptr;
use std::slice;

/// A multiple of the page size of every system.
const PAGE: usize = 64 << 10;

/// End of the memory that touches a guard page.
#[derive(Debug, Clone, Copy)]
pub(super) enum Against {
    Front,
    Back,
}

/// Bytes whose first or last one touches a guard page.
pub(super) struct Guarded {
    map: *mut u8,
    mapped: usize,
    start: *mut u8,
    bytes: usize,
}

impl Guarded {
    /// Copies `contents`.
    pub(super) fn new(contents: &[u8], against: Against) -> Self {
        let usable = contents.len().next_multiple_of(PAGE).max(PAGE);
        let mapped = usable + 2 * PAGE;
        let map = reserve(mapped);
        let inside = map.wrapping_add(PAGE);
        // SAFETY: a part of the pages that `reserve` has just mapped.
        let done =
            unsafe { libc::mprotect(inside.cast(), usable, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(done, 0);
        let from = match against {
            Against::Front => 0,
            Against::Back => usable - contents.len(),
        };
        let start = inside.wrapping_add(from);
        let mut guarded = Self { map, mapped, start, bytes: contents.len() };
        guarded.bytes_mut().copy_from_slice(contents);
        guarded
    }

    /// The address of byte `number`.
    pub(super) fn at(&self, number: usize) -> *mut u8 {
        self.start.wrapping_add(number)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: `new` made these bytes readable and initialised them.
        unsafe { slice::from_raw_parts(self.start, self.bytes) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `new` made these bytes writable and initialised them; `self` is borrowed
        // exclusively.
        unsafe { slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: `reserve` mapped these pages, and borrows of them have ended.
        let done = unsafe { libc::munmap(self.map.cast(), self.mapped) };
        debug_assert_eq!(done, 0);
    }
}

/// Maps inaccessible pages.
fn reserve(bytes: usize) -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
    // SAFETY: an anonymous mapping touches no existing memory.
    let map = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    assert_ne!(map, libc::MAP_FAILED);
    map.cast()
}

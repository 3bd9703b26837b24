//! Memory between pages that cannot be touched.

use std::ptr;
use std::slice;

/// At least a page, on every system.
const PAGE: usize = 64 << 10;

/// Which end of the memory touches a page that cannot be read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Against {
    Front,
    Back,
}

/// Bytes of which the first or the last lies right beside a page that cannot be touched.
pub(super) struct Guarded {
    map: *mut u8,
    mapped: usize,
    start: *mut u8,
    bytes: usize,
}

impl Guarded {
    /// A copy of `contents`.
    pub(super) fn of(contents: &[u8], against: Against) -> Self {
        let usable = contents.len().next_multiple_of(PAGE).max(PAGE);
        let mapped = usable + 2 * PAGE;
        let map = reserve(mapped);
        let inside = map.wrapping_add(PAGE);
        // SAFETY: a part of the pages that were just mapped.
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
        // SAFETY: so many bytes that can be read, which mmap has set to 0.
        unsafe { slice::from_raw_parts(self.start, self.bytes) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and nobody else has them.
        unsafe { slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: what `reserve` has mapped, which nobody uses any more.
        let done = unsafe { libc::munmap(self.map.cast(), self.mapped) };
        debug_assert_eq!(done, 0);
    }
}

/// Pages that cannot be touched.
fn reserve(bytes: usize) -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
    // SAFETY: asks for fresh pages.
    let map = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    assert_ne!(map, libc::MAP_FAILED);
    map.cast()
}

//! Address space: reserved once, handed out once. `memory` records the owner of each part.
//!
//! The process owns an arena and never returns it. Sizes and addresses are in bytes.

use std::ffi::c_int;
use std::ptr;

/// Distance between blocks, so that an overrun never reaches the next block.
pub(crate) const PAGE: u64 = 4096;
/// Content of new memory: no test expects this value as a result.
const NEW: u8 = 0xCD;
/// Larger blocks are filled at both ends only, with this many bytes each, to save time.
const END: usize = 64 << 20;
const READ_WRITE: c_int = libc::PROT_READ | libc::PROT_WRITE;

/// A range of addresses, and the location of its bytes.
#[derive(Debug)]
pub(crate) struct Arena {
    start: u64,
    /// Address of the bytes of `start` on the host, which differs for device memory.
    shadow: u64,
    size: u64,
    used: u64,
    alignment: u64,
    /// True if pages open and close with their block. Device pages never open.
    opens: bool,
}

impl Arena {
    /// Reserves device memory: its addresses fault, and its bytes lie elsewhere. Readable on
    /// request.
    pub(crate) fn of_device(size: u64, readable: bool) -> Option<Self> {
        let shadow = reserve(size, READ_WRITE)?;
        let start = if readable { shadow } else { reserve(size, libc::PROT_NONE)? };
        Some(Self { start, shadow, size, used: 0, alignment: 512, opens: false })
    }

    /// Reserves memory that the host reads too: pinned or managed.
    pub(crate) fn of_host(size: u64) -> Option<Self> {
        let start = reserve(size, libc::PROT_NONE)?;
        Some(Self { start, shadow: start, size, used: 0, alignment: PAGE, opens: true })
    }

    pub(crate) fn contains(&self, address: u64) -> bool {
        (self.start..self.start + self.size).contains(&address)
    }

    /// Hands out a fresh range, filled with `NEW`. `None` if the arena is full.
    pub(crate) fn take(&mut self, size: usize) -> Option<u64> {
        let length = u64::try_from(size).ok()?;
        let offset = self.used.next_multiple_of(self.alignment);
        let end = offset.checked_add(length)?.checked_add(PAGE)?;
        if end > self.size {
            return None;
        }
        let base = self.start + offset;
        if self.opens && !protect(base, size, READ_WRITE) {
            return None;
        }
        self.used = end;
        let head = size.min(END);
        let tail = (size - head).min(END);
        let first = self.bytes(base);
        let last = first.wrapping_add(size - tail);
        // SAFETY: the range lies inside this arena, its pages are open, and it was just handed out.
        unsafe { ptr::write_bytes(first, NEW, head) };
        // SAFETY: the last bytes of the same range.
        unsafe { ptr::write_bytes(last, NEW, tail) };
        Some(base)
    }

    /// Address of the bytes on the host.
    pub(crate) fn bytes(&self, address: u64) -> *mut u8 {
        pointer(self.shadow + (address - self.start))
    }

    /// Returns the memory of a range to the system, and closes it to the host for ever.
    pub(crate) fn close(&self, base: u64, size: usize) {
        if self.opens {
            protect(base, size, libc::PROT_NONE);
        }
        let first = self.bytes(base).addr() & !4095;
        let end = (self.bytes(base).addr() + size).next_multiple_of(4096);
        let pages = ptr::with_exposed_provenance_mut(first);
        // SAFETY: blocks lie at least a page apart, so these pages hold only this block, which
        // ended.
        unsafe { libc::madvise(pages, end - first, libc::MADV_DONTNEED) };
    }
}

/// Converts an address, from the system or from a caller, to a pointer.
pub(crate) fn pointer(address: u64) -> *mut u8 {
    // The driver's functions take addresses as u64; CUDA supports 64-bit systems only.
    ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0))
}

fn reserve(size: u64, protection: c_int) -> Option<u64> {
    let length = usize::try_from(size).ok()?;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the system's choice touches no other memory.
    let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0) };
    (start != libc::MAP_FAILED).then(|| u64::try_from(start.expose_provenance()).unwrap_or(0))
}

fn protect(base: u64, size: usize, protection: c_int) -> bool {
    // SAFETY: `base` starts a page, and blocks of this arena have pages of their own (take).
    unsafe { libc::mprotect(pointer(base).cast(), size, protection) == 0 }
}

//! Address space: reserved once, handed out once. `memory` above it knows who has which part.
//!
//! An arena is owned by the process and never given back. Sizes and addresses are in bytes.

use std::ffi::c_int;
use std::ptr;

/// Blocks lie this far apart, so that running over the end of one never reaches the next.
pub(crate) const PAGE: u64 = 4096;
/// What new memory holds: a value that no test takes for a result.
const NEW: u8 = 0xCD;
/// Larger blocks hold it at both ends only, this many bytes each: pages take time.
const END: usize = 64 << 20;
const READ_WRITE: c_int = libc::PROT_READ | libc::PROT_WRITE;

/// A range of addresses, and where its bytes are.
#[derive(Debug)]
pub(crate) struct Arena {
    start: u64,
    /// Where the host finds the bytes of `start`: elsewhere for device memory.
    shadow: u64,
    size: u64,
    used: u64,
    alignment: u64,
    /// Pages open with their block and close with it; device pages never open.
    opens: bool,
}

impl Arena {
    /// Device memory: addresses that fault, with their bytes elsewhere, or readable if asked for.
    pub(crate) fn of_device(size: u64, readable: bool) -> Option<Self> {
        let shadow = reserve(size, READ_WRITE)?;
        let start = if readable { shadow } else { reserve(size, libc::PROT_NONE)? };
        Some(Self { start, shadow, size, used: 0, alignment: 512, opens: false })
    }

    /// Memory that the host reads, too: pinned or managed.
    pub(crate) fn of_host(size: u64) -> Option<Self> {
        let start = reserve(size, libc::PROT_NONE)?;
        Some(Self { start, shadow: start, size, used: 0, alignment: PAGE, opens: true })
    }

    pub(crate) fn contains(&self, address: u64) -> bool {
        (self.start..self.start + self.size).contains(&address)
    }

    /// Hands out a range that nobody had before, filled with `NEW`; `None` where no room is left.
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
        // SAFETY: the range is inside this arena, open, and handed out to nobody else: just taken.
        unsafe { ptr::write_bytes(first, NEW, head) };
        // SAFETY: as above: the last bytes of the range.
        unsafe { ptr::write_bytes(last, NEW, tail) };
        Some(base)
    }

    /// Where the bytes of an address are.
    pub(crate) fn bytes(&self, address: u64) -> *mut u8 {
        pointer(self.shadow + (address - self.start))
    }

    /// Gives the memory of a range back to the system, and closes it to the host for ever.
    pub(crate) fn close(&self, base: u64, size: usize) {
        if self.opens {
            protect(base, size, libc::PROT_NONE);
        }
        let first = self.bytes(base).addr() & !4095;
        let end = (self.bytes(base).addr() + size).next_multiple_of(4096);
        let pages = ptr::with_exposed_provenance_mut(first);
        // SAFETY: blocks lie a page apart, so these pages hold this block only, which has ended.
        unsafe { libc::madvise(pages, end - first, libc::MADV_DONTNEED) };
    }
}

/// The pointer to an address that came as a number, from the system or from a caller.
pub(crate) fn pointer(address: u64) -> *mut u8 {
    // An address is a u64 in the driver's functions, and 64 bits are all that CUDA has.
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
    // SAFETY: `base` starts a page of an arena with pages of its own per block: see `take`.
    unsafe { libc::mprotect(pointer(base).cast(), size, protection) == 0 }
}

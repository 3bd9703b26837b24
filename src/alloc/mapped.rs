//! Blocks from the system in huge pages, and a pool of released blocks.
//!
//! Mapped pages are zero until they are touched. A block from the pool is not zero: its pages exist
//! already, which makes it cheap, and keep their old content.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use super::huge::huge_pages;
use super::place::{align_up, padded};
use crate::error::{Error, Result};

/// Size of a huge page on the platforms GT4Py runs on.
const HUGE_PAGE: usize = 2 << 20;

/// A field takes a block from the pool only if it is at most so many times too large.
const MOST_TIMES: usize = 2;

/// A mapping that is returned to the pool or the system when it is dropped.
pub(super) struct Mapped {
    mapping: Mapping,
    start: NonNull<u8>,
}

#[derive(Clone, Copy)]
struct Mapping {
    block: NonNull<u8>,
    total: usize,
}

// SAFETY: plain memory with a single owner, which any thread may unmap.
unsafe impl Send for Mapping {}

static POOL: Mutex<Vec<Mapping>> = Mutex::new(Vec::new());
static LIMIT: AtomicUsize = AtomicUsize::new(0);

/// Capacity in bytes of the pool of released large blocks. 0, the default, keeps none.
#[must_use]
pub fn pool_limit() -> usize {
    LIMIT.load(Ordering::Relaxed)
}

/// Sets the capacity of the pool in bytes. Blocks beyond it return to the system at once, the
/// oldest first.
///
/// # Example
///
/// ```
/// dlfield::set_pool_limit(256 << 20);
/// // ... allocate and drop large fields ...
/// dlfield::free_pool();
/// assert_eq!(dlfield::pool_bytes(), 0);
/// ```
pub fn set_pool_limit(bytes: usize) {
    LIMIT.store(bytes, Ordering::SeqCst);
    give_back(pool().map(|mut pool| excess(&mut pool, bytes)));
}

/// Bytes in the pool now.
#[must_use]
pub fn pool_bytes() -> usize {
    pool().map_or(0, |pool| held(&pool))
}

/// Returns all blocks of the pool to the system. Keeps the limit.
pub fn free_pool() {
    give_back(pool().map(|mut pool| excess(&mut pool, 0)));
}

/// Locks the pool. The lock is held briefly: blocks are unmapped after it is released. In a forked
/// child, a thread that does not exist there may hold it for ever: `None` then.
fn pool() -> Option<MutexGuard<'static, Vec<Mapping>>> {
    static PROCESS: OnceLock<u32> = OnceLock::new();
    let here = std::process::id();
    if *PROCESS.get_or_init(|| here) == here {
        return Some(POOL.lock().unwrap_or_else(PoisonError::into_inner));
    }
    match POOL.try_lock() {
        Ok(pool) => Some(pool),
        Err(TryLockError::Poisoned(pool)) => Some(pool.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn held(pool: &[Mapping]) -> usize {
    pool.iter().map(|one| one.total).sum()
}

/// Removes the oldest blocks until the pool holds at most `limit` bytes.
fn excess(pool: &mut Vec<Mapping>, limit: usize) -> Vec<Mapping> {
    let mut too_much = held(pool).saturating_sub(limit);
    let mut taken = 0;
    while too_much > 0 && taken < pool.len() {
        too_much = too_much.saturating_sub(pool[taken].total);
        taken += 1;
    }
    pool.drain(..taken).collect()
}

fn give_back(blocks: Option<Vec<Mapping>>) {
    blocks.into_iter().flatten().for_each(unmap);
}

impl Mapped {
    /// Maps `bytes` bytes that start at a multiple of `alignment`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn new(bytes: usize, alignment: usize, zeroed: bool) -> Result<Self> {
        let boundary = boundary(alignment);
        let total = padded(bytes, boundary)?;
        let used = if zeroed { None } else { from_pool(total) };
        let fresh = used.is_none();
        let mapping = used.map_or_else(|| map(total), Ok)?;
        let start = align_up(mapping.block, boundary);
        if fresh && huge_pages() {
            advise_huge(start, bytes);
        }
        Ok(Self { mapping, start })
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let mapping = self.mapping;
        if pool_limit() < mapping.total {
            return unmap(mapping);
        }
        let Some(mut pool) = pool() else { return unmap(mapping) };
        pool.push(mapping);
        let excess = excess(&mut pool, LIMIT.load(Ordering::SeqCst)); // read again, under the lock
        drop(pool);
        give_back(Some(excess));
    }
}

/// Takes the smallest block that is large enough and not far too large.
fn from_pool(total: usize) -> Option<Mapping> {
    if pool_limit() == 0 {
        return None;
    }
    let mut pool = pool()?;
    let serves = total..=total.saturating_mul(MOST_TIMES);
    let large_enough = pool.iter().enumerate().filter(|(_, one)| serves.contains(&one.total));
    let (at, _) = large_enough.min_by_key(|(_, one)| one.total)?;
    Some(pool.remove(at))
}

/// Multiple of the alignment, and of the huge page if that costs little address space.
fn boundary(alignment: usize) -> usize {
    let odd = alignment >> alignment.trailing_zeros();
    match odd {
        1 => alignment.max(HUGE_PAGE), // both are powers of two
        2..=64 => odd * HUGE_PAGE.max(alignment / odd),
        _ => alignment,
    }
}

#[cfg(unix)]
fn map(total: usize) -> Result<Mapping> {
    let (protection, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: an anonymous mapping at an address of the system's choice touches no existing memory.
    let block = unsafe { libc::mmap(std::ptr::null_mut(), total, protection, kind, -1, 0) };
    let block = NonNull::new(block.cast::<u8>()).filter(|_| block != libc::MAP_FAILED);
    Ok(Mapping { block: block.ok_or(Error::OutOfMemory(total))?, total })
}

#[cfg(not(unix))]
fn map(total: usize) -> Result<Mapping> {
    Err(Error::OutOfMemory(total)) // never called (HostMemory::new)
}

fn unmap(mapping: Mapping) {
    #[cfg(unix)]
    // SAFETY: `map` made this mapping of `total` bytes, and its only owner releases it here.
    unsafe {
        libc::munmap(mapping.block.as_ptr().cast(), mapping.total);
    }
    #[cfg(not(unix))]
    let _ = mapping;
}

#[cfg(target_os = "linux")]
fn advise_huge(start: NonNull<u8>, bytes: usize) {
    let from = align_up(start, HUGE_PAGE);
    let skipped = from.addr().get() - start.addr().get();
    let Some(length) = bytes.checked_sub(skipped) else { return };
    // SAFETY: `length` bytes from `from` on lie in the mapping, which has `bytes` from `start` on.
    // The call changes the size of pages, not their content. If the system refuses, pages are
    // small.
    unsafe { libc::madvise(from.as_ptr().cast(), length, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise_huge(_start: NonNull<u8>, _bytes: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A single test, because the pool belongs to the whole process.
    #[test]
    fn the_pool_keeps_blocks_up_to_its_limit_and_reuses_them_for_fields_of_their_size() {
        let bytes = 23 << 20; // no other test allocates this size
        set_pool_limit(64 << 20);
        let first = Mapped::new(bytes, 64, false).unwrap().start();
        let zeros = Mapped::new(bytes, 64, true).unwrap();
        assert_ne!(zeros.start(), first, "a used block is not zero");
        let again = Mapped::new(bytes, 64, false).unwrap();
        assert_eq!(again.start(), first);
        drop((zeros, again));
        assert!(pool_bytes() >= 2 * bytes);
        set_pool_limit(bytes + HUGE_PAGE);
        assert!(pool_bytes() <= bytes + HUGE_PAGE);
        free_pool();
        set_pool_limit(0);
        drop(Mapped::new(bytes, 64, false).unwrap());
        assert_eq!(pool_bytes(), 0);
    }
}

//! Writes runs of a target, through the caches or past them.

use std::sync::OnceLock;

use super::kernels::{Level, Stream, kernels};
use super::registers::fence;
use super::stream::prefetch_ends;

/// Size in bytes of the last-level cache, if the system tells, else a typical one.
pub(super) fn last_cache() -> usize {
    static KNOWN: OnceLock<usize> = OnceLock::new();
    *KNOWN.get_or_init(|| told_by_system().unwrap_or(16 << 20))
}

fn told_by_system() -> Option<usize> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: sysconf only returns a number.
        let bytes = unsafe { libc::sysconf(libc::_SC_LEVEL3_CACHE_SIZE) };
        usize::try_from(bytes).ok().filter(|&bytes| bytes > 0)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}

/// Method of writing rows.
#[derive(Clone, Copy)]
pub(super) enum Lines {
    Cached,
    Past(Stream),
}

impl Lines {
    /// Writes past the caches if requested and the processor can.
    pub(super) fn new(level: Level, past_caches: bool) -> Self {
        let stream = kernels(level, 8).and_then(|kernels| kernels.stream);
        stream.filter(|_| past_caches).map_or(Self::Cached, Self::Past)
    }

    /// Copies a run. On the way past the caches, its end prefetches what is read `next` bytes later.
    ///
    /// # Safety
    /// `bytes` bytes can be read and written, and the two do not overlap. This thread calls
    /// [`Self::done`] before others read the target.
    #[inline]
    pub(super) unsafe fn copy(self, source: *const u8, target: *mut u8, bytes: usize, next: isize) {
        match self {
            // SAFETY: the caller guarantees both ranges.
            Self::Cached => unsafe { source.copy_to_nonoverlapping(target, bytes) },
            // SAFETY: the caller guarantees both ranges; `new` got the processor's own level.
            Self::Past(stream) => unsafe { stream(source, target, bytes, next) },
        }
    }

    /// Prefetches the lines that [`Self::copy`] will write in part.
    #[inline]
    pub(super) fn prefetch_ends(self, target: *mut u8, bytes: usize) {
        if matches!(self, Self::Past(_)) {
            prefetch_ends(Some(target), Some(target.wrapping_add(bytes)));
        }
    }

    /// Makes written lines visible to other threads.
    pub(super) fn done(self) {
        if matches!(self, Self::Past(_)) {
            fence();
        }
    }
}

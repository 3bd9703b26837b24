//! Rows of a target, through the caches or past them.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

use super::kernels::{Kernels, Level, kernels};
use super::registers::fence;
use super::transpose::{LINE, Plane, prefetch_ends};

/// Rows of a target that are written together.
pub(super) const ROWS: usize = 16;

/// Bytes of a row that go through the buffer at once.
const ROW: usize = 1 << 10;

/// From a row of the buffer to the next: not a power of two, so that the rows do not compete for the same
/// places of a cache.
const PITCH: usize = ROW + LINE;

/// A target of so many bytes does not stay in the cache for who reads it next.
pub(super) fn goes_past(bytes: usize) -> bool {
    static FROM: OnceLock<usize> = OnceLock::new();
    bytes >= *FROM.get_or_init(|| (last_cache() / 2).clamp(2 << 20, 16 << 20))
}

/// Bytes of the last cache, as far as the system says.
fn last_cache() -> usize {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: asks for a number.
        let bytes = unsafe { libc::sysconf(libc::_SC_LEVEL3_CACHE_SIZE) };
        if let Some(bytes) = usize::try_from(bytes).ok().filter(|&bytes| bytes > 0) {
            return bytes;
        }
    }
    16 << 20
}

/// How rows are written.
#[derive(Clone, Copy)]
pub(super) enum Lines {
    Cached,
    Past(unsafe fn(*const u8, *mut u8, usize)),
}

/// Rows on their way.
pub(super) type Buffer = Vec<MaybeUninit<[u8; LINE]>>;

impl Lines {
    /// Past the caches where that is wished for, and this processor can.
    pub(super) fn of(level: Level, past_caches: bool) -> Self {
        let stream = kernels(level, 8).and_then(|kernels| kernels.stream);
        stream.filter(|_| past_caches).map_or(Self::Cached, Self::Past)
    }

    /// # Safety
    /// So many bytes can be read and written, and none that is read is written. Before others may read,
    /// [`Self::done`] is called in this thread.
    #[inline]
    pub(super) unsafe fn copy(self, source: *const u8, target: *mut u8, bytes: usize) {
        match self {
            // SAFETY: the caller's promise.
            Self::Cached => unsafe { source.copy_to_nonoverlapping(target, bytes) },
            // SAFETY: the caller's promise; the level is this processor's.
            Self::Past(stream) => unsafe { stream(source, target, bytes) },
        }
    }

    /// Asks for what [`Self::copy`] will write in part.
    #[inline]
    pub(super) fn prefetch_ends(self, target: *const u8, bytes: usize) {
        if matches!(self, Self::Past(_)) {
            prefetch_ends(target, bytes);
        }
    }

    /// What [`Self::transpose`] needs.
    pub(super) fn buffer(self) -> Buffer {
        let lines = if matches!(self, Self::Past(_)) { ROWS * PITCH / LINE + 1 } else { 0 };
        vec![MaybeUninit::uninit(); lines]
    }

    /// Makes the lines that were written visible to others.
    pub(super) fn done(self) {
        if matches!(self, Self::Past(_)) {
            fence();
        }
    }

    /// Copies a plane of at most [`ROWS`] rows of the target.
    ///
    /// # Safety
    /// As for `transpose`, of `kernels`; `buffer` is of these lines.
    pub(super) unsafe fn transpose(
        self,
        plane: Plane,
        item: usize,
        kernels: Kernels,
        buffer: &mut Buffer,
    ) {
        let Self::Past(stream) = self else {
            // SAFETY: the caller's promise.
            return unsafe { (kernels.transpose)(plane) };
        };
        let lines: *mut MaybeUninit<[u8; LINE]> = buffer.as_mut_ptr();
        let lines: *mut u8 = lines.cast();
        let lines = lines.wrapping_add(lines.addr().wrapping_neg() % LINE);
        for piece in plane.pieces(ROW / item, item) {
            let bytes = piece.written * item;
            for number in 0..piece.read {
                prefetch_ends(piece.target_row(number), bytes);
            }
            let step = PITCH.cast_signed();
            let buffered = Plane { target: lines, target_step: step, ..piece };
            // SAFETY: the caller's promise for the source; the buffer has ROWS rows of PITCH bytes.
            unsafe { (kernels.transpose)(buffered) };
            for number in 0..piece.read {
                // SAFETY: a row that has just been written, and its place in the target.
                unsafe { stream(buffered.target_row(number), piece.target_row(number), bytes) };
            }
        }
    }
}

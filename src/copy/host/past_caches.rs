//! Writes rows of a target, through the caches or past them.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

use super::kernels::{Kernels, Level, kernels};
use super::registers::fence;
use super::transpose::{LINE, Plane, prefetch_ends};

/// Number of rows of a target that are written together.
pub(super) const ROWS: usize = 16;

/// Bytes of a row that pass through the buffer at once.
const ROW: usize = 1 << 10;

/// Bytes from one row of the buffer to the next: not a power of two, so that rows do not compete
/// for the same cache sets.
const PITCH: usize = ROW + LINE;

/// True if a target of this size would not stay in the cache for its next reader.
pub(super) fn goes_past(bytes: usize) -> bool {
    static FROM: OnceLock<usize> = OnceLock::new();
    bytes >= *FROM.get_or_init(|| (last_cache() / 2).clamp(2 << 20, 16 << 20))
}

/// Size in bytes of the last-level cache, if the system tells, else a typical one.
fn last_cache() -> usize {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: sysconf only returns a number.
        let bytes = unsafe { libc::sysconf(libc::_SC_LEVEL3_CACHE_SIZE) };
        if let Some(bytes) = usize::try_from(bytes).ok().filter(|&bytes| bytes > 0) {
            return bytes;
        }
    }
    16 << 20
}

/// Method of writing rows.
#[derive(Clone, Copy)]
pub(super) enum Lines {
    Cached,
    Past(unsafe fn(*const u8, *mut u8, usize)),
}

/// Rows on their way to the target.
pub(super) type Buffer = Vec<MaybeUninit<[u8; LINE]>>;

impl Lines {
    /// Writes past the caches if requested and the processor can.
    pub(super) fn new(level: Level, past_caches: bool) -> Self {
        let stream = kernels(level, 8).and_then(|kernels| kernels.stream);
        stream.filter(|_| past_caches).map_or(Self::Cached, Self::Past)
    }

    /// Copies a run.
    ///
    /// # Safety
    /// `bytes` bytes can be read and written, and the two do not overlap. This thread calls
    /// [`Self::done`] before others read the target.
    #[inline]
    pub(super) unsafe fn copy(self, source: *const u8, target: *mut u8, bytes: usize) {
        match self {
            // SAFETY: the caller guarantees both ranges.
            Self::Cached => unsafe { source.copy_to_nonoverlapping(target, bytes) },
            // SAFETY: the caller guarantees both ranges; `new` got the processor's own level.
            Self::Past(stream) => unsafe { stream(source, target, bytes) },
        }
    }

    /// Prefetches the lines that [`Self::copy`] will write in part.
    #[inline]
    pub(super) fn prefetch_ends(self, target: *const u8, bytes: usize) {
        if matches!(self, Self::Past(_)) {
            prefetch_ends(target, bytes);
        }
    }

    /// The buffer for [`Self::transpose`].
    pub(super) fn buffer(self) -> Buffer {
        let lines = if matches!(self, Self::Past(_)) { ROWS * PITCH / LINE + 1 } else { 0 };
        vec![MaybeUninit::uninit(); lines]
    }

    /// Makes written lines visible to other threads.
    pub(super) fn done(self) {
        if matches!(self, Self::Past(_)) {
            fence();
        }
    }

    /// Transposes a plane of at most [`ROWS`] rows of the target.
    ///
    /// # Safety
    /// As [`Kernels::transpose`]; `buffer` comes from [`Self::buffer`].
    pub(super) unsafe fn transpose(
        self,
        plane: Plane,
        item: usize,
        kernels: Kernels,
        buffer: &mut Buffer,
    ) {
        let Self::Past(stream) = self else {
            // SAFETY: the caller guarantees the plane.
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
            // SAFETY: the caller guarantees the source; the buffer has ROWS rows of PITCH bytes.
            unsafe { (kernels.transpose)(buffered) };
            for number in 0..piece.read {
                // SAFETY: the row was just written, and the caller guarantees its place in the
                // target.
                unsafe { stream(buffered.target_row(number), piece.target_row(number), bytes) };
            }
        }
    }
}

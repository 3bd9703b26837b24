//! Kernels for the processor's registers: compiled for each kind, chosen once per copy.

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::uint8x16_t;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m128i, __m256i, __m512i};

#[cfg(target_arch = "aarch64")]
use super::registers::Pair;
use super::registers::{Plain, Register};
use super::stream::{Rows, flush, stream};
use super::transpose::{LINE, Plane, transpose};

/// Kinds of registers, the widest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Sse2,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// In pairs, which every aarch64 has.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Level {
    /// Kinds that this processor has.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
        let all = [
            (Self::Plain, true),
            #[cfg(target_arch = "x86_64")]
            (Self::Sse2, true),
            #[cfg(target_arch = "x86_64")]
            (Self::Avx2, is_x86_feature_detected!("avx2")),
            #[cfg(target_arch = "x86_64")]
            (Self::Avx512, avx512),
            #[cfg(target_arch = "aarch64")]
            (Self::Neon, true),
        ];
        all.into_iter().filter_map(|(level, there)| there.then_some(level))
    }

    pub(super) fn best() -> Self {
        Self::all().last().unwrap_or(Self::Plain)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => "sse2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "neon",
        }
    }
}

/// Copies a run past the caches.
pub(super) type Stream = unsafe fn(*const u8, *mut u8, usize, isize);

/// Functions for items of one size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernels {
    /// Transposes a plane.
    ///
    /// # Safety
    /// As [`transpose`].
    pub(super) transpose: unsafe fn(Plane),
    /// Transposes a plane past the caches, if a register is a line.
    ///
    /// # Safety
    /// As [`transpose`] with `STREAM`.
    pub(super) transpose_past_caches: Option<unsafe fn(Plane)>,
    /// Copies a run past the caches, if the processor can.
    ///
    /// # Safety
    /// As [`stream`].
    pub(super) stream: Option<Stream>,
    /// Moves rows from a buffer past the caches, if the processor can.
    ///
    /// # Safety
    /// As [`flush`].
    pub(super) flush: Option<unsafe fn(Rows)>,
}

/// Declares the functions for one kind of register, compiled with the features that it needs. A
/// square has at most 16 rows, which fit in registers; short items take narrower registers.
macro_rules! compiled {
    ($kernels:ident, $plane:ident, $run:ident, $rows:ident, $register:ty, $($feature:literal)?) => {
        /// # Safety
        /// As [`transpose`].
        $(#[target_feature(enable = $feature)])?
        unsafe fn $plane<const W: usize, const N: usize, const STREAM: bool>(plane: Plane) {
            // SAFETY: the requirements are the same.
            unsafe { transpose::<$register, W, N, STREAM>(plane) }
        }

        /// # Safety
        /// As [`stream`].
        $(#[target_feature(enable = $feature)])?
        unsafe fn $run(source: *const u8, target: *mut u8, bytes: usize, next: isize) {
            // SAFETY: the requirements are the same.
            unsafe { stream::<$register>(source, target, bytes, next) }
        }

        /// # Safety
        /// As [`flush`].
        $(#[target_feature(enable = $feature)])?
        unsafe fn $rows(rows: Rows) {
            // SAFETY: the requirements are the same.
            unsafe { flush::<$register>(rows) }
        }

        fn $kernels<const W: usize, const N: usize>() -> Kernels {
            let past_caches: unsafe fn(Plane) = $plane::<W, N, true>;
            let (run, rows): (Stream, unsafe fn(Rows)) = ($run, $rows);
            let whole = <$register>::STREAMS && <$register>::BYTES == LINE;
            Kernels {
                transpose: $plane::<W, N, false>,
                transpose_past_caches: whole.then_some(past_caches),
                stream: <$register>::STREAMS.then_some(run),
                flush: <$register>::STREAMS.then_some(rows),
            }
        }
    };
}

compiled!(plain, plane_plain, run_plain, rows_plain, Plain,);
#[cfg(target_arch = "x86_64")]
compiled!(sse2, plane_sse2, run_sse2, rows_sse2, __m128i,);
#[cfg(target_arch = "x86_64")]
compiled!(avx2, plane_avx2, run_avx2, rows_avx2, __m256i, "avx2");
#[cfg(target_arch = "x86_64")]
compiled!(avx512, plane_avx512, run_avx512, rows_avx512, __m512i, "avx512f,avx512bw");
#[cfg(target_arch = "aarch64")]
compiled!(neon, plane_neon, run_neon, rows_neon, uint8x16_t,);
#[cfg(target_arch = "aarch64")]
compiled!(pair, plane_pair, run_pair, rows_pair, Pair,);

/// Kernels for items of `item` bytes. `None` for sizes that do not divide a register.
pub(super) fn kernels(level: Level, item: usize) -> Option<Kernels> {
    Some(match (level, item) {
        (Level::Plain, 1) => plain::<1, 16>(),
        (Level::Plain, 2) => plain::<2, 8>(),
        (Level::Plain, 4) => plain::<4, 4>(),
        (Level::Plain, 8) => plain::<8, 2>(),
        (Level::Plain, 16) => plain::<16, 1>(),
        #[cfg(target_arch = "x86_64")]
        (level, item) => return wider(level, item),
        #[cfg(target_arch = "aarch64")]
        (Level::Neon, item) => return in_pairs(item),
        #[cfg(not(target_arch = "x86_64"))]
        _ => return None,
    })
}

/// Squares of at most 16 rows; those of bytes are narrower than a pair.
#[cfg(target_arch = "aarch64")]
fn in_pairs(item: usize) -> Option<Kernels> {
    Some(match item {
        1 => neon::<1, 16>(),
        2 => pair::<2, 16>(),
        4 => pair::<4, 8>(),
        8 => pair::<8, 4>(),
        16 => pair::<16, 2>(),
        _ => return None,
    })
}

#[cfg(target_arch = "x86_64")]
fn wider(level: Level, item: usize) -> Option<Kernels> {
    Some(match (level, item) {
        (_, 1) => sse2::<1, 16>(),
        (Level::Avx2 | Level::Avx512, 2) => avx2::<2, 16>(),
        (Level::Avx512, 4) => avx512::<4, 16>(),
        (Level::Avx512, 8) => avx512::<8, 8>(),
        (Level::Avx512, 16) => avx512::<16, 4>(),
        (Level::Avx2, 4) => avx2::<4, 8>(),
        (Level::Avx2, 8) => avx2::<8, 4>(),
        (Level::Avx2, 16) => avx2::<16, 2>(),
        (_, 2) => sse2::<2, 8>(),
        (_, 4) => sse2::<4, 4>(),
        (_, 8) => sse2::<8, 2>(),
        (_, 16) => sse2::<16, 1>(),
        _ => return None,
    })
}

//! Registers, with the operations of a transposition.
//!
//! A register consists of lanes of 16 bytes. Each kind is a type of the compiler; plain bytes
//! serve other processors.

/// A register of the processor.
///
/// # Safety
/// The type is `BYTES` long, and any bytes are a valid value.
pub(super) unsafe trait Register: Copy {
    const BYTES: usize = size_of::<Self>();
    /// True if [`Register::stream`] goes past the caches.
    const STREAMS: bool;

    /// Loads a register from any address.
    ///
    /// # Safety
    /// `BYTES` bytes can be read from `from` on.
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller guarantees the bytes, any of which are a value (Register).
        unsafe { from.cast::<Self>().read_unaligned() }
    }

    /// Stores a register at any address.
    ///
    /// # Safety
    /// `BYTES` bytes can be written from `to` on.
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller guarantees the bytes.
        unsafe { to.cast::<Self>().write_unaligned(self) }
    }

    /// Stores past the caches.
    ///
    /// # Safety
    /// `to` is a multiple of `BYTES`, and `BYTES` bytes can be written there. The processor has
    /// these registers. This thread calls [`fence`] before other threads read.
    unsafe fn stream(self, to: *mut u8);

    /// Interleaves items of `W` bytes of both registers, lane by lane. Returns the interleaved low
    /// halves and the interleaved high halves.
    ///
    /// # Safety
    /// The processor has these registers. `W` is 1, 2, 4 or 8.
    unsafe fn zip<const W: usize>(self, other: Self) -> (Self, Self);

    /// Transposes lanes among as many registers as each has lanes, every `step`-th of `rows` from
    /// `first` on: lane `i` of the `j`-th becomes lane `j` of the `i`-th.
    ///
    /// # Safety
    /// The processor has these registers.
    unsafe fn exchange_lanes(rows: &mut [Self], first: usize, step: usize);
}

/// Prefetches the line at `at` for reading. Any address is allowed.
#[inline(always)]
pub(super) fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: the instruction has no visible effect and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction has no visible effect and never faults.
    unsafe {
        std::arch::asm!("prfm pldl2keep, [{}]", in(reg) at, options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}

/// Prefetches the line at `at` for writing a part of it. Any address is allowed.
#[inline(always)]
pub(super) fn prefetch_to_write(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: the instruction has no visible effect and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(at.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction has no visible effect and never faults.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) at, options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}

/// Makes lines of [`Register::stream`] visible to other threads. On aarch64, what ends a thread does:
/// its stores past the caches are ordered like all others.
pub(super) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// 16 bytes, for processors without a specific register type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    allow(dead_code, reason = "tests compare with it")
)]
pub(super) struct Plain([u8; 16]);

// SAFETY: an array of 16 bytes, any of which are a value.
unsafe impl Register for Plain {
    const STREAMS: bool = false;

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller guarantees the bytes.
        unsafe { self.store(to) }
    }

    #[inline(always)]
    unsafe fn zip<const W: usize>(self, other: Self) -> (Self, Self) {
        let half = |from: usize| {
            let mut items = [0; 16];
            for (at, byte) in items.iter_mut().enumerate() {
                let (item, within) = (at / W, at % W);
                let side = if item.is_multiple_of(2) { &self.0 } else { &other.0 };
                *byte = side[from + item / 2 * W + within];
            }
            Self(items)
        };
        (half(0), half(8))
    }

    #[inline(always)]
    unsafe fn exchange_lanes(_rows: &mut [Self], _first: usize, _step: usize) {}
}

#[cfg(target_arch = "aarch64")]
pub(super) use neon::Pair;

#[cfg(target_arch = "aarch64")]
mod neon;

#[cfg(target_arch = "x86_64")]
mod x86;

//! What a register has to do, and what its users do to the caches.

/// A register of the processor.
///
/// # Safety
/// The type is `BYTES` long, and any bytes are a valid value.
pub(in crate::copy) unsafe trait Register: Copy {
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
pub(in crate::copy) fn prefetch(at: *const u8) {
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
pub(in crate::copy) fn prefetch_to_write(at: *const u8) {
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
pub(in crate::copy) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

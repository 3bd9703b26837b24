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
    #[cfg(not(target_arch = "x86_64"))]
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
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Makes lines of [`Register::stream`] visible to other threads.
pub(super) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// 16 bytes, for processors without a specific register type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(target_arch = "x86_64", allow(dead_code, reason = "tests compare with it"))]
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

#[cfg(target_arch = "x86_64")]
mod x86 {
    #[allow(clippy::wildcard_imports, reason = "many instructions")]
    use std::arch::x86_64::*;
    use std::ffi::c_void;

    use super::Register;

    /// Calls an instruction that works on values only.
    macro_rules! call {
        ($function:ident $(::<$constant:literal>)? ($($argument:expr),*)) => {
            // SAFETY: the instruction works on values; the caller guarantees that the processor has
            // it.
            unsafe { $function $(::<$constant>)? ($($argument),*) }
        };
    }

    /// Declares `zip` by the instructions for items of 1, 2, 4 and 8 bytes.
    macro_rules! zip {
        ($low1:ident $high1:ident, $low2:ident $high2:ident, $low4:ident $high4:ident,
         $low8:ident $high8:ident) => {
            #[inline(always)]
            unsafe fn zip<const W: usize>(self, other: Self) -> (Self, Self) {
                match W {
                    1 => (call!($low1(self, other)), call!($high1(self, other))),
                    2 => (call!($low2(self, other)), call!($high2(self, other))),
                    4 => (call!($low4(self, other)), call!($high4(self, other))),
                    _ => (call!($low8(self, other)), call!($high8(self, other))),
                }
            }
        };
    }

    /// Declares `stream` by an instruction.
    macro_rules! stream {
        ($instruction:ident) => {
            const STREAMS: bool = true;

            #[inline(always)]
            unsafe fn stream(self, to: *mut u8) {
                // SAFETY: the caller guarantees the bytes, their alignment, and the instruction.
                unsafe { $instruction(to.cast::<c_void>().cast(), self) }
            }
        };
    }

    // SAFETY: 16 bytes, any of which are a value.
    unsafe impl Register for __m128i {
        stream!(_mm_stream_si128);

        zip!(
            _mm_unpacklo_epi8 _mm_unpackhi_epi8, _mm_unpacklo_epi16 _mm_unpackhi_epi16,
            _mm_unpacklo_epi32 _mm_unpackhi_epi32, _mm_unpacklo_epi64 _mm_unpackhi_epi64
        );

        #[inline(always)]
        unsafe fn exchange_lanes(_rows: &mut [Self], _first: usize, _step: usize) {}
    }

    // SAFETY: 32 bytes, any of which are a value.
    unsafe impl Register for __m256i {
        stream!(_mm256_stream_si256);

        zip!(
            _mm256_unpacklo_epi8 _mm256_unpackhi_epi8, _mm256_unpacklo_epi16 _mm256_unpackhi_epi16,
            _mm256_unpacklo_epi32 _mm256_unpackhi_epi32, _mm256_unpacklo_epi64 _mm256_unpackhi_epi64
        );

        #[inline(always)]
        unsafe fn exchange_lanes(rows: &mut [Self], first: usize, step: usize) {
            let (one, other) = (rows[first], rows[first + step]);
            rows[first] = call!(_mm256_permute2x128_si256::<0x20>(one, other));
            rows[first + step] = call!(_mm256_permute2x128_si256::<0x31>(one, other));
        }
    }

    // SAFETY: 64 bytes, any of which are a value.
    unsafe impl Register for __m512i {
        stream!(_mm512_stream_si512);

        zip!(
            _mm512_unpacklo_epi8 _mm512_unpackhi_epi8, _mm512_unpacklo_epi16 _mm512_unpackhi_epi16,
            _mm512_unpacklo_epi32 _mm512_unpackhi_epi32, _mm512_unpacklo_epi64 _mm512_unpackhi_epi64
        );

        #[inline(always)]
        unsafe fn exchange_lanes(rows: &mut [Self], first: usize, step: usize) {
            let at = |number: usize| first + step * number;
            let (a, b, c, d) = (rows[at(0)], rows[at(1)], rows[at(2)], rows[at(3)]);
            // Takes two lanes of each pair, then every second lane of both.
            let ab = (
                call!(_mm512_shuffle_i32x4::<0x44>(a, b)),
                call!(_mm512_shuffle_i32x4::<0xEE>(a, b)),
            );
            let cd = (
                call!(_mm512_shuffle_i32x4::<0x44>(c, d)),
                call!(_mm512_shuffle_i32x4::<0xEE>(c, d)),
            );
            rows[at(0)] = call!(_mm512_shuffle_i32x4::<0x88>(ab.0, cd.0));
            rows[at(1)] = call!(_mm512_shuffle_i32x4::<0xDD>(ab.0, cd.0));
            rows[at(2)] = call!(_mm512_shuffle_i32x4::<0x88>(ab.1, cd.1));
            rows[at(3)] = call!(_mm512_shuffle_i32x4::<0xDD>(ab.1, cd.1));
        }
    }
}

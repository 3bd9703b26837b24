//! Registers, as far as changing the places of items needs them.
//!
//! A register is so many lanes of 16 bytes. Each is a type of the compiler's; one of plain bytes is
//! there for other processors.

/// A register of the processor.
///
/// # Safety
/// Any bytes are a valid value of the type, which is `BYTES` long.
pub(super) unsafe trait Register: Copy {
    const BYTES: usize = size_of::<Self>();
    /// Whether [`Register::stream`] goes past the caches.
    const STREAMS: bool;

    /// # Safety
    /// `BYTES` bytes can be read from `from` on.
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller's promise; any bytes are a value (the trait's), at any address.
        unsafe { from.cast::<Self>().read_unaligned() }
    }

    /// # Safety
    /// `BYTES` bytes can be written from `to` on.
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { to.cast::<Self>().write_unaligned(self) }
    }

    /// Stores past the caches.
    ///
    /// # Safety
    /// `to` is a multiple of `BYTES`, of which as many can be written there; the processor has these
    /// registers. Before other threads read, [`fence`] has to be called.
    unsafe fn stream(self, to: *mut u8);

    /// Items of `W` bytes of both in turns, lane by lane: those of the low and those of the high halves.
    ///
    /// # Safety
    /// The processor has these registers. `W` is 1, 2, 4 or 8.
    unsafe fn zip<const W: usize>(self, other: Self) -> (Self, Self);

    /// Changes the places of the lanes of so many registers as each has lanes, every `step`-th of `rows`
    /// from `first` on: lane `i` of the `j`-th becomes lane `j` of the `i`-th.
    ///
    /// # Safety
    /// The processor has these registers.
    unsafe fn exchange_lanes(rows: &mut [Self], first: usize, step: usize);
}

/// Asks for the line at `at`, to be read soon. Any address will do.
#[inline(always)]
pub(super) fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: the instruction reads nothing that the program sees, and faults at no address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Asks for the line at `at`, to be written soon in part. Any address will do.
#[inline(always)]
pub(super) fn prefetch_to_write(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: as above.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Has to be called once [`Register::stream`] was, before others may read what it wrote.
pub(super) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// 16 bytes, for processors without registers of their own here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(target_arch = "x86_64", allow(dead_code, reason = "tests compare with it"))]
pub(super) struct Plain([u8; 16]);

// SAFETY: an array of bytes.
unsafe impl Register for Plain {
    const STREAMS: bool = false;

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller's promise.
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
    #[allow(clippy::wildcard_imports, reason = "one instruction after the other")]
    use std::arch::x86_64::*;
    use std::ffi::c_void;

    use super::Register;

    /// A call that needs nothing but the instructions.
    macro_rules! call {
        ($function:ident $(::<$constant:literal>)? ($($argument:expr),*)) => {
            // SAFETY: the instruction works on values; that the processor has it is the caller's promise.
            unsafe { $function $(::<$constant>)? ($($argument),*) }
        };
    }

    /// Items of `$width` bytes of both in turns, by the instructions for 1, 2, 4 and 8 bytes.
    macro_rules! zip {
        ($one:expr, $other:expr, $width:expr, $low1:ident, $high1:ident, $low2:ident, $high2:ident,
         $low4:ident, $high4:ident, $low8:ident, $high8:ident) => {
            match $width {
                1 => (call!($low1($one, $other)), call!($high1($one, $other))),
                2 => (call!($low2($one, $other)), call!($high2($one, $other))),
                4 => (call!($low4($one, $other)), call!($high4($one, $other))),
                _ => (call!($low8($one, $other)), call!($high8($one, $other))),
            }
        };
    }

    /// `stream` of a register, by its instruction.
    macro_rules! stream {
        ($instruction:ident) => {
            const STREAMS: bool = true;

            #[inline(always)]
            unsafe fn stream(self, to: *mut u8) {
                // SAFETY: the caller's promise, of which the alignment is part.
                unsafe { $instruction(to.cast::<c_void>().cast(), self) }
            }
        };
    }

    // SAFETY: 16 bytes, any of which are a value.
    unsafe impl Register for __m128i {
        stream!(_mm_stream_si128);

        #[inline(always)]
        unsafe fn zip<const W: usize>(self, other: Self) -> (Self, Self) {
            zip!(
                self,
                other,
                W,
                _mm_unpacklo_epi8,
                _mm_unpackhi_epi8,
                _mm_unpacklo_epi16,
                _mm_unpackhi_epi16,
                _mm_unpacklo_epi32,
                _mm_unpackhi_epi32,
                _mm_unpacklo_epi64,
                _mm_unpackhi_epi64
            )
        }

        #[inline(always)]
        unsafe fn exchange_lanes(_rows: &mut [Self], _first: usize, _step: usize) {}
    }

    // SAFETY: 32 bytes, any of which are a value.
    unsafe impl Register for __m256i {
        stream!(_mm256_stream_si256);

        #[inline(always)]
        unsafe fn zip<const W: usize>(self, other: Self) -> (Self, Self) {
            zip!(
                self,
                other,
                W,
                _mm256_unpacklo_epi8,
                _mm256_unpackhi_epi8,
                _mm256_unpacklo_epi16,
                _mm256_unpackhi_epi16,
                _mm256_unpacklo_epi32,
                _mm256_unpackhi_epi32,
                _mm256_unpacklo_epi64,
                _mm256_unpackhi_epi64
            )
        }

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

        #[inline(always)]
        unsafe fn zip<const W: usize>(self, other: Self) -> (Self, Self) {
            zip!(
                self,
                other,
                W,
                _mm512_unpacklo_epi8,
                _mm512_unpackhi_epi8,
                _mm512_unpacklo_epi16,
                _mm512_unpackhi_epi16,
                _mm512_unpacklo_epi32,
                _mm512_unpackhi_epi32,
                _mm512_unpacklo_epi64,
                _mm512_unpackhi_epi64
            )
        }

        #[inline(always)]
        unsafe fn exchange_lanes(rows: &mut [Self], first: usize, step: usize) {
            let at = |number: usize| first + step * number;
            let (a, b, c, d) = (rows[at(0)], rows[at(1)], rows[at(2)], rows[at(3)]);
            // Two lanes of each pair, then every second lane of both.
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

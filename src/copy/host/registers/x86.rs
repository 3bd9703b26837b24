//! Registers of x86-64: SSE2, AVX2 and AVX-512.

#[allow(clippy::wildcard_imports, reason = "many instructions")]
use std::arch::x86_64::*;
use std::ffi::c_void;

use super::register::Register;

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
        let ab =
            (call!(_mm512_shuffle_i32x4::<0x44>(a, b)), call!(_mm512_shuffle_i32x4::<0xEE>(a, b)));
        let cd =
            (call!(_mm512_shuffle_i32x4::<0x44>(c, d)), call!(_mm512_shuffle_i32x4::<0xEE>(c, d)));
        rows[at(0)] = call!(_mm512_shuffle_i32x4::<0x88>(ab.0, cd.0));
        rows[at(1)] = call!(_mm512_shuffle_i32x4::<0xDD>(ab.0, cd.0));
        rows[at(2)] = call!(_mm512_shuffle_i32x4::<0x88>(ab.1, cd.1));
        rows[at(3)] = call!(_mm512_shuffle_i32x4::<0xDD>(ab.1, cd.1));
    }
}

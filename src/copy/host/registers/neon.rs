//! NEON registers of aarch64.

#[allow(clippy::wildcard_imports, reason = "many instructions")]
use std::arch::aarch64::*;
use std::arch::asm;

use super::register::Register;

/// Interleaves items of 2, 4 or 8 bytes as those of a register of another type.
macro_rules! zip {
    ($one:expr, $other:expr, $to:ident $from:ident, $low:ident $high:ident) => {{
        let (one, other) = ($to($one), $to($other));
        ($from($low(one, other)), $from($high(one, other)))
    }};
}

/// [`Register::zip`] for 16 bytes.
#[inline]
#[target_feature(enable = "neon")]
fn interleaved<const W: usize>(one: uint8x16_t, other: uint8x16_t) -> (uint8x16_t, uint8x16_t) {
    match W {
        1 => (vzip1q_u8(one, other), vzip2q_u8(one, other)),
        2 => zip!(one, other, vreinterpretq_u16_u8 vreinterpretq_u8_u16, vzip1q_u16 vzip2q_u16),
        4 => zip!(one, other, vreinterpretq_u32_u8 vreinterpretq_u8_u32, vzip1q_u32 vzip2q_u32),
        _ => zip!(one, other, vreinterpretq_u64_u8 vreinterpretq_u8_u64, vzip1q_u64 vzip2q_u64),
    }
}

// SAFETY: 16 bytes, any of which are a value.
unsafe impl Register for uint8x16_t {
    const STREAMS: bool = false; // stores past the caches are of pairs

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller guarantees the bytes.
        unsafe { self.store(to) }
    }

    #[inline(always)]
    unsafe fn zip<const W: usize>(self, other: Self) -> (Self, Self) {
        // SAFETY: every aarch64 has the instructions.
        unsafe { interleaved::<W>(self, other) }
    }

    #[inline(always)]
    unsafe fn exchange_lanes(_rows: &mut [Self], _first: usize, _step: usize) {}
}

/// Two registers, which are stored past the caches by one instruction.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(in crate::copy) struct Pair(uint8x16_t, uint8x16_t);

// SAFETY: twice 16 bytes, any of which are a value.
unsafe impl Register for Pair {
    const STREAMS: bool = true;

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        let Self(low, high) = self;
        // SAFETY: the caller guarantees 32 bytes, which is all that the instruction writes.
        unsafe {
            asm!(
                "stnp {low:q}, {high:q}, [{to}]",
                low = in(vreg) low,
                high = in(vreg) high,
                to = in(reg) to,
                options(nostack, preserves_flags)
            );
        }
    }

    #[inline(always)]
    unsafe fn zip<const W: usize>(self, other: Self) -> (Self, Self) {
        // SAFETY: the requirements are the same.
        let low = unsafe { self.0.zip::<W>(other.0) };
        // SAFETY: the requirements are the same.
        let high = unsafe { self.1.zip::<W>(other.1) };
        (Self(low.0, high.0), Self(low.1, high.1))
    }

    #[inline(always)]
    unsafe fn exchange_lanes(rows: &mut [Self], first: usize, step: usize) {
        let (one, other) = (rows[first], rows[first + step]);
        (rows[first], rows[first + step]) = (Self(one.0, other.0), Self(one.1, other.1));
    }
}

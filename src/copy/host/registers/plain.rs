//! Plain bytes.

use super::register::Register;

/// 16 bytes, for processors without a specific register type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    allow(dead_code, reason = "tests compare with it")
)]
pub(in crate::copy) struct Plain([u8; 16]);

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

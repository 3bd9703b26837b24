//! Fills with items of 1, 2 and 4 bytes. Sizes count items, pitches count bytes.

use super::device::MAX_PITCH;
use crate::ffi::Handle;
use crate::region::Extent;
use crate::run::answer;
use crate::status::{Outcome, Status};
use crate::submit::{Place, Role, When, fill};

/// Addresses and pitches must be multiples of the item size.
fn run(
    address: u64,
    pitch: usize,
    item: Vec<u8>,
    width: usize,
    height: usize,
    when: When,
) -> Outcome {
    let size = item.len();
    let bytes = width.checked_mul(size).ok_or(Status::INVALID_VALUE)?;
    let aligned = usize::try_from(address).is_ok_and(|address| address.is_multiple_of(size));
    // The pitch of a single row is ignored.
    let row = if height > 1 { pitch } else { bytes };
    if !aligned || !row.is_multiple_of(size) || row < bytes || (height > 1 && row > MAX_PITCH) {
        return Err(Status::INVALID_VALUE);
    }
    let to = Place { role: Role::Device, address, row, plane: 0 };
    fill(to, Extent { width, height, depth: 1 }, item, when)
}

/// Functions for one and two dimensions, each with and without a stream.
macro_rules! fills {
    ($($item:ty: $linear:ident, $linear_in:ident, $pitched:ident, $pitched_in:ident;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $linear(to: u64, item: $item, count: usize) -> Status {
            answer(|| run(to, 0, item.to_ne_bytes().into(), count, 1, When::Now))
        }

        #[unsafe(no_mangle)]
        extern "C" fn $linear_in(to: u64, item: $item, count: usize, stream: Handle) -> Status {
            answer(|| run(to, 0, item.to_ne_bytes().into(), count, 1, When::In(stream)))
        }

        #[unsafe(no_mangle)]
        extern "C" fn $pitched(
            to: u64, pitch: usize, item: $item, width: usize, height: usize,
        ) -> Status {
            answer(|| run(to, pitch, item.to_ne_bytes().into(), width, height, When::Now))
        }

        #[unsafe(no_mangle)]
        extern "C" fn $pitched_in(
            to: u64,
            pitch: usize,
            item: $item,
            width: usize,
            height: usize,
            stream: Handle,
        ) -> Status {
            answer(|| run(to, pitch, item.to_ne_bytes().into(), width, height, When::In(stream)))
        }
    )*};
}

fills! {
    u8: cuMemsetD8_v2, cuMemsetD8Async, cuMemsetD2D8_v2, cuMemsetD2D8Async;
    u16: cuMemsetD16_v2, cuMemsetD16Async, cuMemsetD2D16_v2, cuMemsetD2D16Async;
    u32: cuMemsetD32_v2, cuMemsetD32Async, cuMemsetD2D32_v2, cuMemsetD2D32Async;
}

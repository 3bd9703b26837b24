//! Linear copies. Sizes are in bytes. `submit` decides which copies wait, and when sources are
//! read.

use crate::ffi::Handle;
use crate::region::Extent;
use crate::run::{answer, with};
use crate::status::{Outcome, Status};
use crate::submit::{Place, Request, Role, When, copy};

/// An address of the host or of a device, as a number.
type Address = u64;

fn linear(to: (Role, Address), from: (Role, Address), size: usize, when: When) -> Outcome {
    let (to, from) = (Place::linear(to.0, to.1), Place::linear(from.0, from.1));
    copy(Request { to, from, extent: Extent::linear(size) }, when)
}

/// Functions that differ in the stated roles of the two sides, each with and without a stream.
macro_rules! copies {
    ($($now:ident, $later:ident: $from:ident => $to:ident;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $now(to: Address, from: Address, size: usize) -> Status {
            answer(|| linear((Role::$to, to), (Role::$from, from), size, When::Now))
        }

        #[unsafe(no_mangle)]
        extern "C" fn $later(to: Address, from: Address, size: usize, stream: Handle) -> Status {
            answer(|| linear((Role::$to, to), (Role::$from, from), size, When::In(stream)))
        }
    )*};
}

copies! {
    cuMemcpy, cuMemcpyAsync: Unified => Unified;
    cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2: Host => Device;
    cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2: Device => Host;
    cuMemcpyDtoD_v2, cuMemcpyDtoDAsync_v2: Device => Device;
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyPeer(
    to: Address,
    to_context: Handle,
    from: Address,
    from_context: Handle,
    size: usize,
) -> Status {
    answer(|| peer((to, to_context), (from, from_context), size, When::Now))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyPeerAsync(
    to: Address,
    to_context: Handle,
    from: Address,
    from_context: Handle,
    size: usize,
    stream: Handle,
) -> Status {
    answer(|| peer((to, to_context), (from, from_context), size, When::In(stream)))
}

fn peer(to: (Address, Handle), from: (Address, Handle), size: usize, when: When) -> Outcome {
    with(|driver| driver.device_of(to.1).and(driver.device_of(from.1)))?;
    linear((Role::Device, to.0), (Role::Device, from.0), size, when)
}

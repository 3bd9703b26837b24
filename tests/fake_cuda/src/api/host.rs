//! Pinned memory, allocated by the driver or registered by the caller. Devices use the host's
//! address. Freeing it does not wait: the documentation does not promise that.

use std::ffi::c_uint;

use super::memory::allocate;
use crate::ffi::Out;
use crate::memory::Kind;
use crate::run::{answer, with};
use crate::status::Status;

/// Accepted flags: portable, mapped, write-combined. They make no difference here.
const ALLOC_FLAGS: c_uint = 7;
/// Accepted flags: portable, mapped, read-only; not memory of other devices.
const REGISTER_FLAGS: c_uint = 1 | 2 | 8;

#[unsafe(no_mangle)]
extern "C" fn cuMemHostAlloc(address: Out<u64>, size: usize, flags: c_uint) -> Status {
    answer(|| match flags & !ALLOC_FLAGS {
        0 => address.put(allocate(Kind::Pinned, size)?),
        _ => Err(Status::INVALID_VALUE),
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAllocHost_v2(address: Out<u64>, size: usize) -> Status {
    cuMemHostAlloc(address, size, 0)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeHost(address: u64) -> Status {
    answer(|| {
        with(|driver| {
            driver.working()?;
            let found = driver.memory.freeable(address, true).map(|block| block.device);
            let device = driver.count_violation(found)?;
            driver.free(address, device)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemHostRegister_v2(address: u64, size: usize, flags: c_uint) -> Status {
    answer(|| {
        if flags & !REGISTER_FLAGS != 0 {
            return Err(Status::NOT_SUPPORTED);
        }
        with(|driver| {
            let device = driver.working()?;
            driver.memory.register(address, size, device)
        })
    })
}

/// Queued work that uses the memory fails from now on, because the memory may be gone.
#[unsafe(no_mangle)]
extern "C" fn cuMemHostUnregister(address: u64) -> Status {
    answer(|| {
        with(|driver| {
            driver.working()?;
            driver.memory.unregister(address)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemHostGetDevicePointer_v2(
    pointer: Out<u64>,
    address: u64,
    flags: c_uint,
) -> Status {
    answer(|| {
        let kind = with(|driver| {
            driver.working()?;
            Ok(driver.memory.block(address).map(|block| block.kind))
        })?;
        match (kind, flags) {
            (Some(Kind::Pinned | Kind::Registered), 0) => pointer.put(address),
            _ => Err(Status::INVALID_VALUE),
        }
    })
}

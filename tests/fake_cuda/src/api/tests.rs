//! Functions for tests, which no driver has: counters, emulations of kernels, and the bytes of
//! device memory. They work before `cuInit` and in callbacks.

use std::ffi::{c_char, c_void};

use crate::driver::Stats;
use crate::ffi::{In, Out};
use crate::kernels::{Body, Emulate, Emulation};
use crate::run::{answer_always, with};
use crate::status::Status;

#[unsafe(no_mangle)]
extern "C" fn fake_cuda_stats(stats: Out<Stats>) {
    if let Ok(now) = with(|driver| Ok(driver.stats)) {
        stats.offer(now);
    }
}

/// Resets the counters. Memory, queued work and failures of devices stay.
#[unsafe(no_mangle)]
extern "C" fn fake_cuda_reset() {
    // Without a driver there is nothing to reset.
    let _ = with(|driver| {
        driver.stats = Stats { live_bytes: driver.stats.live_bytes, ..Stats::default() };
        Ok(())
    });
}

/// Registers a host function as the kernel of this name, possibly in place of one of dlfield's. It
/// must live as long as the process. `sizes` are the sizes in bytes of the kernel's arguments.
#[unsafe(no_mangle)]
extern "C" fn fake_cuda_register_kernel(
    name: In<c_char>,
    function: Option<Emulate>,
    sizes: In<usize>,
    count: usize,
) -> Status {
    answer_always(|| {
        let name = name.text()?;
        let body = Body::Registered(function.ok_or(Status::INVALID_VALUE)?);
        let sizes = sizes.list(count)?;
        with(|driver| {
            driver.kernels.register(name, Emulation { body, sizes });
            Ok(())
        })
    })
}

/// Address of `length` bytes at a device address, for an emulation. Invalid ranges return null, and
/// the kernel's device fails.
#[unsafe(no_mangle)]
extern "C" fn fake_cuda_reach(address: u64, length: usize) -> *mut c_void {
    let found = with(|driver| Ok(driver.reach(address, length)));
    found.map_or(std::ptr::null_mut(), <*mut u8>::cast)
}

//! What no driver has: counters, emulations of kernels, and the bytes behind device memory. Only
//! tests call these; they work before `cuInit` and in callbacks.

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

/// Counts from 0 again. Memory stays, queued work stays, and a device that failed stays failed.
#[unsafe(no_mangle)]
extern "C" fn fake_cuda_reset() {
    // Without a driver there is nothing to reset.
    let _ = with(|driver| {
        driver.stats = Stats { live_bytes: driver.stats.live_bytes, ..Stats::default() };
        Ok(())
    });
}

/// Makes a host function the kernel of this name, also in place of one of dlfield's; it has to live
/// as long as the process.
/// `sizes` are those of the kernel's arguments in bytes.
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

/// Where an emulation finds `length` bytes at a device address. If they are not there, the answer is
/// null and the kernel's device has failed.
#[unsafe(no_mangle)]
extern "C" fn fake_cuda_reach(address: u64, length: usize) -> *mut c_void {
    let found = with(|driver| Ok(driver.reach(address, length)));
    found.map_or(std::ptr::null_mut(), <*mut u8>::cast)
}

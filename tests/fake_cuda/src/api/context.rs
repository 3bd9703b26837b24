//! Primary contexts, shared by all libraries of a process, and the current context of a thread.

use std::ffi::{c_int, c_uint};

use crate::driver::Driver;
use crate::ffi::{Handle, Out};
use crate::queues::Goal;
use crate::run::{answer, synchronise, with};
use crate::status::{Outcome, Status};
use crate::threads;

/// The highest priority of a stream; 0 is the lowest.
pub(super) const MOST_URGENT: c_int = -5;

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRetain(context: Out<Handle>, device: c_int) -> Status {
    answer(|| {
        let handle = with(|driver| {
            let device = driver.device(device)?;
            device.retained += 1;
            Ok(device.context)
        })?;
        context.put(handle)
    })
}

/// The last release waits for the work of the context, then ends everything that lives in it.
#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> Status {
    answer(|| {
        let left = with(|driver| {
            let device = driver.device(device)?;
            device.retained = device.retained.checked_sub(1).ok_or(Status::INVALID_CONTEXT)?;
            Ok(device.retained)
        })?;
        if left == 0 { end(device, false) } else { Ok(()) }
    })
}

/// Ends the context regardless of its references. This is the only way out after a fault.
#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxReset_v2(device: c_int) -> Status {
    answer(|| end(device, true))
}

fn end(device: c_int, reset: bool) -> Outcome {
    let index = usize::try_from(device).map_err(|_| Status::INVALID_DEVICE)?;
    let goal = with(|driver| {
        driver.device(device)?;
        Ok(everything(driver, index))
    })?;
    // Also ends a context that has failed.
    let _ = synchronise(index, goal);
    with(|driver| {
        driver.destroy(index);
        if reset {
            driver.device(device)?.retained = 0;
        }
        Ok(())
    })
}

fn everything(driver: &Driver, device: usize) -> Goal {
    Goal::Device(device, driver.queues.now())
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxGetState(
    device: c_int,
    flags: Out<c_uint>,
    active: Out<c_int>,
) -> Status {
    answer(|| {
        let retained = with(|driver| Ok(driver.device(device)?.retained))?;
        flags.put(0)?;
        active.put(c_int::from(retained != 0))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: Handle) -> Status {
    answer(|| {
        if context != 0 {
            with(|driver| driver.device_of(context))?;
        }
        threads::pop();
        if context != 0 {
            threads::push(context);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetCurrent(context: Out<Handle>) -> Status {
    answer(|| context.put(threads::current().unwrap_or(0)))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxPushCurrent_v2(context: Handle) -> Status {
    answer(|| {
        with(|driver| driver.device_of(context))?;
        threads::push(context);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxPopCurrent_v2(context: Out<Handle>) -> Status {
    answer(|| {
        context.offer(threads::pop().ok_or(Status::INVALID_CONTEXT)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetDevice(device: Out<c_int>) -> Status {
    answer(|| {
        let current = with(|driver| driver.current())?;
        device.put(c_int::try_from(current).unwrap_or(c_int::MAX))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> Status {
    answer(|| {
        let (device, goal) = with(|driver| {
            let device = driver.working()?;
            Ok((device, everything(driver, device)))
        })?;
        synchronise(device, goal)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) -> Status {
    answer(|| {
        with(|driver| driver.current())?;
        least.offer(0);
        greatest.offer(MOST_URGENT);
        Ok(())
    })
}

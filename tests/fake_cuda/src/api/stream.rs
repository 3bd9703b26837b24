//! Streams. Handles 0 and 1 are the legacy stream of the current device, 2 is the thread's own.

use std::ffi::{c_int, c_uint, c_void};

use super::context::MOST_URGENT;
use crate::driver::Driver;
use crate::ffi::{Handle, Out};
use crate::queues::{Goal, NON_BLOCKING, Work};
use crate::run::{answer, synchronise, with};
use crate::status::{Outcome, Status};

#[unsafe(no_mangle)]
extern "C" fn cuStreamCreate(stream: Out<Handle>, flags: c_uint) -> Status {
    cuStreamCreateWithPriority(stream, flags, 0)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamCreateWithPriority(
    stream: Out<Handle>,
    flags: c_uint,
    priority: c_int,
) -> Status {
    answer(|| {
        if flags & !NON_BLOCKING != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let handle = with(|driver| {
            let device = driver.working()?;
            let handle = driver.handle();
            driver.queues.open(handle, device, flags, priority.clamp(MOST_URGENT, 0), false);
            Ok(handle)
        })?;
        stream.put(handle)
    })
}

/// Work in the stream still runs.
#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(stream: Handle) -> Status {
    answer(|| {
        with(|driver| {
            if stream <= 2 || driver.queues.stream(stream)?.legacy {
                return Err(Status::INVALID_HANDLE);
            }
            driver.queues.close(stream);
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(stream: Handle) -> Status {
    answer(|| {
        let (device, goal) = with(|driver| {
            let (stream, device) = driver.stream(stream)?;
            // The marker takes the legacy stream's place in the order, even if that is empty.
            let order = driver.queues.push(stream, Work::Marker);
            Ok((device, Goal::Stream(stream, order)))
        })?;
        synchronise(device, goal)
    })
}

/// A query runs no work.
#[unsafe(no_mangle)]
extern "C" fn cuStreamQuery(stream: Handle) -> Status {
    answer(|| {
        let idle = with(|driver| {
            let (stream, _) = driver.stream(stream)?;
            driver.is_idle(stream)
        })?;
        if idle { Ok(()) } else { Err(Status::NOT_READY) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) -> Status {
    answer(|| {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        with(|driver| {
            let (stream, _) = driver.stream(stream)?;
            let event = driver.queues.events.get(&event).ok_or(Status::INVALID_HANDLE)?;
            // An event without a record does not delay anything.
            if let Some(record) = event.last {
                driver.queues.push(stream, Work::Wait(record));
            }
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchHostFunc(
    stream: Handle,
    function: Option<extern "C" fn(*mut c_void)>,
    data: u64,
) -> Status {
    answer(|| {
        let function = function.ok_or(Status::INVALID_VALUE)?;
        with(|driver| {
            let (stream, _) = driver.stream(stream)?;
            driver.queues.push(stream, Work::Host(function, data));
            Ok(())
        })
    })
}

/// Looks up a stream, which may be a default one.
fn look<T>(stream: Handle, see: impl FnOnce(&Driver, Handle) -> Outcome<T>) -> Outcome<T> {
    with(|driver| {
        let (stream, _) = driver.stream(stream)?;
        see(driver, stream)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamGetCtx(stream: Handle, context: Out<Handle>) -> Status {
    answer(|| {
        let of = |driver: &Driver, stream| Ok(driver.queues.stream(stream)?.device);
        let device = look(stream, of)?;
        context.put(with(|driver| Ok(driver.devices[device].context))?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamGetFlags(stream: Handle, flags: Out<c_uint>) -> Status {
    answer(|| flags.put(look(stream, |driver, stream| Ok(driver.queues.stream(stream)?.flags))?))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamGetPriority(stream: Handle, priority: Out<c_int>) -> Status {
    answer(|| {
        priority.put(look(stream, |driver, stream| Ok(driver.queues.stream(stream)?.priority))?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamGetId(stream: Handle, id: Out<u64>) -> Status {
    answer(|| id.put(look(stream, |_, stream| Ok(stream))?))
}

/// Captures are not supported, so none is in progress.
#[unsafe(no_mangle)]
extern "C" fn cuStreamIsCapturing(stream: Handle, capturing: Out<c_uint>) -> Status {
    answer(|| look(stream, |_, _| Ok(())).and_then(|()| capturing.put(0)))
}

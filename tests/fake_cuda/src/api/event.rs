//! Events: marks in a stream.

use std::ffi::c_uint;

use crate::ffi::{Handle, Out};
use crate::queues::{Event, Goal, NO_TIMING, Work};
use crate::run::{answer, synchronise, with};
use crate::status::Status;

const INTERPROCESS: c_uint = 4;

#[unsafe(no_mangle)]
extern "C" fn cuEventCreate(event: Out<Handle>, flags: c_uint) -> Status {
    answer(|| {
        match flags {
            0..INTERPROCESS => (),
            INTERPROCESS..8 => return Err(Status::NOT_SUPPORTED),
            _ => return Err(Status::INVALID_VALUE),
        }
        let handle = with(|driver| {
            let device = driver.working()?;
            let handle = driver.handle();
            driver.queues.events.insert(handle, Event { device, flags, last: None, ran: None });
            Ok(handle)
        })?;
        event.put(handle)
    })
}

/// Streams that wait for the last record keep waiting for it.
#[unsafe(no_mangle)]
extern "C" fn cuEventDestroy_v2(event: Handle) -> Status {
    answer(|| {
        with(|driver| driver.queues.events.remove(&event).map(|_| ()).ok_or(Status::INVALID_HANDLE))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(event: Handle, stream: Handle) -> Status {
    answer(|| {
        with(|driver| {
            let (stream, device) = driver.stream(stream)?;
            let known = driver.queues.events.get(&event).ok_or(Status::INVALID_HANDLE)?;
            if known.device != device {
                return Err(Status::INVALID_HANDLE);
            }
            let last = Some(driver.queues.push(stream, Work::Record(event)));
            if let Some(known) = driver.queues.events.get_mut(&event) {
                (known.last, known.ran) = (last, None);
            }
            Ok(())
        })
    })
}

/// A query runs no work.
#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(event: Handle) -> Status {
    answer(|| {
        with(|driver| {
            let event = driver.queues.events.get(&event).ok_or(Status::INVALID_HANDLE)?;
            driver.healthy(event.device)?;
            let pending = event.last.is_some_and(|record| driver.queues.record_is_pending(record));
            if pending { Err(Status::NOT_READY) } else { Ok(()) }
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventSynchronize(event: Handle) -> Status {
    answer(|| {
        let (device, record) = with(|driver| {
            let event = driver.queues.events.get(&event).ok_or(Status::INVALID_HANDLE)?;
            // An event without a record has number 0, which is reached at once.
            Ok((event.device, event.last.unwrap_or(0)))
        })?;
        synchronise(device, Goal::Record(record))
    })
}

/// Time on the host between the two records, in milliseconds.
#[unsafe(no_mangle)]
extern "C" fn cuEventElapsedTime(milliseconds: Out<f32>, start: Handle, end: Handle) -> Status {
    answer(|| {
        let [start, end] = with(|driver| {
            let event = |handle| driver.queues.events.get(&handle).cloned();
            Ok([start, end].map(event))
        })?;
        let (Some(start), Some(end)) = (start, end) else {
            return Err(Status::INVALID_HANDLE);
        };
        let untimed = (start.flags | end.flags) & NO_TIMING != 0;
        if untimed || start.last.is_none() || end.last.is_none() {
            return Err(Status::INVALID_HANDLE);
        }
        let (start, end) = start.ran.zip(end.ran).ok_or(Status::NOT_READY)?;
        let seconds = end.saturating_duration_since(start).as_secs_f32();
        milliseconds.put(seconds * 1e3)
    })
}

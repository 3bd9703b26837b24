//! Device and managed memory. The caller frees each block once. Sizes are in bytes.

use std::ffi::c_uint;

use crate::ffi::{Handle, Out};
use crate::memory::{Kind, Life};
use crate::queues::{Goal, Work};
use crate::run::{answer, synchronise, with};
use crate::status::{Outcome, Status};

/// Alignment of rows in pitched memory.
const ROW: usize = 512;

pub(super) fn allocate(kind: Kind, size: usize) -> Outcome<u64> {
    with(|driver| {
        let device = driver.working()?;
        driver.allocate(kind, device, size, Life::Alive)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAlloc_v2(address: Out<u64>, size: usize) -> Status {
    answer(|| address.put(allocate(Kind::Device, size)?))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAllocPitch_v2(
    address: Out<u64>,
    pitch: Out<usize>,
    width: usize,
    height: usize,
    item: c_uint,
) -> Status {
    answer(|| {
        if !matches!(item, 4 | 8 | 16) {
            return Err(Status::INVALID_VALUE);
        }
        let row = width.checked_next_multiple_of(ROW).ok_or(Status::INVALID_VALUE)?;
        let size = row.checked_mul(height).ok_or(Status::OUT_OF_MEMORY)?;
        address.put(allocate(Kind::Device, size)?)?;
        pitch.put(row)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAllocManaged(address: Out<u64>, size: usize, flags: c_uint) -> Status {
    answer(|| match flags {
        1 | 2 => address.put(allocate(Kind::Managed, size)?),
        _ => Err(Status::INVALID_VALUE),
    })
}

/// Waits for all work of the device, unless the memory is from a pool: the driver then trusts the
/// caller that nothing uses it.
#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(address: u64) -> Status {
    answer(|| {
        if address == 0 {
            return Ok(());
        }
        let (device, goal) = with(|driver| {
            driver.working()?;
            let found = driver.memory.freeable(address, false).map(|b| (b.device, b.pooled));
            let (device, pooled) = driver.count_violation(found)?;
            let all = Goal::Device(device, driver.queues.now());
            Ok((device, (!pooled).then_some(all)))
        })?;
        if let Some(goal) = goal {
            synchronise(device, goal)?;
        }
        with(|driver| driver.free(address, device))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAllocAsync(address: Out<u64>, size: usize, stream: Handle) -> Status {
    answer(|| {
        let base = with(|driver| {
            let (stream, device) = driver.stream(stream)?;
            driver.allocate_in(stream, device, size)
        })?;
        address.put(base)
    })
}

/// Ends the memory when the stream reaches this. Memory from outside the pool is accepted too.
#[unsafe(no_mangle)]
extern "C" fn cuMemFreeAsync(address: u64, stream: Handle) -> Status {
    answer(|| {
        with(|driver| {
            let (stream, _) = driver.stream(stream)?;
            let found = driver.memory.freeable(address, false).map(|block| block.kind);
            if driver.count_violation(found)? != Kind::Device {
                return Err(Status::INVALID_VALUE);
            }
            driver.stats.frees += 1;
            driver.queues.push(stream, Work::End(address));
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) -> Status {
    answer(|| {
        let (taken, capacity) = with(|driver| {
            let device = driver.working()?;
            Ok((driver.memory.taken(device), driver.memory.capacity))
        })?;
        free.put(usize::try_from(capacity.saturating_sub(taken)).unwrap_or(usize::MAX))?;
        total.put(usize::try_from(capacity).unwrap_or(usize::MAX))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemGetAddressRange_v2(base: Out<u64>, size: Out<usize>, address: u64) -> Status {
    answer(|| {
        let found = with(|driver| {
            driver.current()?;
            let block = driver.memory.block(address).ok_or(Status::NOT_FOUND)?;
            Ok((block.base, block.size))
        })?;
        base.offer(found.0);
        size.offer(found.1);
        Ok(())
    })
}

//! The memory pool of each device. It keeps nothing: freed memory is gone.

use std::ffi::{c_int, c_uint, c_void};

use crate::driver::Driver;
use crate::ffi::{Handle, In, Out};
use crate::run::{answer, with};
use crate::status::{Outcome, Status};

/// Three switches for the reuse of memory, which never happens here.
const REUSE: std::ops::RangeInclusive<c_uint> = 1..=3;
const RELEASE_THRESHOLD: c_uint = 4;
/// Reserved and used bytes, current and maximum.
const RESERVED: c_uint = 5;
const RESERVED_HIGH: c_uint = 6;
const USED: c_uint = 7;
const USED_HIGH: c_uint = 8;

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetDefaultMemPool(pool: Out<Handle>, device: c_int) -> Status {
    answer(|| {
        let handle = with(|driver| {
            let handle = driver.device(device)?.pool;
            if driver.lacks.pools { Err(Status::NOT_SUPPORTED) } else { Ok(handle) }
        })?;
        pool.put(handle)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetMemPool(pool: Out<Handle>, device: c_int) -> Status {
    cuDeviceGetDefaultMemPool(pool, device)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAllocFromPoolAsync(
    address: Out<u64>,
    size: usize,
    pool: Handle,
    stream: Handle,
) -> Status {
    answer(|| {
        let base = with(|driver| {
            let device = owner(driver, pool)?;
            let (stream, _) = driver.stream(stream)?;
            driver.allocate_in(stream, device, size)
        })?;
        address.put(base)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemPoolSetAttribute(pool: Handle, attribute: c_uint, value: In<c_void>) -> Status {
    answer(|| {
        let number = match attribute {
            RELEASE_THRESHOLD => value.of::<u64>().get()?,
            _ if REUSE.contains(&attribute) => u64::from(value.of::<c_uint>().get()?),
            RESERVED_HIGH | USED_HIGH => return Err(Status::NOT_SUPPORTED),
            _ => return Err(Status::INVALID_VALUE),
        };
        with(|driver| {
            let device = owner(driver, pool)?;
            driver.devices[device].pool_settings.insert(attribute, number);
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemPoolGetAttribute(pool: Handle, attribute: c_uint, value: Out<c_void>) -> Status {
    answer(|| {
        let (set, used) = with(|driver| {
            let device = owner(driver, pool)?;
            let set = driver.devices[device].pool_settings.get(&attribute).copied();
            let pooled = driver.memory.of_device(device).filter(|block| block.pooled);
            let used = pooled.map(|block| u64::try_from(block.size).unwrap_or(0)).sum::<u64>();
            Ok((set, used))
        })?;
        match attribute {
            RELEASE_THRESHOLD => value.of::<u64>().put(set.unwrap_or(0)),
            RESERVED | USED => value.of::<u64>().put(used),
            _ if REUSE.contains(&attribute) => {
                value.of::<c_uint>().put(c_uint::from(set.unwrap_or(1) != 0))
            }
            RESERVED_HIGH | USED_HIGH => Err(Status::NOT_SUPPORTED),
            _ => Err(Status::INVALID_VALUE),
        }
    })
}

fn owner(driver: &Driver, pool: Handle) -> Outcome<usize> {
    driver.devices.iter().position(|device| device.pool == pool).ok_or(Status::INVALID_VALUE)
}

//! Attributes of addresses, by which consumers find the device of a foreign pointer.

use std::ffi::{c_int, c_uint, c_void};

use crate::driver::Driver;
use crate::ffi::{In, Out};
use crate::memory::{Block, Kind};
use crate::run::{answer, with};
use crate::status::{Outcome, Status};

const ON_HOST: c_uint = 1;
const ON_DEVICE: c_uint = 2;
const READ_AND_WRITE: c_uint = 3;

/// An attribute, with the type it is written as.
enum Value {
    Word(u64),
    Number(c_uint),
    Ordinal(c_int),
}

impl Value {
    fn put(self, to: Out<c_void>) -> Outcome {
        match self {
            Self::Word(value) => to.of().put(value),
            Self::Number(value) => to.of().put(value),
            Self::Ordinal(value) => to.of().put(value),
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuPointerGetAttribute(to: Out<c_void>, attribute: c_uint, address: u64) -> Status {
    answer(|| {
        let value = with(|driver| {
            let block = driver.memory.block(address).ok_or(Status::INVALID_VALUE)?;
            value(driver, block, attribute, address)
        })?;
        value.put(to)
    })
}

/// Unlike the query for one attribute, this accepts any address: inapplicable attributes are 0.
#[unsafe(no_mangle)]
extern "C" fn cuPointerGetAttributes(
    count: c_uint,
    attributes: In<c_uint>,
    to: In<Out<c_void>>,
    address: u64,
) -> Status {
    answer(|| {
        let count = usize::try_from(count).map_err(|_| Status::INVALID_VALUE)?;
        for (attribute, to) in attributes.list(count)?.into_iter().zip(to.list(count)?) {
            let found = with(|driver| match driver.memory.block(address) {
                Some(block) => {
                    value(driver, block, attribute, address).or_else(|_| nothing(attribute))
                }
                None => nothing(attribute),
            })?;
            found.put(to)?;
        }
        Ok(())
    })
}

fn value(driver: &Driver, block: &Block, attribute: c_uint, address: u64) -> Outcome<Value> {
    let on_host = matches!(block.kind, Kind::Pinned | Kind::Registered);
    let device = &driver.devices[block.device];
    Ok(match attribute {
        1 => Value::Word(device.context),
        2 => Value::Number(if on_host { ON_HOST } else { ON_DEVICE }),
        // Memory that host and device reach has the same address on both.
        3 => Value::Word(address),
        4 if block.kind == Kind::Device => return Err(Status::INVALID_VALUE),
        4 => Value::Word(address),
        7 | 20 => Value::Word(block.id),
        8 => Value::Number(c_uint::from(block.kind == Kind::Managed)),
        9 => Value::Ordinal(c_int::try_from(block.device).unwrap_or(c_int::MAX)),
        11 | 19 => Value::Word(block.base),
        12 | 18 => Value::Word(u64::try_from(block.size).unwrap_or(0)),
        13 => Value::Number(1),
        16 => Value::Number(READ_AND_WRITE),
        17 => Value::Word(if block.pooled { device.pool } else { 0 }),
        _ => return nothing(attribute),
    })
}

/// Value of an attribute that does not apply: not synchronised, not shared, without peers.
fn nothing(attribute: c_uint) -> Outcome<Value> {
    match attribute {
        1 | 3 | 4 | 7 | 11 | 12 | 14 | 17..=20 => Ok(Value::Word(0)),
        2 | 6 | 8 | 10 | 13 | 15 | 16 | 21 => Ok(Value::Number(0)),
        // Not the number of any device.
        9 => Ok(Value::Ordinal(-2)),
        5 => Err(Status::NOT_SUPPORTED),
        _ => Err(Status::INVALID_VALUE),
    }
}

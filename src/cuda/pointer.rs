//! Asks the driver about the memory at an address.

use super::block::Kind;
use super::calls::{self, DriverResult, Refused};
use super::context::enter;
use super::driver::device_count;
use crate::error::Result;

const MEMORY_TYPE: u32 = 2;
const IS_MANAGED: u32 = 8;
const DEVICE_ORDINAL: u32 = 9;
const ON_HOST: u32 = 1;

/// Returns the kind of memory at an address, and the number of its device. `None` if the driver
/// does not know the address: ordinary host memory, freed memory, or no memory at all.
///
/// # Errors
/// [`crate::Error::Device`] without a driver, or if it has failed.
pub(crate) fn locate(address: usize) -> Result<Option<(Kind, i32)>> {
    device_count()?;
    let address = address as u64;
    let _current; // for all calls below
    let mut answer = attribute(MEMORY_TYPE, address);
    if answer.as_ref().is_err_and(|refused| refused.is(Refused::INVALID_CONTEXT)) {
        _current = enter(0)?; // some drivers need a current context, no matter which
        answer = attribute(MEMORY_TYPE, address);
    }
    let kind = match answer {
        Err(refused) if refused.is(Refused::INVALID_VALUE) => return Ok(None),
        answer => answer?,
    };
    let ordinal = attribute(DEVICE_ORDINAL, address)?.cast_signed();
    let managed = attribute(IS_MANAGED, address)? & 0xff != 0;
    let kind = match kind {
        _ if managed => Kind::Managed,
        ON_HOST => Kind::Pinned,
        _ => Kind::Device,
    };
    Ok(Some((kind, ordinal)))
}

fn attribute(attribute: u32, address: u64) -> DriverResult<u32> {
    let [a, b, c, d, ..] = calls::cuPointerGetAttribute(attribute, address)?.to_ne_bytes();
    Ok(u32::from_ne_bytes([a, b, c, d]))
}

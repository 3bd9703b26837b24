//! Asking the driver what is behind an address.

use super::calls::{self, Refused};
use super::context::enter;
use super::driver::device_count;
use crate::error::Result;

/// What kind of memory is behind an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Page-locked memory of the host.
    Pinned,
    /// Memory of the device with this number.
    Device(i32),
    /// Memory that both sides reach, allocated for this device.
    Managed(i32),
}

const MEMORY_TYPE: u32 = 2;
const IS_MANAGED: u32 = 8;
const DEVICE_ORDINAL: u32 = 9;
const ON_HOST: u32 = 1;
const INVALID_VALUE: u32 = 1;

/// What is behind an address; `None` for one that the driver does not know: ordinary host memory,
/// memory that was freed, or none at all.
///
/// # Errors
/// [`crate::Error::Device`] without a driver, or where it has failed.
pub(crate) fn locate(address: usize) -> Result<Option<Place>> {
    device_count()?;
    let address = address as u64;
    let _current; // for all that is asked
    let kind = match calls::pointer_attribute(MEMORY_TYPE, address) {
        Err(refused) if refused.is(INVALID_VALUE) => return Ok(None),
        // A thread without a context may have to ask in one, whichever it is.
        Err(refused) if refused.is(Refused::INVALID_CONTEXT) => {
            _current = enter(0)?;
            match calls::pointer_attribute(MEMORY_TYPE, address) {
                Err(refused) if refused.is(INVALID_VALUE) => return Ok(None),
                answer => answer?,
            }
        }
        answer => answer?,
    };
    let ordinal = calls::pointer_attribute(DEVICE_ORDINAL, address)?.cast_signed();
    let managed = calls::pointer_attribute(IS_MANAGED, address)? & 0xff != 0;
    Ok(Some(match kind {
        _ if managed => Place::Managed(ordinal),
        ON_HOST => Place::Pinned,
        _ => Place::Device(ordinal),
    }))
}

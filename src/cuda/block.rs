//! Blocks of memory from the driver (device memory, page-locked host memory, managed memory), and
//! the kind of memory at an address.

use std::sync::Arc;

use super::calls::{self, DriverResult, Refused};
use super::context::{enter, synchronize};
use super::driver::{device_count, is_ready};
use super::stream::Stream;
use super::timeline::Timeline;
use super::wait_on_drop::without_interpreter;
use crate::error::{Error, Result};

/// Kind of memory that the driver allocates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Device memory, from the stream-ordered pool if the device has one.
    Device,
    /// Page-locked host memory, which the device copies directly.
    Pinned,
    /// Memory that host and device reach, kept coherent by CUDA.
    Managed,
}

/// An owned block. Dropping it frees the memory after all work that dlfield knows of; if others had
/// the address, after all work on the device.
#[derive(Debug)]
pub(crate) struct Block {
    kind: Kind,
    address: u64,
    ordinal: i32,
    pooled: bool,
    /// The driver's number of the allocation, if it has one. After a reset of the context, it tells
    /// this allocation from a new one at the same address.
    identity: Option<u64>,
    timeline: Arc<Timeline>,
}

impl Block {
    /// Allocates a block. One of 0 bytes has an address as well. If the device has no memory left,
    /// waits for pending frees and tries again.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::Device`] if there is no such device, or it has no managed
    /// memory.
    pub(crate) fn new(kind: Kind, bytes: usize, ordinal: i32) -> Result<Self> {
        match Self::try_new(kind, bytes, ordinal) {
            Err(Error::OutOfMemory(_)) => {
                synchronize(ordinal)?; // WAIT for frees that are pending
                Self::try_new(kind, bytes, ordinal)
            }
            answer => answer,
        }
    }

    fn try_new(kind: Kind, bytes: usize, ordinal: i32) -> Result<Self> {
        let _current = enter(ordinal)?;
        let size = bytes.max(1);
        let timeline = Arc::new(Timeline::default());
        let pooled = kind == Kind::Device && supports(ordinal, MEMORY_POOLS)?;
        let made = match kind {
            Kind::Device if pooled => pool(size, ordinal, &timeline)?,
            Kind::Device => calls::cuMemAlloc_v2(size),
            Kind::Pinned => calls::cuMemHostAlloc(size, PORTABLE),
            Kind::Managed => {
                check_managed(ordinal)?;
                calls::cuMemAllocManaged(size, ATTACH_GLOBAL)
            }
        };
        let address = match made {
            Err(refused) if refused.is(Refused::OUT_OF_MEMORY) => {
                return Err(Error::OutOfMemory(bytes));
            }
            made => made?,
        };
        let identity = calls::cuPointerGetAttribute(BUFFER_ID, address).ok();
        Ok(Self { kind, address, ordinal, pooled, identity, timeline })
    }

    /// Address of the first byte: a multiple of 256, as the driver guarantees.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Work in flight on the block.
    pub(crate) fn timeline(&self) -> Arc<Timeline> {
        Arc::clone(&self.timeline)
    }

    /// Frees the memory after everything that may use it.
    fn free(&self) -> Result<()> {
        let _current = enter(self.ordinal)?;
        let identity = calls::cuPointerGetAttribute(BUFFER_ID, self.address).ok();
        if self.identity.is_some() && identity != self.identity {
            return Ok(()); // freed with its context
        }
        self.timeline.settle_others(self.ordinal)?;
        if self.pooled {
            let own = Stream::own(self.ordinal)?;
            self.timeline.join(own)?; // WAIT for dlfield's work before the end, on the device
            // SAFETY: `try_new` took it from the pool, and only `drop` frees it. The work of others
            // is done (settle_others), and that of dlfield precedes this on `own` (join).
            return Ok(unsafe { calls::cuMemFreeAsync(self.address, own.handle()) }?);
        }
        without_interpreter(|| self.timeline.wait())?; // WAIT for dlfield's work before the end
        // The driver itself waits for the device once more.
        without_interpreter(|| {
            let _current = enter(self.ordinal)?;
            let freed = match self.kind {
                // SAFETY: `try_new` page-locked it, only `drop` frees it, and all work is done.
                Kind::Pinned => unsafe { calls::cuMemFreeHost(self.address) },
                // SAFETY: `try_new` allocated it, only `drop` frees it, and all work is done.
                Kind::Device | Kind::Managed => unsafe { calls::cuMemFree_v2(self.address) },
            };
            Ok(freed?)
        })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if is_ready() {
            let _ = self.free(); // a failed device can free nothing
        }
    }
}

/// Allocates from the pool. The memory exists once the stream has reached the allocation. The
/// timeline records that point.
fn pool(bytes: usize, ordinal: i32, timeline: &Timeline) -> Result<DriverResult<u64>> {
    let own = Stream::own(ordinal)?;
    // SAFETY: dlfield's own stream, which is never destroyed.
    let made = unsafe { calls::cuMemAllocAsync(bytes, own.handle()) };
    timeline.leave(own)?;
    Ok(made)
}

// Attributes of an address, and a value of the first one.
const MEMORY_TYPE: u32 = 2;
const ON_HOST: u32 = 1;
const BUFFER_ID: u32 = 7;
const IS_MANAGED: u32 = 8;
const DEVICE_ORDINAL: u32 = 9;
// Attributes of a device.
const MANAGED_MEMORY: u32 = 83;
const MEMORY_POOLS: u32 = 115;
// Flags of an allocation.
const ATTACH_GLOBAL: u32 = 1;
/// Page-locked for all devices. Without the flag for write-combined memory, the host reads it fast.
const PORTABLE: u32 = 1;

fn supports(ordinal: i32, attribute: u32) -> Result<bool> {
    Ok(calls::cuDeviceGetAttribute(attribute, calls::cuDeviceGet(ordinal)?)? != 0)
}

fn check_managed(ordinal: i32) -> Result<()> {
    if supports(ordinal, MANAGED_MEMORY)? {
        return Ok(());
    }
    let count = device_count()?;
    Err(Error::Device(format!(
        "managed: expected a device with managed memory for 'cuda', got GPU {ordinal} (of \
         {count}), which has none; keep a pair of buffers with 'gt4py' instead"
    )))
}

/// Returns the kind of memory at an address, and the number of its device. `None` if the driver
/// does not know the address: ordinary host memory, freed memory, or no memory at all.
///
/// # Errors
/// [`Error::Device`] without a driver, or if it has failed.
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

//! Blocks of memory that the driver allocates: on a device, page-locked on the host, managed.

use std::sync::Arc;

use super::calls::{self, Refused};
use super::context::enter;
use super::driver::{device_count, is_ready};
use super::settled::without_interpreter;
use super::stream::Stream;
use super::timeline::Timeline;
use crate::error::{Error, Result};

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Memory of the device, from its stream-ordered pool where it has one.
    Device,
    /// Memory of the host that the device copies from and to without a detour.
    Pinned,
    /// Memory that both sides reach, and CUDA keeps in step.
    Managed,
}

/// An owned block, freed when it is dropped: once what dlfield knows of is done, and where others had
/// the address, once all work on the device is.
#[derive(Debug)]
pub(crate) struct Block {
    kind: Kind,
    address: u64,
    ordinal: i32,
    pooled: bool,
    /// The driver's name for the allocation, where it has one: an address may come back after the
    /// context was reset.
    identity: Option<u64>,
    timeline: Arc<Timeline>,
}

impl Block {
    /// Allocates. A block of 0 bytes has an address all the same. Where a device has no memory left,
    /// what is about to be freed in stream order is waited for.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::Device`] where there is no such device, or it has no managed
    /// memory.
    pub(crate) fn new(kind: Kind, bytes: usize, ordinal: i32) -> Result<Self> {
        match Self::at_once(kind, bytes, ordinal) {
            Err(Error::OutOfMemory(_)) => {
                enter(ordinal)?.synchronize()?;
                Self::at_once(kind, bytes, ordinal)
            }
            answer => answer,
        }
    }

    fn at_once(kind: Kind, bytes: usize, ordinal: i32) -> Result<Self> {
        let _current = enter(ordinal)?;
        let size = bytes.max(1);
        let timeline = Arc::new(Timeline::default());
        let pooled = kind == Kind::Device && supports(ordinal, MEMORY_POOLS)?;
        let made = match kind {
            Kind::Device if pooled => pool(size, ordinal, &timeline)?,
            Kind::Device => calls::alloc(size),
            Kind::Pinned => calls::alloc_host(size),
            Kind::Managed => {
                check_managed(ordinal)?;
                calls::alloc_managed(size)
            }
        };
        let address = made.map_err(|refused| {
            if refused.is(Refused::OUT_OF_MEMORY) {
                Error::OutOfMemory(bytes)
            } else {
                refused.into()
            }
        })?;
        let identity = calls::pointer_identity(address).ok();
        Ok(Self { kind, address, ordinal, pooled, identity, timeline })
    }

    /// Address of the first byte: a multiple of 256, as the driver gives it.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// What is being done to it.
    pub(crate) fn timeline(&self) -> Arc<Timeline> {
        Arc::clone(&self.timeline)
    }

    /// Waits for those who may use the memory, then frees it.
    fn free(&self) -> Result<()> {
        let _current = enter(self.ordinal)?;
        if self.identity.is_some() && calls::pointer_identity(self.address).ok() != self.identity {
            return Ok(()); // it went with its context
        }
        self.timeline.settle_others(self.ordinal)?;
        if self.pooled {
            let own = Stream::own(self.ordinal)?;
            self.timeline.join(own)?; // WAIT for dlfield's work before the end, on the device
            // SAFETY: from the pool, freed once, here, after all work that may use it: that of others
            // is done, that of dlfield comes before this in `own`.
            return Ok(unsafe { calls::free_async(self.address, own.handle()) }?);
        }
        without_interpreter(|| self.timeline.wait())?; // WAIT for dlfield's work before the end
        // The driver waits for the device by itself once more.
        without_interpreter(|| {
            let _current = enter(self.ordinal)?;
            let freed = match self.kind {
                // SAFETY: page-locked by `new`, freed once, here, when nothing uses it any more.
                Kind::Pinned => unsafe { calls::free_host(self.address) },
                // SAFETY: allocated by `new`, otherwise as above.
                Kind::Device | Kind::Managed => unsafe { calls::free(self.address) },
            };
            Ok(freed?)
        })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if is_ready() {
            let _ = self.free(); // of a device that has failed nothing can be freed
        }
    }
}

/// Memory of the pool is there once the stream comes to it: whoever uses it joins the timeline.
fn pool(bytes: usize, ordinal: i32, timeline: &Timeline) -> Result<calls::Answer<u64>> {
    let own = Stream::own(ordinal)?;
    // SAFETY: dlfield's own stream.
    let made = unsafe { calls::alloc_async(bytes, own.handle()) };
    timeline.leave(own)?;
    Ok(made)
}

const MANAGED_MEMORY: u32 = 83;
const MEMORY_POOLS: u32 = 115;

fn supports(ordinal: i32, attribute: u32) -> Result<bool> {
    Ok(calls::device_attribute(calls::device(ordinal)?, attribute)? != 0)
}

fn check_managed(ordinal: i32) -> Result<()> {
    if supports(ordinal, MANAGED_MEMORY)? {
        return Ok(());
    }
    let count = device_count()?;
    Err(Error::Device(format!(
        "managed: expected a device with managed memory for 'cuda', got GPU {ordinal} (of {count}) without; use \
         managed='gt4py'"
    )))
}

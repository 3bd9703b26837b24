//! Owners of memory: blocks of device, managed, pinned and registered memory, from allocation to
//! end. `arena` provides the addresses, `queues` the schedule.
//!
//! Only registered blocks are forgotten, and no address is used twice: a freed address is told from
//! one that never existed.

use std::collections::BTreeMap;

use crate::arena::{Arena, pointer};
use crate::status::{Outcome, Status, refuse};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Device,
    Managed,
    Pinned,
    /// Host memory of the caller, registered by `cuMemHostRegister`.
    Registered,
}

impl Kind {
    /// True if copies of it count as copies of device memory.
    pub(crate) fn on_device(self) -> bool {
        matches!(self, Self::Device | Self::Managed)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    /// Allocated in a stream that has not reached the allocation.
    Coming,
    Alive,
    Ended,
}

#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) base: u64,
    pub(crate) size: usize,
    pub(crate) device: usize,
    pub(crate) kind: Kind,
    pub(crate) life: Life,
    /// Allocated from the device's pool, by a stream-ordered call.
    pub(crate) pooled: bool,
    /// Unique number in the process.
    pub(crate) id: u64,
}

impl Block {
    fn holds(&self, address: u64) -> bool {
        let offset = address.checked_sub(self.base).and_then(|offset| usize::try_from(offset).ok());
        offset.is_some_and(|offset| offset < self.size)
    }
}

#[derive(Debug)]
pub(crate) struct Memory {
    devices: Vec<Arena>,
    managed: Arena,
    pinned: Arena,
    blocks: BTreeMap<u64, Block>,
    next_id: u64,
    /// Arenas of each device, of pinned memory and of managed memory.
    pub(crate) capacity: u64,
}

impl Memory {
    pub(crate) fn reserve(devices: usize, capacity: u64, readable: bool) -> Option<Self> {
        let arenas =
            (0..devices).map(|_| Arena::of_device(capacity, readable)).collect::<Option<_>>();
        Some(Self {
            devices: arenas?,
            managed: Arena::of_host(capacity)?,
            pinned: Arena::of_host(capacity)?,
            blocks: BTreeMap::new(),
            next_id: 1,
            capacity,
        })
    }

    /// Adds a block. The caller frees it, and learns its location from the address.
    pub(crate) fn allocate(
        &mut self,
        kind: Kind,
        device: usize,
        size: usize,
        life: Life,
    ) -> Outcome<u64> {
        if size == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let arena = match kind {
            Kind::Managed => &mut self.managed,
            Kind::Pinned => &mut self.pinned,
            Kind::Device | Kind::Registered => &mut self.devices[device],
        };
        let base = arena.take(size).ok_or(Status::OUT_OF_MEMORY)?;
        let pooled = life == Life::Coming;
        self.insert(Block { base, size, device, kind, life, pooled, id: 0 });
        Ok(base)
    }

    /// Registers memory of the caller, who still frees it.
    pub(crate) fn register(&mut self, base: u64, size: usize, device: usize) -> Outcome {
        let end = u64::try_from(size).ok().and_then(|size| base.checked_add(size));
        let Some(end) = end.filter(|_| base != 0 && size != 0) else {
            return Err(Status::INVALID_VALUE);
        };
        let below = self.blocks.range(..end).next_back();
        if self.arena(base).is_some() || below.is_some_and(|(_, b)| b.base >= base || b.holds(base))
        {
            return Err(Status::ALREADY_REGISTERED);
        }
        let (kind, life) = (Kind::Registered, Life::Alive);
        self.insert(Block { base, size, device, kind, life, pooled: false, id: 0 });
        Ok(())
    }

    pub(crate) fn unregister(&mut self, base: u64) -> Outcome {
        match self.blocks.get(&base) {
            Some(block) if block.kind == Kind::Registered => self.blocks.remove(&base),
            _ => return Err(Status::NOT_REGISTERED),
        };
        Ok(())
    }

    fn insert(&mut self, block: Block) {
        let id = self.next_id;
        self.next_id += 1;
        self.blocks.insert(block.base, Block { id, ..block });
    }

    fn arena(&self, address: u64) -> Option<(Kind, &Arena)> {
        let devices = self.devices.iter().map(|arena| (Kind::Device, arena));
        let host = [(Kind::Managed, &self.managed), (Kind::Pinned, &self.pinned)];
        devices.chain(host).find(|(_, arena)| arena.contains(address))
    }

    fn nearest(&self, address: u64) -> Option<&Block> {
        self.blocks.range(..=address).next_back().map(|(_, block)| block)
    }

    /// The live block that contains an address.
    pub(crate) fn block(&self, address: u64) -> Option<&Block> {
        self.nearest(address).filter(|block| block.holds(address) && block.life != Life::Ended)
    }

    /// The block that contains an address, even if freed or past its end; `None` for pageable
    /// memory.
    pub(crate) fn kind_at(&self, address: u64) -> Option<Kind> {
        let registered = || self.block(address).map(|block| block.kind);
        self.arena(address).map(|(kind, _)| kind).or_else(registered)
    }

    /// Address on the host of a range, if a live block contains all of it: what a GPU checks at the
    /// access. The error is the message.
    pub(crate) fn reach(&self, address: u64, length: usize) -> Result<*mut u8, String> {
        let Some(block) = self.nearest(address).filter(|block| block.holds(address)) else {
            return Err(format!("access: expected an allocation, got {address:#x}"));
        };
        let Block { base, size, .. } = *block;
        match block.life {
            Life::Coming => {
                return Err(format!("use before allocation: {address:#x} in {base:#x}"));
            }
            Life::Ended => return Err(format!("use after free: {address:#x} in {base:#x}")),
            Life::Alive => (),
        }
        let offset = usize::try_from(address - base).unwrap_or(size);
        if length > size - offset {
            let room = size - offset;
            return Err(format!(
                "access: expected at most {room} bytes at {address:#x}, got {length}"
            ));
        }
        Ok(self.arena(address).map_or_else(|| pointer(address), |(_, arena)| arena.bytes(address)))
    }

    /// Marks a block as allocated: a stream has reached the allocation.
    pub(crate) fn begin(&mut self, base: u64) {
        if let Some(block) = self.blocks.get_mut(&base) {
            block.life = Life::Alive;
        }
    }

    /// Ends a block, once: its memory is gone and its address stays used. Returns its size.
    pub(crate) fn end(&mut self, base: u64) -> Result<usize, String> {
        let block = match self.blocks.get_mut(&base) {
            Some(block) if block.kind != Kind::Registered => block,
            _ => return Err(format!("free: expected an allocation, got {base:#x}")),
        };
        match block.life {
            Life::Coming => return Err(format!("free before allocation: {base:#x}")),
            Life::Ended => return Err(format!("freed twice: {base:#x}")),
            Life::Alive => block.life = Life::Ended,
        }
        let size = block.size;
        if let Some((_, arena)) = self.arena(base) {
            arena.close(base, size);
        }
        Ok(size)
    }

    /// Blocks in the context of a device.
    pub(crate) fn of_device(&self, device: usize) -> impl Iterator<Item = &Block> {
        self.blocks.values().filter(move |b| b.device == device && b.life != Life::Ended)
    }

    /// Bytes of a device in use.
    pub(crate) fn taken(&self, device: usize) -> u64 {
        let sizes = self.of_device(device).filter(|block| block.kind == Kind::Device);
        sizes.map(|block| u64::try_from(block.size).unwrap_or(u64::MAX)).sum()
    }

    /// Refuses at the call to free an invalid address, as the driver does.
    pub(crate) fn freeable(&self, base: u64, host: bool) -> Outcome<&Block> {
        let fits = |block: &&Block| block.base == base && (block.kind == Kind::Pinned) == host;
        match self.block(base).filter(fits).filter(|block| block.kind != Kind::Registered) {
            Some(block) => Ok(block),
            None => refuse(
                Status::INVALID_VALUE,
                &format!("free: expected an allocation, got {base:#x}"),
            ),
        }
    }
}

//! Who has which memory: blocks of device, managed, pinned and registered memory, from their
//! allocation to their end. The addresses are `arena`'s; the schedule is `queues`'.
//!
//! A block is never forgotten unless it was registered, and no address is used twice: an address
//! that was freed is told from one that never was.

use std::collections::BTreeMap;

use crate::arena::{Arena, pointer};
use crate::status::{Outcome, Status, refuse};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Device,
    Managed,
    Pinned,
    /// Host memory of the caller's, made known by `cuMemHostRegister`.
    Registered,
}

impl Kind {
    /// Does it count as device memory when copies are counted?
    pub(crate) fn on_device(self) -> bool {
        matches!(self, Self::Device | Self::Managed)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    /// Allocated in a stream that has not come to it.
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
    /// From the device's pool, by a stream-ordered call.
    pub(crate) pooled: bool,
    /// No other block of the process has it.
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
    /// Of one device, and of pinned and of managed memory each.
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

    /// A new block. The caller frees it, and learns from the address where it is.
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

    /// Makes memory of the caller's known; the caller still frees it.
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

    /// The block that an address is in, unless it has ended.
    pub(crate) fn block(&self, address: u64) -> Option<&Block> {
        self.nearest(address).filter(|block| block.holds(address) && block.life != Life::Ended)
    }

    /// What an address belongs to, also one that was freed or is past an end; `None` is pageable.
    pub(crate) fn kind_at(&self, address: u64) -> Option<Kind> {
        let registered = || self.block(address).map(|block| block.kind);
        self.arena(address).map(|(kind, _)| kind).or_else(registered)
    }

    /// Where the bytes of a range are, if all of it is in one block that is alive: what a GPU
    /// checks when it gets there. The error is the message.
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

    /// A stream has come to the allocation of a block.
    pub(crate) fn begin(&mut self, base: u64) {
        if let Some(block) = self.blocks.get_mut(&base) {
            block.life = Life::Alive;
        }
    }

    /// Ends a block, once: its memory is gone and its address stays taken. Gives its size.
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

    /// Blocks that live in the context of a device.
    pub(crate) fn of_device(&self, device: usize) -> impl Iterator<Item = &Block> {
        self.blocks.values().filter(move |b| b.device == device && b.life != Life::Ended)
    }

    /// Bytes of a device that are taken.
    pub(crate) fn taken(&self, device: usize) -> u64 {
        let sizes = self.of_device(device).filter(|block| block.kind == Kind::Device);
        sizes.map(|block| u64::try_from(block.size).unwrap_or(u64::MAX)).sum()
    }

    /// Says at the call that an address can not be freed, as the driver does.
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

//! Turns calls into work in a stream: the role of each side of a copy, early and late reads, and
//! waits of the caller. `api` makes the requests, `region` performs them.

use crate::driver::Driver;
use crate::ffi::Handle;
use crate::memory::Kind;
use crate::queues::{Goal, Work};
use crate::region::{Copy, Extent, Fill, Region, Side};
use crate::run::{synchronise, with};
use crate::status::{Outcome, Status, refuse};

/// Role of an address by the name of the called function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Host,
    Device,
    /// Determined by the address itself.
    Unified,
}

/// One side of a copy, as the caller gives it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) role: Role,
    pub(crate) address: u64,
    pub(crate) row: usize,
    pub(crate) plane: usize,
}

impl Place {
    pub(crate) fn linear(role: Role, address: u64) -> Self {
        Self { role, address, row: 0, plane: 0 }
    }

    fn region(self, kind: Option<Kind>) -> Region {
        let side = kind.map_or(Side::Host(self.address), |_| Side::Block(self.address));
        Region { side, row: self.row, plane: self.plane }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) to: Place,
    pub(crate) from: Place,
    pub(crate) extent: Extent,
}

/// Stream argument of the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// None: the legacy stream, and the caller waits if the documentation says so.
    Now,
    In(Handle),
}

impl When {
    fn stream(self) -> Handle {
        match self {
            Self::Now => 0,
            Self::In(handle) => handle,
        }
    }
}

/// Enqueues a copy, and runs it if the host is promised its end.
pub(crate) fn copy(request: Request, when: When) -> Outcome {
    let waits = with(|driver| driver.copy(request, when))?;
    waits.map_or(Ok(()), |(device, goal)| synchronise(device, goal))
}

/// Enqueues a fill, likewise.
pub(crate) fn fill(to: Place, extent: Extent, item: Vec<u8>, when: When) -> Outcome {
    let waits = with(|driver| driver.fill(to, extent, item, when))?;
    waits.map_or(Ok(()), |(device, goal)| synchronise(device, goal))
}

type Waits = Option<(usize, Goal)>;

impl Driver {
    fn copy(&mut self, request: Request, when: When) -> Outcome<Waits> {
        let (stream, device) = self.stream(when.stream())?;
        let Request { to, from, extent } = request;
        if extent.is_empty() {
            return Ok(None);
        }
        if extent.is_absurd() {
            return Err(Status::INVALID_VALUE);
        }
        let (target, source) = (self.kind(to)?, self.kind(from)?);
        self.count(target, source);
        // Pageable sources are read before the call returns, all others when the work runs.
        let copy =
            Copy { to: to.region(target), from: from.region(source).snapshot(extent), extent };
        let order = self.queues.push(stream, Work::Copy(copy));
        let on_device = |kind: Option<Kind>| kind.is_some_and(Kind::on_device);
        let both_host = !on_device(target) && !on_device(source);
        let both_device = on_device(target) && on_device(source);
        let waits = target.is_none() || both_host || (when == When::Now && !both_device);
        Ok(waits.then_some((device, Goal::Stream(stream, order))))
    }

    fn fill(&mut self, to: Place, extent: Extent, item: Vec<u8>, when: When) -> Outcome<Waits> {
        let (stream, device) = self.stream(when.stream())?;
        if extent.is_empty() {
            return Ok(None);
        }
        let kind = self.kind(to)?;
        let work = Work::Fill(Fill { to: to.region(kind), extent, item });
        let order = self.queues.push(stream, work);
        // The host is promised the end of a fill only for memory that it can read.
        let waits = when == When::Now && kind != Some(Kind::Device);
        Ok(waits.then_some((device, Goal::Stream(stream, order))))
    }

    /// Resolves an address. The driver refuses unknown ones at the call.
    fn kind(&self, place: Place) -> Outcome<Option<Kind>> {
        let kind = self.memory.kind_at(place.address);
        let expected = match (place.role, kind) {
            (Role::Device, None) => "a device pointer",
            (Role::Host, Some(Kind::Device)) => "a host pointer",
            (_, None) if place.address == 0 => "a pointer",
            _ => return Ok(kind),
        };
        let got = place.address;
        refuse(Status::INVALID_VALUE, &format!("copy: expected {expected}, got {got:#x}"))
    }

    fn count(&mut self, target: Option<Kind>, source: Option<Kind>) {
        self.stats.copies += 1;
        let on_device = |kind: Option<Kind>| kind.is_some_and(Kind::on_device);
        match (on_device(source), on_device(target)) {
            (false, true) => self.stats.h2d += 1,
            (true, false) => self.stats.d2h += 1,
            (true, true) => self.stats.d2d += 1,
            (false, false) => (),
        }
    }
}

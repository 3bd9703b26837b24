//! The schedule: streams with their work, events, and the work that has to run next for a goal. It
//! only decides; `driver` performs.
//!
//! Every piece of work has a growing number. Work may run when it is first in its stream, and the
//! work that it waits for has run; on the legacy stream, all earlier work of the device's blocking
//! streams has to have run; on a blocking stream, all earlier work of the legacy one. All of these
//! are older than the work itself, so following them ends.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::c_void;
use std::time::Instant;

use crate::ffi::Handle;
use crate::kernels::Launch;
use crate::region::{Copy, Fill};
use crate::status::{Outcome, Status};

pub(crate) const NON_BLOCKING: u32 = 1;
pub(crate) const NO_TIMING: u32 = 2;

#[derive(Debug)]
pub(crate) enum Work {
    Copy(Copy),
    Fill(Fill),
    Begin(u64),
    End(u64),
    Record(Handle),
    /// Waits for the record with this number.
    Wait(u64),
    Kernel(Launch),
    Host(extern "C" fn(*mut c_void), u64),
    /// Does nothing, but has a place in the order.
    Marker,
}

#[derive(Debug)]
struct Queued {
    order: u64,
    work: Work,
}

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) device: usize,
    pub(crate) flags: u32,
    pub(crate) priority: i32,
    pub(crate) legacy: bool,
    /// True for destroyed streams, which finish their work and accept no more.
    open: bool,
    queue: VecDeque<Queued>,
}

impl Stream {
    fn first(&self) -> Option<u64> {
        self.queue.front().map(|queued| queued.order)
    }

    fn blocking(&self) -> bool {
        !self.legacy && self.flags & NON_BLOCKING == 0
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) device: usize,
    pub(crate) flags: u32,
    /// Number of the last record.
    pub(crate) last: Option<u64>,
    pub(crate) ran: Option<Instant>,
}

/// Goal of a synchronisation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// All work of a stream up to a number.
    Stream(Handle, u64),
    Device(usize, u64),
    Record(u64),
}

#[derive(Default, Debug)]
pub(crate) struct Queues {
    streams: BTreeMap<Handle, Stream>,
    pub(crate) events: HashMap<Handle, Event>,
    /// Pending records, with their streams.
    records: HashMap<u64, Handle>,
    order: u64,
}

impl Queues {
    pub(crate) fn open(
        &mut self,
        handle: Handle,
        device: usize,
        flags: u32,
        priority: i32,
        legacy: bool,
    ) {
        let queue = VecDeque::new();
        self.streams.insert(handle, Stream { device, flags, priority, legacy, open: true, queue });
    }

    pub(crate) fn stream(&self, handle: Handle) -> Outcome<&Stream> {
        self.streams.get(&handle).filter(|stream| stream.open).ok_or(Status::INVALID_HANDLE)
    }

    pub(crate) fn close(&mut self, handle: Handle) {
        if let Some(stream) = self.streams.get_mut(&handle) {
            stream.open = false;
        }
        self.streams.retain(|_, stream| stream.open || !stream.queue.is_empty());
    }

    /// Number of the last work.
    pub(crate) fn now(&self) -> u64 {
        self.order
    }

    pub(crate) fn push(&mut self, handle: Handle, work: Work) -> u64 {
        self.order += 1;
        let order = self.order;
        if matches!(work, Work::Record(_)) {
            self.records.insert(order, handle);
        }
        if let Some(stream) = self.streams.get_mut(&handle) {
            stream.queue.push_back(Queued { order, work });
        }
        order
    }

    pub(crate) fn record_is_pending(&self, record: u64) -> bool {
        self.records.contains_key(&record)
    }

    /// Takes the first work of a stream.
    pub(crate) fn pop(&mut self, handle: Handle) -> Option<(usize, Work)> {
        let stream = self.streams.get_mut(&handle)?;
        let Queued { order, work } = stream.queue.pop_front()?;
        let device = stream.device;
        if !stream.open && stream.queue.is_empty() {
            self.streams.remove(&handle);
        }
        if let Work::Record(event) = work {
            self.recorded(order, event);
        }
        Some((device, work))
    }

    fn recorded(&mut self, order: u64, event: Handle) {
        self.records.remove(&order);
        // An event that was recorded again, or destroyed, no longer refers to this record.
        if let Some(event) = self.events.get_mut(&event).filter(|event| event.last == Some(order)) {
            event.ran = Some(Instant::now());
        }
    }

    /// Drops the work of a device that has failed, or whose context has ended.
    pub(crate) fn discard(&mut self, device: usize) {
        for (handle, stream) in self.streams.iter_mut().filter(|(_, s)| s.device == device) {
            stream.queue.clear();
            self.records.retain(|_, holder| holder != handle);
        }
        self.streams.retain(|_, stream| stream.open || !stream.queue.is_empty());
    }

    /// Forgets the streams and events of a context, except its legacy stream.
    pub(crate) fn forget(&mut self, device: usize) {
        self.discard(device);
        self.streams.retain(|_, stream| stream.device != device || stream.legacy);
        self.events.retain(|_, event| event.device != device);
    }

    fn of_device(&self, device: usize) -> impl Iterator<Item = (Handle, &Stream)> {
        self.streams.iter().filter(move |(_, s)| s.device == device).map(|(h, s)| (*h, s))
    }

    /// Streams that are ordered against a stream without events.
    fn ordered_against(&self, stream: &Stream) -> impl Iterator<Item = (Handle, &Stream)> {
        let (legacy, blocking) = (stream.legacy, stream.blocking());
        let related = move |s: &Stream| (legacy && s.blocking()) || (blocking && s.legacy);
        self.of_device(stream.device).filter(move |(_, s)| related(s))
    }

    /// The stream whose first work must run before that of this one.
    fn blocker(&self, stream: &Stream) -> Option<Handle> {
        let queued = stream.queue.front()?;
        if let Work::Wait(record) = queued.work
            && let Some(holder) = self.records.get(&record)
        {
            return Some(*holder);
        }
        let older = |s: &Stream| s.first().is_some_and(|order| order < queued.order);
        self.ordered_against(stream).find(|(_, s)| older(s)).map(|(handle, _)| handle)
    }

    /// The stream whose first work runs next for a goal; `None` once it is reached.
    pub(crate) fn next(&self, goal: Goal) -> Option<Handle> {
        let within = |s: &Stream, limit| s.first().is_some_and(|order| order <= limit);
        let mut handle = match goal {
            Goal::Record(record) => *self.records.get(&record)?,
            Goal::Stream(handle, limit) => {
                self.streams.get(&handle).filter(|s| within(s, limit)).map(|_| handle)?
            }
            Goal::Device(device, limit) => {
                self.of_device(device).find(|(_, s)| within(s, limit)).map(|(handle, _)| handle)?
            }
        };
        while let Some(blocker) = self.streams.get(&handle).and_then(|s| self.blocker(s)) {
            handle = blocker;
        }
        Some(handle)
    }

    /// True if a stream has no work left. The legacy stream includes the blocking ones.
    pub(crate) fn is_idle(&self, stream: &Stream) -> bool {
        let others = self.ordered_against(stream).filter(|_| stream.legacy);
        stream.queue.is_empty() && others.into_iter().all(|(_, s)| s.queue.is_empty())
    }
}

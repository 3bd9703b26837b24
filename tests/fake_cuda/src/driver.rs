//! The whole state of the driver, behind one lock: devices, memory, streams, kernels, counters. It
//! performs one piece of work at a time; `run` decides how long to go on.

use std::collections::HashMap;
use std::ffi::c_void;

use crate::arena::pointer;
use crate::ffi::Handle;
use crate::kernels::{Kernels, Launch};
use crate::memory::{Kind, Life, Memory};
use crate::queues::{Goal, Queues, Work};
use crate::status::{Outcome, Status};
use crate::threads;

/// Counters for tests, in the order of the C side.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Stats {
    pub(crate) allocs: u64,
    pub(crate) frees: u64,
    /// A level rather than a count: a reset keeps it.
    pub(crate) live_bytes: u64,
    pub(crate) copies: u64,
    pub(crate) h2d: u64,
    pub(crate) d2h: u64,
    pub(crate) d2d: u64,
    pub(crate) kernels: u64,
    /// Calls that waited for the device, implicit waits included.
    pub(crate) syncs: u64,
    pub(crate) violations: u64,
}

/// Features that the devices may lack, as on old devices or some virtual machines.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Lacks {
    pub(crate) managed: bool,
    pub(crate) pools: bool,
}

#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) context: Handle,
    pub(crate) pool: Handle,
    pub(crate) retained: u64,
    legacy: Handle,
    /// True once work has failed: every later call fails too.
    failed: bool,
    /// Values set by `cuMemPoolSetAttribute`, by the attribute's number.
    pub(crate) pool_settings: HashMap<u32, u64>,
}

/// A callback, which runs outside of the lock.
#[derive(Debug)]
pub(crate) enum Callback {
    Kernel(Launch),
    Host(extern "C" fn(*mut c_void), u64),
}

impl Callback {
    pub(crate) fn call(self) {
        threads::call_back(|| match self {
            Self::Kernel(launch) => launch.call(),
            Self::Host(function, data) => function(pointer(data).cast()),
        });
    }
}

#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) devices: Vec<Device>,
    pub(crate) memory: Memory,
    pub(crate) queues: Queues,
    pub(crate) kernels: Kernels,
    pub(crate) stats: Stats,
    pub(crate) lacks: Lacks,
    /// Stream and device of the running callback.
    calling: Option<(Handle, usize)>,
    /// Per-thread default streams, by thread and device.
    per_thread: HashMap<(u64, usize), Handle>,
    next_handle: Handle,
}

impl Driver {
    pub(crate) fn new(devices: usize, memory: Memory, lacks: Lacks) -> Self {
        let mut driver = Self {
            devices: Vec::new(),
            memory,
            queues: Queues::default(),
            kernels: Kernels::default(),
            stats: Stats::default(),
            lacks,
            calling: None,
            per_thread: HashMap::new(),
            // Far from small numbers, which denote default streams.
            next_handle: 0x7a00_0000,
        };
        (0..devices).for_each(|_| driver.add_device());
        driver
    }

    fn add_device(&mut self) {
        let [context, pool, legacy] = [self.handle(), self.handle(), self.handle()];
        self.queues.open(legacy, self.devices.len(), 0, 0, true);
        let pool_settings = HashMap::new();
        self.devices.push(Device {
            context,
            pool,
            retained: 0,
            legacy,
            failed: false,
            pool_settings,
        });
    }

    /// Returns a new handle.
    pub(crate) fn handle(&mut self) -> Handle {
        self.next_handle += 64;
        self.next_handle
    }

    pub(crate) fn device(&mut self, ordinal: i32) -> Outcome<&mut Device> {
        let index = usize::try_from(ordinal).map_err(|_| Status::INVALID_DEVICE)?;
        self.devices.get_mut(index).ok_or(Status::INVALID_DEVICE)
    }

    /// The device of an existing context.
    pub(crate) fn device_of(&self, context: Handle) -> Outcome<usize> {
        let of = |device: &Device| device.context == context;
        let device = self.devices.iter().position(of).ok_or(Status::INVALID_CONTEXT)?;
        if self.devices[device].retained == 0 {
            return Err(Status::CONTEXT_IS_DESTROYED);
        }
        Ok(device)
    }

    /// The device of this thread's context.
    pub(crate) fn current(&self) -> Outcome<usize> {
        self.device_of(threads::current().ok_or(Status::INVALID_CONTEXT)?)
    }

    /// Refuses a device whose work has failed.
    pub(crate) fn healthy(&self, device: usize) -> Outcome {
        if self.devices[device].failed { Err(Status::ILLEGAL_ADDRESS) } else { Ok(()) }
    }

    /// The device of this thread's context, unless it has failed.
    pub(crate) fn working(&self) -> Outcome<usize> {
        let device = self.current()?;
        self.healthy(device).map(|()| device)
    }

    /// The stream of a handle, with its device, unless that has failed.
    pub(crate) fn stream(&mut self, handle: Handle) -> Outcome<(Handle, usize)> {
        let handle = match handle {
            0 | 1 => self.devices[self.current()?].legacy,
            2 => self.stream_of_thread()?,
            _ => handle,
        };
        let device = self.queues.stream(handle)?.device;
        self.healthy(device).map(|()| (handle, device))
    }

    fn stream_of_thread(&mut self) -> Outcome<Handle> {
        let key = (threads::number(), self.current()?);
        if let Some(handle) = self.per_thread.get(&key) {
            return Ok(*handle);
        }
        let handle = self.handle();
        self.queues.open(handle, key.1, 0, 0, false);
        self.per_thread.insert(key, handle);
        Ok(handle)
    }

    /// True if a stream is done, callbacks included.
    pub(crate) fn is_idle(&self, handle: Handle) -> Outcome<bool> {
        let stream = self.queues.stream(handle)?;
        let calling = self.calling.is_some_and(|(holder, device)| {
            holder == handle || (stream.legacy && device == stream.device)
        });
        Ok(!calling && self.queues.is_idle(stream))
    }

    /// Performs the next work for a goal. Returns `None` once the goal is reached, else possibly a
    /// callback for the caller to run without the lock, followed by `returned`.
    pub(crate) fn step(&mut self, goal: Goal) -> Option<Option<Callback>> {
        let handle = self.queues.next(goal)?;
        let (device, work) = self.queues.pop(handle)?;
        let result = match work {
            Work::Copy(copy) => copy.perform(&self.memory),
            Work::Fill(fill) => fill.perform(&self.memory),
            Work::End(base) => self.end(base),
            Work::Begin(base) => {
                self.memory.begin(base);
                Ok(())
            }
            Work::Record(_) | Work::Wait(_) | Work::Marker => Ok(()),
            Work::Kernel(launch) => match launch.perform(&self.memory) {
                Some(result) => result,
                None => return Some(self.calls(handle, device, Callback::Kernel(launch))),
            },
            Work::Host(call, data) => {
                return Some(self.calls(handle, device, Callback::Host(call, data)));
            }
        };
        if let Err(why) = result {
            self.fail(device, &why);
        }
        Some(None)
    }

    fn calls(&mut self, handle: Handle, device: usize, callback: Callback) -> Option<Callback> {
        self.calling = Some((handle, device));
        Some(callback)
    }

    pub(crate) fn returned(&mut self) {
        self.calling = None;
    }

    /// Allocates memory, which the caller frees.
    pub(crate) fn allocate(
        &mut self,
        kind: Kind,
        device: usize,
        size: usize,
        life: Life,
    ) -> Outcome<u64> {
        if kind == Kind::Managed && self.lacks.managed {
            return Err(Status::NOT_SUPPORTED);
        }
        let base = self.memory.allocate(kind, device, size, life)?;
        self.stats.allocs += 1;
        self.stats.live_bytes += u64::try_from(size).unwrap_or(0);
        Ok(base)
    }

    /// Allocates in stream order: the memory exists once the stream reaches the allocation.
    pub(crate) fn allocate_in(
        &mut self,
        stream: Handle,
        device: usize,
        size: usize,
    ) -> Outcome<u64> {
        if self.lacks.pools {
            return Err(Status::NOT_SUPPORTED);
        }
        let base = self.allocate(Kind::Device, device, size, Life::Coming)?;
        self.queues.push(stream, Work::Begin(base));
        Ok(base)
    }

    /// Frees now a block that `freeable` has found.
    pub(crate) fn free(&mut self, base: u64, device: usize) -> Outcome {
        self.stats.frees += 1;
        if let Err(why) = self.end(base) {
            self.fail(device, &why);
        }
        self.healthy(device)
    }

    /// Counts a refused call whose caller is wrong about memory.
    pub(crate) fn count_violation<T>(&mut self, result: Outcome<T>) -> Outcome<T> {
        self.stats.violations += u64::from(result.is_err());
        result
    }

    /// Ends a block and its bytes.
    pub(crate) fn end(&mut self, base: u64) -> Result<(), String> {
        let size = self.memory.end(base)?;
        self.stats.live_bytes -= u64::try_from(size).unwrap_or(0);
        Ok(())
    }

    /// Reacts to a fault as a GPU does: the context of the device is unusable from now on.
    pub(crate) fn fail(&mut self, device: usize, why: &str) {
        eprintln!("fake cuda: violation on device {device}: {why}");
        self.stats.violations += 1;
        self.devices[device].failed = true;
        self.queues.discard(device);
    }

    /// Address on the host of a device address, for a running kernel. Null fails its device.
    pub(crate) fn reach(&mut self, address: u64, length: usize) -> *mut u8 {
        let reached = self.memory.reach(address, length);
        reached.unwrap_or_else(|why| {
            let device = self.calling.map_or(0, |(_, device)| device);
            self.fail(device, &format!("kernel: {why}"));
            std::ptr::null_mut()
        })
    }

    /// Ends the context of a device with everything that lives in it.
    pub(crate) fn destroy(&mut self, device: usize) {
        self.queues.forget(device);
        self.kernels.unload_all(device);
        self.per_thread.retain(|(_, owner), _| *owner != device);
        self.devices[device].failed = false;
        let blocks: Vec<_> = self.memory.of_device(device).map(|block| block.base).collect();
        for base in blocks {
            self.memory.begin(base);
            if self.end(base).is_err() {
                // Registered memory is only forgotten: its owner frees it.
                let _ = self.memory.unregister(base);
            }
        }
    }
}

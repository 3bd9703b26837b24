//! The driver of the process, its locks, and running work until a goal is reached.
//!
//! There are two locks, always taken in this order: `RUNNER` is held while work runs, callbacks
//! included, `DRIVER` for single steps only. So a callback that needs Python's lock does not stop a
//! thread that holds it from queueing work. A thread that holds it and synchronises waits for ever,
//! as on a GPU.

use std::env;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::driver::{Driver, Lacks};
use crate::memory::Memory;
use crate::queues::Goal;
use crate::status::{Outcome, Status, refuse};
use crate::threads;

static RUNNER: Mutex<()> = Mutex::new(());
static DRIVER: LazyLock<Mutex<Option<Driver>>> = LazyLock::new(|| Mutex::new(start()));
/// The process that called `cuInit`. A forked child has no driver.
static INITIALISED_IN: AtomicI32 = AtomicI32::new(0);

fn start() -> Option<Driver> {
    let devices = setting("DLFIELD_FAKE_CUDA_DEVICES", 1)?;
    let gib = setting("DLFIELD_FAKE_CUDA_ARENA_GIB", 4)?;
    let readable = setting("DLFIELD_FAKE_CUDA_READABLE", 0)? != 0;
    let lacks = Lacks {
        managed: setting("DLFIELD_FAKE_CUDA_NO_MANAGED", 0)? != 0,
        pools: setting("DLFIELD_FAKE_CUDA_NO_POOLS", 0)? != 0,
    };
    let memory = Memory::reserve(devices, u64::try_from(gib).ok()? << 30, readable)?;
    Some(Driver::new(devices, memory, lacks))
}

fn setting(name: &str, default: usize) -> Option<usize> {
    let Ok(text) = env::var(name) else {
        return Some(default);
    };
    let number = text.parse().ok().filter(|number| *number <= 1024);
    if number.is_none() {
        eprintln!("fake cuda: {name}: expected a number up to 1024, got {text}");
    }
    number
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of another thread is reported by that thread.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls a function with the locked driver.
pub(crate) fn with<T>(look: impl FnOnce(&mut Driver) -> Outcome<T>) -> Outcome<T> {
    match lock(&DRIVER).as_mut() {
        Some(driver) => look(driver),
        None => {
            refuse(Status::NO_DEVICE, "start: expected address space and settings, got neither")
        }
    }
}

fn process() -> i32 {
    // SAFETY: getpid has no requirements.
    unsafe { libc::getpid() }
}

/// Starts the driver for this process, but not in a forked child, which inherits half of it.
pub(crate) fn initialise() -> Outcome {
    if INITIALISED_IN.load(Ordering::Acquire) != 0 {
        return ready();
    }
    let devices = with(|driver| Ok(driver.devices.len()))?;
    if devices == 0 {
        return Err(Status::NO_DEVICE);
    }
    INITIALISED_IN.store(process(), Ordering::Release);
    Ok(())
}

fn ready() -> Outcome {
    if threads::has_ended() {
        return Err(Status::DEINITIALIZED);
    }
    if threads::calling_back() {
        return refuse(Status::NOT_PERMITTED, "callback: expected no driver calls, got one");
    }
    let initialised = INITIALISED_IN.load(Ordering::Acquire) == process();
    if initialised { Ok(()) } else { Err(Status::NOT_INITIALIZED) }
}

/// Runs a call of the driver and returns its status. Nearly every exported function uses it.
pub(crate) fn answer(call: impl FnOnce() -> Outcome) -> Status {
    ready().and_then(|()| call()).err().unwrap_or(Status::SUCCESS)
}

/// As `call`, for functions that need no start.
pub(crate) fn answer_always(call: impl FnOnce() -> Outcome) -> Status {
    call().err().unwrap_or(Status::SUCCESS)
}

/// Waits for work, which runs it. The status is that of the device.
pub(crate) fn synchronise(device: usize, goal: Goal) -> Outcome {
    let turn = lock(&RUNNER);
    with(|driver| {
        driver.stats.syncs += 1;
        Ok(())
    })?;
    while let Some(callback) = with(|driver| Ok(driver.step(goal)))? {
        if let Some(callback) = callback {
            callback.call();
            with(|driver| {
                driver.returned();
                Ok(())
            })?;
        }
    }
    drop(turn);
    with(|driver| driver.healthy(device))
}

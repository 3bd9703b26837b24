//! Presence of a driver and its devices: probed once and remembered.

use std::ffi::{CStr, c_int};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::calls::{self, Refused};
use crate::error::{Error, Result};

struct Driver {
    /// Process that started the driver. CUDA does not work in its forked children.
    process: u32,
    devices: i32,
}

static DRIVER: OnceLock<Result<Driver>> = OnceLock::new();

fn driver() -> Result<&'static Driver> {
    let driver = DRIVER.get_or_init(start).as_ref().map_err(Clone::clone)?;
    if driver.process == std::process::id() {
        return Ok(driver);
    }
    Err(Error::Device(
        "CUDA: expected the process that has used it first, got a forked child, where it does not \
         work; spawn processes instead of forking them"
            .into(),
    ))
}

fn start() -> Result<Driver> {
    calls::check_present()?;
    // Without devices, either call may fail, depending on the driver.
    let devices = match calls::cuInit(0).and_then(|()| calls::cuDeviceGetCount()) {
        Err(refused) if refused.is(Refused::NO_DEVICE) => 0,
        answer => answer?,
    };
    if devices < 1 {
        return Err(Error::Device(
            "CUDA: expected a device, got a driver without any (see CUDA_VISIBLE_DEVICES); use \
             host memory"
                .into(),
        ));
    }
    Ok(Driver { process: std::process::id(), devices })
}

/// Number of devices that CUDA shows to this process.
///
/// # Errors
/// [`Error::Device`] if there is no driver, it is too old or has no device, or this process was
/// forked from one that used it.
pub(crate) fn device_count() -> Result<i32> {
    Ok(driver()?.devices)
}

/// Newest version of CUDA that the driver has, such as (12, 4).
///
/// # Errors
/// As [`device_count`].
pub(crate) fn version() -> Result<(i32, i32)> {
    driver()?;
    let number = calls::cuDriverGetVersion()?;
    Ok((number / 1000, number % 1000 / 10))
}

/// Properties of a device that a user knows it by.
pub(crate) struct Properties {
    pub(crate) name: String,
    pub(crate) bytes: usize,
    pub(crate) compute_capability: (i32, i32),
}

/// Asks the driver what a device is. Makes no context on it.
///
/// # Errors
/// [`Error::Device`] if there is no such device, or the driver fails.
pub(crate) fn properties(ordinal: i32) -> Result<Properties> {
    const MAJOR: u32 = 75; // of CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY
    const MINOR: u32 = 76;
    check_ordinal(ordinal)?;
    let device = calls::cuDeviceGet(ordinal)?;
    let capability = |attribute| calls::cuDeviceGetAttribute(attribute, device);
    Ok(Properties {
        name: name(device)?,
        bytes: calls::cuDeviceTotalMem_v2(device)?,
        compute_capability: (capability(MAJOR)?, capability(MINOR)?),
    })
}

fn name(device: c_int) -> Result<String> {
    let mut text = [0_u8; 256];
    let room = c_int::try_from(text.len()).unwrap_or(0);
    // SAFETY: `text` has `room` bytes, by the line above; cuda.h says that the driver writes at most
    // as many as it is told, NUL included.
    unsafe { calls::cuDeviceGetName(text.as_mut_ptr().cast(), room, device) }?;
    let name = CStr::from_bytes_until_nul(&text).unwrap_or_default();
    Ok(name.to_string_lossy().into_owned())
}

/// True if there is a CUDA driver with a device. This loads the driver, which only what meets memory
/// of a device, or wants it, should cause.
pub(crate) fn is_available() -> bool {
    device_count().is_ok()
}

/// True if this process has started the driver. Starts nothing. In a forked child there is nothing
/// to free.
pub(crate) fn is_ready() -> bool {
    let started = DRIVER.get().and_then(|driver| driver.as_ref().ok());
    started.is_some_and(|driver| driver.process == std::process::id())
}

/// One handle per device, made on first use and never released.
pub(super) struct PerDevice(Mutex<Vec<(i32, usize)>>);

impl PerDevice {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Returns the handle of a device, which `make` makes on first use.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no such device, and as `make`.
    pub(super) fn get(&self, ordinal: i32, make: impl FnOnce() -> Result<usize>) -> Result<usize> {
        check_ordinal(ordinal)?;
        let mut handles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, handle)) = handles.iter().find(|(device, _)| *device == ordinal) {
            return Ok(*handle);
        }
        let handle = make()?;
        handles.push((ordinal, handle));
        Ok(handle)
    }
}

/// Refuses a device that does not exist.
///
/// # Errors
/// [`Error::Device`].
pub(crate) fn check_ordinal(ordinal: i32) -> Result<()> {
    let count = device_count()?;
    if (0..count).contains(&ordinal) {
        return Ok(());
    }
    Err(Error::Device(format!(
        "device: expected the number of a GPU that CUDA shows, from 0 to {}, got {ordinal}; see \
         CUDA_VISIBLE_DEVICES",
        count.saturating_sub(1)
    )))
}

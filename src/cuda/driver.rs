//! Whether there is a driver with devices: asked once, and remembered.

use std::sync::OnceLock;

use super::calls::{self, Refused};
use crate::error::{Error, Result};

struct Driver {
    /// The process that started it. CUDA does not work in a child that was forked from it.
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
        "CUDA: expected the process that has used it first, got a forked child, where it does not work; start \
         processes by 'spawn' (multiprocessing.set_start_method)"
            .into(),
    ))
}

fn start() -> Result<Driver> {
    calls::check_present()?;
    // Which of the two says that there is none differs between drivers.
    let devices = match calls::init().and_then(|()| calls::device_count()) {
        Err(refused) if refused.is(Refused::NO_DEVICE) => 0,
        answer => answer?,
    };
    if devices < 1 {
        return Err(Error::Device(
            "CUDA: expected a device, got a driver without any (see CUDA_VISIBLE_DEVICES); use host memory"
                .into(),
        ));
    }
    Ok(Driver { process: std::process::id(), devices })
}

/// Number of the devices that CUDA shows to this process.
///
/// # Errors
/// [`Error::Device`] where there is no driver, it is too old, it has no device, or this process was
/// forked from one that used it.
pub(crate) fn device_count() -> Result<i32> {
    Ok(driver()?.devices)
}

/// Whether the driver was started and can be used here. Starts nothing: what was allocated by it is
/// there to be freed, unless this is a forked child.
pub(crate) fn is_ready() -> bool {
    let started = DRIVER.get().and_then(|driver| driver.as_ref().ok());
    started.is_some_and(|driver| driver.process == std::process::id())
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
        "device: expected the number of a GPU that CUDA shows, from 0 to {}, got {ordinal}; see CUDA_VISIBLE_DEVICES",
        count.saturating_sub(1)
    )))
}

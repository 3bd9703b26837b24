//! What the driver says of memory that a producer says is on a CUDA device, and when it may be given
//! back.

use std::sync::Arc;

use super::Managed;
use crate::cuda::{Place, Settled, Stream, Timeline, device_count, locate, of_handle};
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};
use crate::layout::Layout;

/// The device that has the memory: a producer may count devices in its own way.
///
/// # Errors
/// [`Error::Device`] without a usable driver, [`Error::Buffer`] where the memory is not on a device.
pub(super) fn found(address: usize, layout: &Layout, device: Device) -> Result<Device> {
    if layout.size() == 0 {
        return Ok(device); // there is nothing to ask about
    }
    match device.kind {
        DeviceKind::Cuda => {}
        DeviceKind::CudaManaged if device_count().is_ok() => return managed_by_cuda(address),
        _ => return Ok(device),
    }
    let span = layout.span();
    let first = address.wrapping_add_signed(span.low);
    let place = on_device(first).map_err(|error| error.about(&format!("memory on {}", device)))?;
    let last = on_device(first.wrapping_add(span.len()).wrapping_sub(1))?;
    if place == last {
        return Ok(Device { ordinal: place, ..device });
    }
    Err(Error::Buffer(format!(
        "data: expected {} bytes on one GPU from {first:#x} on, got the end on GPU {last} and the start on GPU {place}",
        span.len()
    )))
}

/// Memory that CUDA manages, which a capsule says to be on device 0.
fn managed_by_cuda(address: usize) -> Result<Device> {
    match locate(address)? {
        Some(Place::Managed(ordinal)) => Ok(Device { kind: DeviceKind::CudaManaged, ordinal }),
        found => Err(Error::Buffer(format!(
            "data: expected an address in memory that CUDA manages, got {address:#x} {}",
            match found {
                Some(Place::Device(ordinal)) => format!("on GPU {ordinal} alone"),
                Some(_) => "in page-locked memory of the host".into(),
                None => "which CUDA does not know".into(),
            }
        ))),
    }
}

fn on_device(address: usize) -> Result<i32> {
    match locate(address)? {
        Some(Place::Device(ordinal) | Place::Managed(ordinal)) => Ok(ordinal),
        Some(Place::Pinned) => Err(Error::Buffer(format!(
            "data: expected an address on a GPU, got {address:#x} in page-locked memory of the host; pass the host's \
             array"
        ))),
        None => Err(Error::Buffer(format!(
            "data: expected an address on a GPU, got {address:#x}, which CUDA does not know: memory of the host, or \
             memory that was freed"
        ))),
    }
}

/// Memory of a device, in the order of the work on it; given back once that is done. `in_order`: the
/// producer's next use of the memory is taken to be on `stream` too. An object that describes itself
/// names its stream so that it can go on there (specification of the CUDA array interface,
/// "Synchronization"); a tensor's allocator gives the memory to the stream it was allocated for.
///
/// # Errors
/// What CUDA refuses.
///
/// # Safety
/// `stream` is a stream, for as long as the memory's owner lives.
pub(super) unsafe fn followed(
    managed: Managed,
    stream: Option<usize>,
    after: Option<Stream>,
    in_order: bool,
) -> Result<Managed> {
    let device = managed.device();
    let of_cuda = matches!(device.kind, DeviceKind::Cuda | DeviceKind::CudaManaged);
    if !of_cuda || device_count().is_err() {
        return Ok(managed);
    }
    let producer = match stream {
        Some(handle) if handle <= Stream::PER_THREAD => {
            // SAFETY: a default stream of the device, which lives as long as the process.
            Some(unsafe { Stream::foreign(handle, device.ordinal) })
        }
        // SAFETY: the caller's promise; it may be a stream of another device.
        Some(handle) => Some(unsafe { of_handle(handle) }?),
        None => None,
    };
    let timeline = Arc::new(Timeline::of(producer, after)?);
    let settled = Settled::before_giving_back(Arc::clone(&timeline), device.ordinal, in_order);
    Ok(managed.with_timeline(timeline).along_with(settled))
}

/// Whether memory of the host that the driver has allocated is still there. A device that has failed
/// leaves it alone.
///
/// # Errors
/// [`Error::Device`].
pub(super) fn check_there(address: usize) -> Result<()> {
    device_count()?;
    match locate(address) {
        Ok(None) => Err(Error::Device(
            "host buffer: expected memory that CUDA has allocated, got an address that it does not know any more; the \
             device's context was reset: make the storage anew"
                .into(),
        )),
        _ => Ok(()),
    }
}

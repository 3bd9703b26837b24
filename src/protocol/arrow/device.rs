//! The struct of the C device data interface: an array with the device of its memory, and an event.

use std::ffi::c_void;
use std::mem::replace;
use std::sync::Arc;

use arrow_data::ffi::FFI_ArrowArray;
use pyo3::prelude::*;

use super::export::Exported;
use crate::cuda::{Event, Stream};
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};

/// `struct ArrowDeviceArray`.
#[repr(C)]
pub(super) struct ArrowDeviceArray {
    pub(super) array: FFI_ArrowArray,
    device_id: i64,
    device_type: i32,
    /// Pointer to a `cudaEvent_t` that is released with the array, or NULL.
    sync_event: *mut c_void,
    /// Zeros, by the interface. pyarrow does not initialise them, so this is not checked.
    reserved: [i64; 3],
}

// SAFETY: as for the array. The event lives as long as the array, and is only read.
unsafe impl Send for ArrowDeviceArray {}

impl ArrowDeviceArray {
    /// Exports memory of any device. The consumer waits for the event, if there is one.
    ///
    /// # Errors
    /// As [`Exported::data`]; [`Error::Device`] if CUDA fails.
    pub(super) fn new(exported: &Exported<'_>, device: Device) -> Result<Self> {
        let timeline = exported.timeline().filter(|_| !device.is_host());
        let event =
            timeline.map(|timeline| timeline.end(device.ordinal).map(Arc::new)).transpose()?;
        let sync_event = event.as_ref().map_or(std::ptr::null(), |event| event.address());
        let keep = |memory| (memory, event);
        Ok(Self {
            array: FFI_ArrowArray::new(&exported.data(keep)?),
            device_id: if device == Device::CPU { -1 } else { i64::from(device.ordinal) },
            device_type: i32::try_from(device.code()).unwrap_or(0),
            sync_event: sync_event.cast_mut().cast(),
            reserved: [0; 3],
        })
    }

    /// Moves the array out, and leaves a released one.
    pub(super) fn take(&mut self) -> Self {
        Self { array: replace(&mut self.array, FFI_ArrowArray::empty()), ..*self }
    }

    /// The device of the memory.
    ///
    /// # Errors
    /// [`Error::Buffer`] for a device that the interface does not allow.
    pub(super) fn device(&self) -> Result<Device> {
        let ordinal = i32::try_from(self.device_id).map_err(|_| {
            Error::Buffer(format!(
                "Arrow device array: expected a device_id of 32 bits, got {}",
                self.device_id
            ))
        })?;
        let code = i64::from(self.device_type);
        let on_cpu = code == Device::CPU.code();
        let device = if on_cpu { Device::CPU } else { Device::from_dlpack(code, ordinal)? };
        if on_cpu && !self.sync_event.is_null() {
            return Err(Error::Buffer(
                "Arrow device array: expected no sync_event for memory of the CPU, got one; the \
                 array is not valid"
                    .into(),
            ));
        }
        Ok(device)
    }

    /// Orders later work on the memory after the producer's event. The host waits if it reaches the
    /// memory, because it may read at once.
    ///
    /// # Errors
    /// [`Error::Device`] for an event that is not one of CUDA.
    pub(super) fn follow(&self, py: Python<'_>, device: Device) -> Result<Option<Stream>> {
        let event = self.sync_event.cast::<usize>();
        if event.is_null() {
            return Ok(None);
        }
        let of_cuda = matches!(
            device.kind,
            DeviceKind::Cuda | DeviceKind::CudaManaged | DeviceKind::CudaHost
        );
        if !of_cuda || !event.is_aligned() {
            return Err(Error::Device(format!(
                "Arrow device array: expected memory that is ready, or an event of CUDA, got a \
                 sync_event for memory on {device}; synchronise the producer first, and pass the \
                 array without one"
            )));
        }
        // SAFETY: aligned, and valid until the array is released (the interface).
        let handle = unsafe { event.read() };
        // SAFETY: the event is valid until the array is released, which `self` owns.
        let event = unsafe { Event::foreign(handle, device.ordinal) };
        if device.kind != DeviceKind::Cuda {
            py.detach(|| event.wait())?; // WAIT of the host for the producer's event
            return Ok(None);
        }
        let stream = Stream::current(device.ordinal)?;
        event.hold_back(stream)?; // WAIT of the stream for the producer's event
        Ok(Some(stream))
    }
}

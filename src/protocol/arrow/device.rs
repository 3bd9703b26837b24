//! The struct of the C device data interface: an array with the device that has its memory, and an event.

use std::ffi::c_void;

use arrow_data::ffi::FFI_ArrowArray;
use pyo3::prelude::*;

use super::export::Exported;
use super::from_ffi;
use super::structs::Array;
use crate::cuda::{ForeignEvent, Signal, Stream};
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};
use crate::protocol::keep::Keep;

/// `struct ArrowDeviceArray`. The default is a released one.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct DeviceArray {
    pub(super) array: Array,
    device_id: i64,
    device_type: i32,
    /// Points to a `cudaEvent_t`, which is released with the array; or NULL.
    sync_event: *mut c_void,
    /// Zeros, by the interface; pyarrow leaves in them what was there, so that nobody can insist.
    reserved: [i64; 3],
}

// SAFETY: as for the array; the event stays as long as it, and nobody writes through the pointer.
unsafe impl Send for DeviceArray {}

impl DeviceArray {
    /// Over memory of any device. Who takes it waits for the event, where there is one.
    ///
    /// # Errors
    /// As [`Exported::data`]; what CUDA refuses.
    pub(super) fn of(exported: &Exported<'_>, device: Device) -> Result<Self> {
        // Without elements nothing is in flight, and no buffer keeps an event.
        let busy = !device.is_host() && !exported.is_empty();
        let signal = match exported.timeline().filter(|_| busy) {
            Some(timeline) => {
                timeline.hand_out();
                Some(Signal::after(timeline, device.ordinal)?)
            }
            None => None,
        };
        let sync_event = signal.as_ref().map_or(std::ptr::null(), |signal| signal.address());
        let keep = |memory| (Keep::new(memory), signal);
        let array = from_ffi(FFI_ArrowArray::new(&exported.data(keep)?));
        let on_host = device == Device::CPU;
        let device_type = i32::try_from(device.code()).unwrap_or(0);
        Ok(Self {
            array,
            device_id: if on_host { -1 } else { i64::from(device.ordinal) },
            device_type,
            sync_event: sync_event.cast_mut().cast(),
            reserved: [0; 3],
        })
    }

    /// Where the memory is.
    ///
    /// # Errors
    /// [`Error::Buffer`] for what the interface does not allow.
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
                "Arrow device array: expected no sync_event for memory of the CPU, got one; the array is not valid".into(),
            ));
        }
        Ok(device)
    }

    /// Lets whatever is done to the memory from here on come after the producer's event. The host waits where it
    /// reaches the memory, since it may read at once.
    ///
    /// # Errors
    /// [`Error::Device`] for an event that nothing here can wait for.
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
                "Arrow device array: expected memory that is ready, or an event of CUDA, got a sync_event for memory on \
                 {device}; synchronise the producer first, and pass it on without one"
            )));
        }
        // SAFETY: the interface: a pointer to an event, which is there until the array is released.
        let handle = unsafe { event.read() };
        // SAFETY: as above; the array is released after `self`.
        let event = unsafe { ForeignEvent::new(handle, device.ordinal) };
        if device.kind != DeviceKind::Cuda {
            py.detach(|| event.wait())?; // WAIT of the host for the producer's event
            return Ok(None);
        }
        let stream = Stream::current(device.ordinal)?;
        event.hold_back(stream)?; // WAIT of the stream for the producer's event
        Ok(Some(stream))
    }
}

//! The second step of trust: from claims that hold to memory that is where they say, and owned.
//!
//! Only the driver knows which device has an address; memory of the host needs no question.

use std::sync::Arc;

use super::checked::{Checked, Facts, InFlight, Refusal, Source};
use super::owner::Owner;
use super::tensor::Managed;
use super::untrusted::Untrusted;
use crate::cuda::{Kind, Stream, Timeline, WaitOnDrop, device_count, locate};
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};
use crate::layout::Layout;

impl Untrusted {
    /// Checks every claim and trusts the memory from here on. The producer's deleter runs when the
    /// last view is gone, or now if the tensor is refused.
    ///
    /// Memory in which several indices name one element becomes read-only: a write to one element
    /// of a broadcast writes others.
    ///
    /// # Errors
    /// [`Error::Buffer`] that names the first claim that cannot hold, also if the driver knows
    /// another kind of memory, or none, at the address; [`Error::Device`] without a usable driver.
    pub fn validate(self) -> Result<Managed> {
        self.check()?.validate(false)
    }
}

impl Checked {
    /// As [`Untrusted::validate`]. With `trust_device` a claim about a device counts that no CUDA
    /// driver confirms: a stencil on a GPU of another make takes such memory.
    ///
    /// # Errors
    /// As [`Untrusted::validate`].
    #[inline(always)]
    pub(crate) fn validate(self, trust_device: bool) -> Result<Managed> {
        if self.facts.device == Device::CPU {
            return Ok(self.facts.owned_by(self.source.into_owner())); // nothing to ask or to order
        }
        Ok(self.into_managed(trust_device)?)
    }

    /// The device that the driver confirms to have the memory.
    ///
    /// # Errors
    /// [`Error::Device`] without a usable driver, [`Error::Buffer`] if the memory is not on a device.
    pub(crate) fn confirmed_device(&self) -> Result<Device> {
        let (address, layout) = (self.facts.data.addr(), &self.facts.layout);
        match self.device().kind {
            _ if layout.size() == 0 => Ok(self.device()), // there is nothing to ask
            DeviceKind::Cuda => on_one_device(address, layout, self.device()),
            DeviceKind::CudaManaged if device_count().is_ok() => managed_by_cuda(address),
            _ => Ok(self.device()),
        }
    }

    /// Takes the memory, in order with its producer's work. First the driver is asked which device
    /// has it, if a CUDA device is claimed to have it: a producer may count devices in its own way.
    ///
    /// # Errors
    /// As [`Untrusted::validate`], with the tensor, which its owner may take back.
    pub(crate) fn into_managed(self, trust_device: bool) -> Result<Managed, Refusal> {
        let device = match self.confirmed_device() {
            Err(_) if trust_device => Ok(self.device()),
            confirmed => confirmed,
        };
        let Self { facts, source, in_flight } = self;
        let taken = device.and_then(|device| Ok((device, timeline(in_flight, device)?)));
        let (device, timeline) = match taken {
            Ok(taken) => taken,
            Err(error) => return Err(Refusal { error, refused: source }),
        };
        // The producer's next use of the memory is on its stream as well if an object describes
        // itself: it names the stream so that it can go on there (specification of the CUDA array
        // interface, "Synchronization"). The allocator of a tensor reuses the memory in the order
        // of the stream that it was allocated for; no protocol names that stream.
        let in_order = matches!(source, Source::Object(_));
        let managed = Facts { device, ..facts }.owned_by(source.into_owner());
        let Some(timeline) = timeline.map(Arc::new) else { return Ok(managed) };
        let ordinal = device.ordinal;
        let wait = WaitOnDrop { timeline: Arc::clone(&timeline), ordinal, in_order };
        Ok(managed.with_timeline(timeline).along_with(wait))
    }
}

impl Source {
    fn into_owner(self) -> Owner {
        match self {
            Self::Tensor(tensor) => Owner::new(tensor),
            Self::Object(owner) => owner,
        }
    }
}

/// The order of work on memory of a device, after what its producer has in flight.
fn timeline(in_flight: InFlight, device: Device) -> Result<Option<Timeline>> {
    let follows = matches!(device.kind, DeviceKind::Cuda | DeviceKind::CudaManaged);
    if !follows || device_count().is_err() {
        return Ok(None);
    }
    let (producer, after) = match in_flight {
        InFlight::Nothing => (None, None),
        InFlight::Before(stream) => (None, Some(stream)),
        InFlight::On(handle) if handle <= Stream::PER_THREAD => {
            // SAFETY: a default stream of the device, which lives as long as the process.
            (Some(unsafe { Stream::foreign(handle, device.ordinal) }), None)
        }
        // SAFETY: Checked::on_stream demands a stream that lives as long as the memory's owner; it
        // may be one of another device.
        InFlight::On(handle) => (Some(unsafe { Stream::from_handle(handle) }?), None),
    };
    Timeline::new(producer, after).map(Some)
}

fn on_one_device(address: usize, layout: &Layout, device: Device) -> Result<Device> {
    let span = layout.span();
    let first = address.wrapping_add_signed(span.low);
    let place = ordinal_at(first).map_err(|error| error.about(&format!("memory on {device}")))?;
    let last = ordinal_at(first.wrapping_add(span.len()).wrapping_sub(1))?;
    if place == last {
        return Ok(Device { ordinal: place, ..device });
    }
    Err(Error::Buffer(format!(
        "data: expected {} bytes on one GPU from {first:#x} on, got the end on GPU {last} and the \
         start on GPU {place}",
        span.len()
    )))
}

/// Memory that CUDA manages, which a capsule claims to be on device 0.
fn managed_by_cuda(address: usize) -> Result<Device> {
    match locate(address)? {
        Some((Kind::Managed, ordinal)) => Ok(Device { kind: DeviceKind::CudaManaged, ordinal }),
        found => Err(Error::Buffer(format!(
            "data: expected an address in memory that CUDA manages, got {address:#x} {}",
            match found {
                Some((Kind::Device, ordinal)) => format!("on GPU {ordinal} alone"),
                Some(_) => "in page-locked memory of the host".into(),
                None => "which CUDA does not know".into(),
            }
        ))),
    }
}

/// The number of the GPU that has an address.
fn ordinal_at(address: usize) -> Result<i32> {
    let place = match locate(address)? {
        Some((Kind::Device | Kind::Managed, ordinal)) => return Ok(ordinal),
        Some((Kind::Pinned, _)) => " in page-locked memory of the host; pass the host's array",
        None => ", which CUDA does not know: memory of the host, or memory that was freed",
    };
    Err(Error::Buffer(format!("data: expected an address on a GPU, got {address:#x}{place}")))
}

//! Checks of memory against what is requested of it.

use super::residence::Residence;
use crate::alloc::check_ranks;
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};
use crate::field::Field;
use crate::layout::falls_along;
use crate::managed::Managed;

/// Refuses a model or a sibling where dlfield cannot allocate: memory of ROCm only passes through.
pub(super) fn check_allocatable(device: Device) -> Result<()> {
    if device.kind != DeviceKind::Rocm {
        return Ok(());
    }
    Err(Error::Device(format!(
        "device: expected the host or a CUDA device, got {device}, where dlfield cannot allocate; \
         request memory of the host, or copy it with the library that made it"
    )))
}

/// Refuses memory that is not on a GPU.
pub(crate) fn check_on_gpu(device: Device) -> Result<()> {
    if Residence::for_memory_on(device) != Residence::Host {
        return Ok(());
    }
    Err(Error::Buffer(format!(
        "device_data: expected memory on a GPU, got memory on {device}; pass it as data"
    )))
}

/// Refuses memory whose strides grow from one requested rank to the next.
pub(super) fn check_order(host: &Managed, ranks: &[i64]) -> Result<()> {
    let layout = host.layout();
    check_ranks(ranks, layout.ndim())?;
    if falls_along(ranks, layout.axes()) {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "layout: expected memory ordered as {ranks:?}, got strides of {:?} elements, which is \
         {:?}; leave the layout open, or make a copy with that layout",
        layout.strides(),
        layout.ranks(&[]).as_slice()
    )))
}

pub(super) fn check_alignment(host: &Managed, field: &Field) -> Result<()> {
    let (layout, alignment) = (host.layout(), field.alignment);
    if alignment <= 1 {
        return Ok(());
    }
    let index = field.aligned_index(layout.ndim());
    if layout.rows_are_on_boundary(host.position(), &index, alignment) {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "alignment_size: expected the element at {:?} of every row on a boundary of {alignment} \
         bytes, got memory at {:#x} with strides of {:?} bytes; leave the alignment open, or make \
         a copy with that alignment",
        index.as_slice(),
        layout.address_of(host.position(), &index),
        layout.byte_strides()
    )))
}

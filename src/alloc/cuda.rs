//! Doing an allocation that a device can use.

use std::sync::Arc;

use super::live::Counted;
use super::plan::Plan;
use crate::cuda::{Arguments, Block, Kind, Stream, Walk, launch, set};
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};
use crate::managed::Managed;

use super::Fill;

/// Allocates what `plan` says: memory of a device, page-locked memory of the host, or managed memory.
/// It is freed when the last reference to it is dropped, in the order of the work on it.
///
/// A fill is put on a stream; it is not waited for.
///
/// # Errors
/// [`Error::OutOfMemory`]; [`Error::Device`] where there is no such device; [`Error::Argument`] where
/// the fill item has not the item size.
pub(crate) fn allocate_for(
    plan: &Plan,
    kind: Kind,
    ordinal: i32,
    fill: Fill<'_>,
) -> Result<Managed> {
    // Blocks begin on a boundary of 256 bytes; another may need room to be moved to.
    let spare = if GRANTED.is_multiple_of(plan.alignment) { 0 } else { plan.alignment };
    let bytes = plan.bytes.checked_add(spare).ok_or(Error::OutOfMemory(plan.bytes))?;
    let block = Block::new(kind, bytes, ordinal)?;
    let start = block.address().next_multiple_of(plan.alignment as u64);
    let timeline = block.timeline();
    let place = match kind {
        Kind::Device => Device { kind: DeviceKind::Cuda, ordinal },
        Kind::Pinned => Device { kind: DeviceKind::CudaHost, ordinal: 0 },
        Kind::Managed => Device { kind: DeviceKind::CudaManaged, ordinal },
    };
    let first = usize::try_from(start).unwrap_or(0).saturating_add(plan.offset);
    let data = std::ptr::with_exposed_provenance_mut(first);
    let owner = Arc::new((block, Counted::new()));
    // SAFETY: the plan says that span and offset lie within plan.bytes, which the block holds from
    // `start` on; it is moved into the owner.
    let managed =
        unsafe { Managed::from_owned(data, plan.layout.clone(), plan.dtype, place, owner) };
    let managed = managed.with_timeline(timeline);
    match fill {
        Fill::Nothing => {}
        Fill::Zeros => fill_span(&managed, &[0; 16], ordinal)?,
        Fill::Item(item) => {
            check_item(item, &managed)?;
            fill_span(&managed, &repeated(item), ordinal)?;
        }
    }
    Ok(managed)
}

const GRANTED: usize = 256;

fn check_item(item: &[u8], managed: &Managed) -> Result<()> {
    if item.len() == managed.dtype().itemsize() {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "fill value: expected {} bytes for {}, got {}",
        managed.dtype().itemsize(),
        managed.dtype(),
        item.len()
    )))
}

/// 16 bytes of an item: every item that there is divides them.
fn repeated(item: &[u8]) -> [u8; 16] {
    std::array::from_fn(|at| item.get(at % item.len().max(1)).copied().unwrap_or(0))
}

/// Writes the pattern over the whole span, padding included. A fresh allocation has no negative
/// strides, so that the span starts at data.
fn fill_span(managed: &Managed, pattern: &[u8; 16], ordinal: i32) -> Result<()> {
    let bytes = managed.span().len();
    let Some(timeline) = managed.timeline().filter(|_| bytes > 0) else {
        return Ok(());
    };
    let stream = Stream::current(ordinal)?;
    timeline.join(stream)?; // WAIT until the memory is there
    let filled = fill_bytes(managed.address() as u64, pattern, bytes, stream);
    timeline.leave(stream)?;
    filled
}

/// The driver fills with up to 4 bytes; longer patterns need a kernel.
fn fill_bytes(target: u64, pattern: &[u8; 16], bytes: usize, stream: Stream) -> Result<()> {
    let repeats =
        |width: usize| pattern.chunks(width).all(|chunk| Some(chunk) == pattern.get(..width));
    let width = [1, 2, 4, 8].into_iter().find(|&width| repeats(width)).unwrap_or(16);
    let count = bytes / width; // whole: a span holds whole items, which are as wide or wider
    if width <= 4 {
        let [a, b, c, d, ..] = *pattern;
        // SAFETY: `bytes` from `target` on belong to the block that is filled, which begins on a
        // boundary; whoever frees it joins the timeline.
        return unsafe { set(target, [a, b, c, d], width, count, stream) };
    }
    let name = if width == 8 { c"dlfield_fill_8" } else { c"dlfield_fill_16" };
    let [low, high] = [0, 8].map(|from| {
        u64::from_ne_bytes(std::array::from_fn(|at| pattern.get(from + at).copied().unwrap_or(0)))
    });
    let (step, count) = (i64::try_from(width).unwrap_or(0), i64::try_from(count).unwrap_or(0));
    let mut arguments = Arguments { target, value: [low, high], dims: 1, ..Arguments::default() };
    arguments.walks[0] = Walk { count, source: 0, target: step };
    let blocks = u32::try_from(count / 256 + 1).unwrap_or(u32::MAX).min(1 << 16);
    // SAFETY: as above; the kernel writes `count` times `width` bytes from `target` on.
    unsafe { launch(name, (blocks, [256, 1]), &arguments, stream) }
}

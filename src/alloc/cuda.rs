//! Allocates memory that a device can use.

use super::host::{Fill, check_item};
use super::live::Counted;
use super::plan::Plan;
use crate::cuda::{Arguments, Block, Kind, Stream, Walk, launch, set};
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};
use crate::managed::{Managed, Owner};

/// Allocates memory by `plan`: device memory, page-locked host memory, or managed memory. It is
/// freed when the last reference is dropped, ordered after the work on it.
///
/// A fill is enqueued on a stream and not waited for.
///
/// # Errors
/// [`Error::OutOfMemory`]; [`Error::Device`] if there is no such device; [`Error::Argument`] if the
/// fill item has another size.
pub(crate) fn allocate_for(
    plan: &Plan,
    kind: Kind,
    ordinal: i32,
    fill: Fill<'_>,
) -> Result<Managed> {
    // A larger alignment than that of blocks needs room to move the start.
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
    let owner = Owner::new((block, Counted::new()));
    // SAFETY: the plan keeps offset and span within plan.bytes, which the block holds from `start`
    // on. The owner keeps the block alive.
    let managed =
        unsafe { Managed::from_owned(data, plan.layout.clone(), plan.dtype, place, owner) };
    let managed = managed.with_timeline(timeline);
    let item = match fill {
        Fill::Nothing => return Ok(managed),
        Fill::Zeros => &[0],
        Fill::Item(item) => check_item(item, plan.dtype).map(|()| item)?,
    };
    // Repeated to 16 bytes, a multiple of every item size.
    let pattern = std::array::from_fn(|at| item.get(at % item.len()).copied().unwrap_or(0));
    fill_span(&managed, &pattern, ordinal)?;
    Ok(managed)
}

/// Alignment in bytes that the driver guarantees for a block.
const GRANTED: usize = 256;

/// Writes the pattern over the whole span, padding included. Without negative strides, the span of
/// a fresh allocation starts at its data.
fn fill_span(managed: &Managed, pattern: &[u8; 16], ordinal: i32) -> Result<()> {
    let bytes = managed.layout().span().len();
    let Some(timeline) = managed.timeline().filter(|_| bytes > 0) else {
        return Ok(());
    };
    let stream = Stream::current(ordinal)?;
    timeline.join(stream)?; // WAIT until the memory is there
    let filled = fill_bytes(managed.position() as u64, pattern, bytes, stream);
    timeline.leave(stream)?;
    filled
}

/// Fills with the driver for patterns of up to 4 bytes, with a kernel for longer ones.
fn fill_bytes(target: u64, pattern: &[u8; 16], bytes: usize, stream: Stream) -> Result<()> {
    let repeats =
        |width: usize| pattern.chunks(width).all(|chunk| Some(chunk) == pattern.get(..width));
    let width = [1, 2, 4, 8].into_iter().find(|&width| repeats(width)).unwrap_or(16);
    let count = bytes / width; // exact: a span is a multiple of the item size, and so of `width`
    if width <= 4 {
        let [a, b, c, d, ..] = *pattern;
        // SAFETY: the block holds `bytes` bytes from the aligned address `target` on; freeing it
        // joins the timeline, and so comes after the fill.
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
    // SAFETY: as for `set`: the kernel writes `count` times `width` bytes from `target` on.
    unsafe { launch(name, (blocks, [256, 1]), &arguments, stream) }
}

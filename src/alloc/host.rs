//! Doing an allocation in host memory.
//!
//! Small fields come from the heap, large ones from the system in huge pages: touching 40 MB for
//! the first time is about ten times faster in pages of 2 MiB than of 4 KiB. Both give zeros
//! without writing them: `calloc` knows what is fresh, and mapped pages are zero until touched.

use std::alloc::Layout as HeapLayout;
use std::ptr::NonNull;
use std::sync::Arc;

use super::live::Counted;
use super::plan::Plan;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::managed::Managed;

/// From this size on memory is mapped; NumPy asks for huge pages from the same size on.
#[cfg(unix)]
const MAP_FROM: usize = 4 << 20;

/// Size of a huge page on the platforms GT4Py runs on.
#[cfg(unix)]
const HUGE_PAGE: usize = 2 << 20;

/// What fresh memory holds.
#[derive(Debug, Clone, Copy)]
pub enum Fill<'a> {
    /// Anything: nothing is written.
    Nothing,
    /// Zeros: nothing is written where the system hands out zeros.
    Zeros,
    /// This item in every element (and in the padding).
    Item(&'a [u8]),
}

/// Allocates what `plan` says. The memory is freed when the last reference to it is dropped.
///
/// # Errors
/// [`Error::OutOfMemory`]; [`Error::Argument`] where the fill item has not the item size.
pub(crate) fn allocate(plan: &Plan, fill: Fill<'_>) -> Result<Managed> {
    let memory = HostMemory::new(plan.bytes, plan.alignment, matches!(fill, Fill::Zeros))?;
    let data = memory.start.as_ptr().wrapping_byte_add(plan.offset);
    // SAFETY: the plan says that span and offset lie within plan.bytes, which `memory` holds from
    // `start` on; it is moved into the owner.
    let managed = unsafe {
        Managed::from_owned(data, plan.layout.clone(), plan.dtype, Device::CPU, Arc::new(memory))
    };
    if let Fill::Item(item) = fill {
        fill_span(&managed, item)?;
    }
    Ok(managed)
}

/// An owned block of host memory.
struct HostMemory {
    /// First byte that satisfies the alignment.
    start: NonNull<u8>,
    block: Block,
    _counted: Counted,
}

enum Block {
    Heap(NonNull<u8>, HeapLayout),
    #[cfg(unix)]
    Mapped(NonNull<u8>, usize),
}

// SAFETY: plain memory, owned by this value alone; freeing it needs no particular thread.
unsafe impl Send for HostMemory {}
// SAFETY: shared access reads two addresses.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    fn new(bytes: usize, alignment: usize, zeroed: bool) -> Result<Self> {
        #[cfg(unix)]
        if bytes >= MAP_FROM {
            return map(bytes, alignment);
        }
        from_heap(bytes, alignment, zeroed)
    }

    fn of(start: NonNull<u8>, block: Block) -> Self {
        Self { start, block, _counted: Counted::new() }
    }
}

/// More memory than asked for, so that the start can be moved to a boundary. Asking the heap for
/// the boundary itself would make it write zeros where `calloc` need not.
fn padded(bytes: usize, alignment: usize) -> Result<usize> {
    bytes
        .checked_add(alignment)
        .filter(|&total| isize::try_from(total).is_ok())
        .ok_or(Error::OutOfMemory(bytes))
}

fn align_up(block: NonNull<u8>, alignment: usize) -> NonNull<u8> {
    let past = block.addr().get() % alignment;
    let step = if past == 0 { 0 } else { alignment - past };
    block.map_addr(|address| address.saturating_add(step))
}

fn from_heap(bytes: usize, alignment: usize, zeroed: bool) -> Result<HostMemory> {
    let total = padded(bytes, alignment)?;
    let layout = HeapLayout::from_size_align(total, 16).map_err(|_| Error::OutOfMemory(bytes))?;
    let block = if zeroed {
        // SAFETY: the size is not 0, since an alignment is at least 1.
        unsafe { std::alloc::alloc_zeroed(layout) }
    } else {
        // SAFETY: as above.
        unsafe { std::alloc::alloc(layout) }
    };
    let block = NonNull::new(block).ok_or(Error::OutOfMemory(bytes))?;
    Ok(HostMemory::of(align_up(block, alignment), Block::Heap(block, layout)))
}

/// A multiple of the alignment, and of the huge page where that costs little address space.
#[cfg(unix)]
fn boundary(alignment: usize) -> usize {
    let odd = alignment >> alignment.trailing_zeros();
    match odd {
        1 => alignment.max(HUGE_PAGE), // both are powers of two
        2..=64 => odd * HUGE_PAGE.max(alignment / odd),
        _ => alignment,
    }
}

#[cfg(unix)]
fn map(bytes: usize, alignment: usize) -> Result<HostMemory> {
    let boundary = boundary(alignment);
    let total = padded(bytes, boundary)?;
    let (protection, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: an anonymous mapping at an address of the system's choice touches nothing that exists.
    let block = unsafe { libc::mmap(std::ptr::null_mut(), total, protection, kind, -1, 0) };
    let block = NonNull::new(block.cast::<u8>()).filter(|_| block != libc::MAP_FAILED);
    let block = block.ok_or(Error::OutOfMemory(bytes))?;
    let start = align_up(block, boundary);
    advise_huge(start, bytes);
    Ok(HostMemory::of(start, Block::Mapped(block, total)))
}

#[cfg(target_os = "linux")]
fn advise_huge(start: NonNull<u8>, bytes: usize) {
    let from = align_up(start, HUGE_PAGE);
    let skipped = from.addr().get() - start.addr().get();
    let Some(length) = bytes.checked_sub(skipped) else { return };
    // SAFETY: `length` bytes from `from` on lie in the mapping, which has `bytes` from `start` on.
    // The call changes how pages are made, not what they hold; where the system refuses, pages
    // are small.
    unsafe { libc::madvise(from.as_ptr().cast(), length, libc::MADV_HUGEPAGE) };
}

#[cfg(all(unix, not(target_os = "linux")))]
fn advise_huge(_start: NonNull<u8>, _bytes: usize) {}

impl Drop for HostMemory {
    fn drop(&mut self) {
        match self.block {
            Block::Heap(block, layout) => {
                // SAFETY: `block` came from the heap with this layout (from_heap), freed once here.
                unsafe { std::alloc::dealloc(block.as_ptr(), layout) };
            }
            #[cfg(unix)]
            Block::Mapped(block, total) => {
                // SAFETY: `block` is a mapping of `total` bytes (map), unmapped once here.
                unsafe { libc::munmap(block.as_ptr().cast(), total) };
            }
        }
    }
}

/// Writes `item` over the whole span, padding included.
fn fill_span(managed: &Managed, item: &[u8]) -> Result<()> {
    if item.len() != managed.dtype().itemsize() {
        return Err(Error::Argument(format!(
            "fill value: expected {} bytes for {}, got {}",
            managed.dtype().itemsize(),
            managed.dtype(),
            item.len()
        )));
    }
    // SAFETY: a fresh allocation has no negative strides, so its span starts at data; it was made
    // by this file's caller just now and nobody else holds it. Any byte pattern is a valid u8.
    let span = unsafe {
        std::slice::from_raw_parts_mut(
            managed.data().cast::<std::mem::MaybeUninit<u8>>(),
            managed.span().len(),
        )
    };
    fill_bytes(span, item);
    Ok(())
}

/// Repeats `item` by copying a block that stays in the first-level cache.
fn fill_bytes(span: &mut [std::mem::MaybeUninit<u8>], item: &[u8]) {
    const BLOCK: usize = 16 << 10;
    let seed: Vec<std::mem::MaybeUninit<u8>> = item
        .iter()
        .copied()
        .cycle()
        .take(BLOCK.min(span.len()))
        .map(std::mem::MaybeUninit::new)
        .collect();
    for part in span.chunks_mut(BLOCK) {
        part.copy_from_slice(&seed[..part.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::plan;
    use super::*;
    use crate::dtype::DType;

    fn allocated(shape: &[i64], fill: Fill<'_>) -> Managed {
        let ranks: Vec<i64> = (0..3).take(shape.len()).collect();
        allocate(&plan(shape, DType::Float64, &ranks, 1, &[]).unwrap(), fill).unwrap()
    }

    fn bytes(managed: &Managed) -> &[u8] {
        // SAFETY: an unpadded allocation of this test, filled over its whole span.
        unsafe { std::slice::from_raw_parts(managed.data(), managed.span().len()) }
    }

    #[test]
    fn the_first_element_lies_on_a_cache_line_at_every_size() {
        for extent in [0, 1, 7, 1000, (4 << 20) / 8 - 1, (4 << 20) / 8, 6_000_000] {
            assert!(allocated(&[extent], Fill::Nothing).address().is_multiple_of(64), "{extent}");
        }
    }

    #[test]
    fn an_alignment_that_is_no_power_of_two_holds_in_mapped_memory_too() {
        for alignment in [24, 40, 8 * 67, 3 << 21] {
            let plan = plan(&[700_000], DType::Float64, &[0], alignment, &[0]).unwrap();
            let field = allocate(&plan, Fill::Zeros).unwrap();
            assert!(field.address().is_multiple_of(alignment), "{alignment}");
        }
    }

    #[test]
    fn zeros_are_zero_and_items_are_repeated_on_both_sides_of_the_mapping_threshold() {
        for extent in [3, 5000, 700_000] {
            assert!(bytes(&allocated(&[extent], Fill::Zeros)).iter().all(|&byte| byte == 0));
            let filled = allocated(&[extent], Fill::Item(&2.5_f64.to_ne_bytes()));
            assert!(bytes(&filled).chunks(8).all(|item| item == 2.5_f64.to_ne_bytes()));
        }
    }

    #[test]
    fn four_gibibytes_of_zeros_touch_no_page() {
        let field = allocated(&[1024, 1024, 512], Fill::Zeros);
        assert_eq!(field.span().len(), 4 << 30);
    }

    #[test]
    fn more_than_the_system_has_is_out_of_memory() {
        let plan = plan(&[1 << 59], DType::Float64, &[0], 1, &[]).unwrap();
        assert_eq!(allocate(&plan, Fill::Nothing).unwrap_err(), Error::OutOfMemory(1 << 62));
    }

    #[test]
    fn a_fill_item_of_the_wrong_size_is_refused() {
        let plan = plan(&[4], DType::Float64, &[0], 1, &[]).unwrap();
        assert!(allocate(&plan, Fill::Item(&[0; 4])).is_err());
    }
}

//! Doing an allocation in host memory.
//!
//! Small fields come from the heap, large ones from the system in huge pages: touching 40 MB for
//! the first time is about ten times faster in pages of 2 MiB than of 4 KiB. Both give zeros
//! without writing them: `calloc` knows what is fresh, and mapped pages are zero until touched.

use std::alloc::Layout as HeapLayout;
use std::ptr::NonNull;
use std::sync::Arc;

use super::fill::fill_span;
use super::live::Counted;
use super::mapped::Mapped;
use super::place::{MOST, align_up, moved, padded, stagger};
use super::plan::Plan;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::managed::Managed;

/// From this size on memory is mapped; NumPy asks for huge pages from the same size on.
const MAP_FROM: usize = 4 << 20;

/// What fresh memory holds.
#[derive(Debug, Clone, Copy)]
pub enum Fill<'a> {
    /// Anything: nothing is written. Each element has some value, which stays as it is until it is written.
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
    match fill {
        Fill::Item(item) => fill_span(&managed, item)?,
        Fill::Nothing => settle(data),
        Fill::Zeros => {}
    }
    Ok(managed)
}

/// From here on fresh memory holds some bytes: any, but the same each time they are read. Typed views of it rely on
/// that; to the compiler memory that nobody has written has no values at all. It cannot look into this, and has to
/// take it for code that might have written them.
fn settle(memory: *mut u8) {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: no instruction; nothing is clobbered.
    unsafe {
        std::arch::asm!("/* {0} */", in(reg) memory, options(nostack, preserves_flags));
    };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    std::hint::black_box(memory);
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
    Mapped(#[expect(dead_code, reason = "held until the memory goes")] Mapped),
}

// SAFETY: plain memory, owned by this value alone; freeing it needs no particular thread.
unsafe impl Send for HostMemory {}
// SAFETY: shared access reads two addresses.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    fn new(bytes: usize, alignment: usize, zeroed: bool) -> Result<Self> {
        let further = stagger(bytes, alignment);
        if bytes >= MAP_FROM && cfg!(unix) {
            let block = Mapped::new(padded(bytes, MOST)?, alignment, zeroed)
                .map_err(|_| Error::OutOfMemory(bytes))?;
            let start = moved(block.start(), further);
            return Ok(Self::of(start, Block::Mapped(block)));
        }
        from_heap(bytes, alignment, zeroed, further)
    }

    fn of(start: NonNull<u8>, block: Block) -> Self {
        Self { start, block, _counted: Counted::new() }
    }
}

/// More memory than asked for: asking the heap for the boundary itself would make it write zeros where
/// `calloc` need not.
fn from_heap(bytes: usize, alignment: usize, zeroed: bool, further: usize) -> Result<HostMemory> {
    let total = padded(bytes, alignment + further)?;
    let layout = HeapLayout::from_size_align(total, 16).map_err(|_| Error::OutOfMemory(bytes))?;
    let block = if zeroed {
        // SAFETY: the size is not 0, since an alignment is at least 1.
        unsafe { std::alloc::alloc_zeroed(layout) }
    } else {
        // SAFETY: as above.
        unsafe { std::alloc::alloc(layout) }
    };
    let block = NonNull::new(block).ok_or(Error::OutOfMemory(bytes))?;
    let start = moved(align_up(block, alignment), further);
    Ok(HostMemory::of(start, Block::Heap(block, layout)))
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if let Block::Heap(block, layout) = self.block {
            // SAFETY: `block` came from the heap with this layout (from_heap), freed once here.
            unsafe { std::alloc::dealloc(block.as_ptr(), layout) };
        }
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

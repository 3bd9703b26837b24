//! Allocates host memory, and fills it.
//!
//! Small fields come from the heap, large ones from the system in huge pages. Both provide zeros
//! without writing them: `calloc` knows which memory is fresh, and mapped pages are zero until they
//! are touched.

use std::alloc::Layout as HeapLayout;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use super::live::Counted;
use super::mapped::Mapped;
use super::place::{MOST, align_up, moved, padded, stagger};
use super::plan::Plan;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::managed::{Managed, Owner};
use crate::threads::share;

/// Size in bytes from which memory is mapped. NumPy requests huge pages from the same size on.
const MAP_FROM: usize = 4 << 20;

/// Bytes of the repeated pattern: it stays in the first-level cache. A multiple of every item size.
const PATTERN: usize = 16 << 10;

/// Bytes of a task: a huge page, so that two threads never fault in the same one.
const TASK: usize = 2 << 20;

/// Content of fresh memory.
#[derive(Debug, Clone, Copy)]
pub enum Fill<'a> {
    /// Unspecified: nothing is written. Each element has some value, which stays until it is
    /// written.
    Nothing,
    /// Zeros. Nothing is written if the system provides zeros.
    Zeros,
    /// The bytes of one item, for every element (and the padding).
    Item(&'a [u8]),
}

/// Allocates memory by `plan`. It is freed when the last reference is dropped.
///
/// # Errors
/// [`Error::OutOfMemory`]; [`Error::Argument`] if the fill item has another size.
pub(crate) fn allocate(plan: &Plan, fill: Fill<'_>) -> Result<Managed> {
    let memory = HostMemory::new(plan.bytes, plan.alignment, matches!(fill, Fill::Zeros))?;
    let data = memory.start.as_ptr().wrapping_byte_add(plan.offset);
    // SAFETY: the plan keeps offset and span within plan.bytes, which `memory` holds from `start`
    // on. The owner keeps `memory` alive.
    let managed = unsafe {
        Managed::from_owned(data, plan.layout.clone(), plan.dtype, Device::CPU, Owner::new(memory))
    };
    match fill {
        Fill::Item(item) => fill_span(&managed, item)?,
        Fill::Nothing => settle(data),
        Fill::Zeros => {}
    }
    Ok(managed)
}

/// Makes fresh memory initialised for the compiler: its bytes are arbitrary, but the same each time
/// they are read, which typed views rely on. The compiler cannot look into this code, and must
/// assume that it writes the memory.
fn settle(memory: *mut u8) {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: emits no instruction and clobbers nothing.
    unsafe {
        std::arch::asm!("/* {0} */", in(reg) memory, options(nostack, preserves_flags));
    };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    std::hint::black_box(memory);
}

/// Writes `item` over the whole span of a fresh allocation, padding included.
///
/// # Errors
/// [`Error::Argument`] for an item of another size.
pub(super) fn fill_span(managed: &Managed, item: &[u8]) -> Result<()> {
    check_item(item, managed.dtype())?;
    let bytes = managed.layout().span().len();
    let seed = item.repeat(PATTERN.min(bytes).div_ceil(item.len().max(1)));
    let seed: Vec<_> = seed.into_iter().map(MaybeUninit::new).collect();
    share(bytes.div_ceil(TASK), bytes, |range| {
        let from = range.start * TASK;
        let length = bytes.min(range.end * TASK).saturating_sub(from);
        let start = managed.start().cast::<MaybeUninit<u8>>().wrapping_add(from);
        // SAFETY: inside the span, which begins at the data of a fresh allocation. Nobody else has
        // it yet, and `share` gives disjoint ranges to its threads. MaybeUninit needs no
        // initialised bytes.
        let part = unsafe { std::slice::from_raw_parts_mut(start, length) };
        for block in part.chunks_mut(PATTERN) {
            block.copy_from_slice(&seed[..block.len()]);
        }
    });
    Ok(())
}

/// Refuses a fill item of another size.
///
/// # Errors
/// [`Error::Argument`].
pub(super) fn check_item(item: &[u8], dtype: DType) -> Result<()> {
    if item.len() == dtype.itemsize() {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "fill value: expected {} bytes for {dtype}, got {}",
        dtype.itemsize(),
        item.len()
    )))
}

/// An owned block of host memory.
struct HostMemory {
    /// First aligned byte.
    start: NonNull<u8>,
    backing: Backing,
    _counted: Counted,
}

enum Backing {
    Heap(NonNull<u8>, HeapLayout),
    System(#[expect(dead_code, reason = "unmapped when it is dropped")] Mapped),
}

// SAFETY: plain memory with a single owner, which any thread may free.
unsafe impl Send for HostMemory {}
// SAFETY: shared access only reads two addresses.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    fn new(bytes: usize, alignment: usize, zeroed: bool) -> Result<Self> {
        let further = stagger(bytes, alignment);
        let (aligned, backing) = if bytes >= MAP_FROM && cfg!(unix) {
            let block = Mapped::new(padded(bytes, MOST)?, alignment, zeroed)
                .map_err(|_| Error::OutOfMemory(bytes))?;
            (block.start(), Backing::System(block))
        } else {
            // More than needed, aligned here: if the heap had to align the start, it would write
            // zeros that `calloc` need not write.
            let (block, layout) = heap_block(bytes, alignment + further, zeroed)?;
            (align_up(block, alignment), Backing::Heap(block, layout))
        };
        Ok(Self { start: moved(aligned, further), backing, _counted: Counted::new() })
    }
}

fn heap_block(bytes: usize, more: usize, zeroed: bool) -> Result<(NonNull<u8>, HeapLayout)> {
    let layout = HeapLayout::from_size_align(padded(bytes, more)?, 16)
        .map_err(|_| Error::OutOfMemory(bytes))?;
    let block = if zeroed {
        // SAFETY: the size is not 0, because an alignment is at least 1.
        unsafe { std::alloc::alloc_zeroed(layout) }
    } else {
        // SAFETY: the size is not 0, as above.
        unsafe { std::alloc::alloc(layout) }
    };
    Ok((NonNull::new(block).ok_or(Error::OutOfMemory(bytes))?, layout))
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if let Backing::Heap(block, layout) = self.backing {
            // SAFETY: heap_block made `block` with this layout; this is the only place that frees
            // it.
            unsafe { std::alloc::dealloc(block.as_ptr(), layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::plan;
    use super::*;

    fn allocated(shape: &[i64], fill: Fill<'_>) -> Managed {
        let ranks: Vec<i64> = (0..3).take(shape.len()).collect();
        allocate(&plan(shape, DType::Float64, &ranks, 1, &[]).unwrap(), fill).unwrap()
    }

    fn bytes(managed: &Managed) -> &[u8] {
        // SAFETY: the tests fill the whole span, which has no padding.
        unsafe { std::slice::from_raw_parts(managed.data(), managed.layout().span().len()) }
    }

    #[test]
    fn the_first_element_starts_a_cache_line_at_every_size() {
        for extent in [0, 1, 7, 1000, (4 << 20) / 8 - 1, (4 << 20) / 8, 6_000_000] {
            assert!(allocated(&[extent], Fill::Nothing).address().is_multiple_of(64), "{extent}");
        }
    }

    #[test]
    fn an_alignment_that_is_not_a_power_of_two_holds_in_mapped_memory_too() {
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
        assert_eq!(field.layout().span().len(), 4 << 30);
    }

    #[test]
    fn a_request_beyond_the_system_s_memory_is_out_of_memory() {
        let plan = plan(&[1 << 59], DType::Float64, &[0], 1, &[]).unwrap();
        assert_eq!(allocate(&plan, Fill::Nothing).unwrap_err(), Error::OutOfMemory(1 << 62));
    }

    #[test]
    fn a_fill_item_of_another_size_is_refused() {
        let plan = plan(&[4], DType::Float64, &[0], 1, &[]).unwrap();
        assert!(allocate(&plan, Fill::Item(&[0; 4])).is_err());
    }
}

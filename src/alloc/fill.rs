//! Writing one item over fresh memory.

use std::mem::MaybeUninit;

use crate::error::{Error, Result};
use crate::managed::Managed;
use crate::threads::share;

/// Repeated from a block that stays in the first cache. A multiple of every item size.
const BLOCK: usize = 16 << 10;

/// Bytes of a task: a huge page, so that no two threads wait for the same one.
const TASK: usize = 2 << 20;

/// Writes `item` over the whole span, padding included.
///
/// # Errors
/// [`Error::Argument`] for an item of another size.
pub(super) fn fill_span(managed: &Managed, item: &[u8]) -> Result<()> {
    if item.len() != managed.dtype().itemsize() {
        return Err(Error::Argument(format!(
            "fill value: expected {} bytes for {}, got {}",
            managed.dtype().itemsize(),
            managed.dtype(),
            item.len()
        )));
    }
    let span = Span(managed.data().cast(), managed.span().len());
    let seed = item.repeat(BLOCK.min(span.1).div_ceil(item.len().max(1)));
    let seed: Vec<_> = seed.into_iter().map(MaybeUninit::new).collect();
    share(span.1.div_ceil(TASK), span.1, |range| {
        let from = range.start * TASK;
        let length = span.1.min(range.end * TASK).saturating_sub(from);
        // SAFETY: a part of the span that is this thread's alone.
        let part = unsafe { span.part(from, length) };
        for block in part.chunks_mut(BLOCK) {
            block.copy_from_slice(&seed[..block.len()]);
        }
    });
    Ok(())
}

/// The bytes of a fresh allocation: it has no negative strides, so that they begin at its data. Nobody
/// else has it yet.
#[derive(Clone, Copy)]
struct Span(*mut MaybeUninit<u8>, usize);

// SAFETY: an address; threads have different parts of what is there.
unsafe impl Sync for Span {}

impl Span {
    /// # Safety
    /// A part of the span that nobody else has meanwhile.
    unsafe fn part<'a>(self, from: usize, length: usize) -> &'a mut [MaybeUninit<u8>] {
        // SAFETY: inside the allocation, by the caller's promise; any bytes are values.
        unsafe { std::slice::from_raw_parts_mut(self.0.wrapping_add(from), length) }
    }
}

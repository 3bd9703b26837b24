//! Fills fresh memory with one item.

use std::mem::MaybeUninit;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::managed::Managed;
use crate::threads::share;

/// Bytes of the repeated pattern: it stays in the first-level cache. A multiple of every item size.
const PATTERN: usize = 16 << 10;

/// Bytes of a task: a huge page, so that two threads never fault in the same one.
const TASK: usize = 2 << 20;

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

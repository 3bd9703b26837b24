//! Copies in every way that this processor has, for fuzz targets.

use super::super::plan::plan;
use super::copying::Copying;
use super::kernels::Level;
use super::way::way;
use crate::error::Result;
use crate::layout::Layout;
use crate::threads::share;

/// Copies in the way with this number: with one kind of registers, through the caches or past them.
/// Returns false if there are fewer ways.
///
/// # Errors
/// [`crate::error::Error::Argument`] if shapes or item sizes differ.
///
/// # Safety
/// The elements of both layouts are there, with the first ones at these addresses, and no other code
/// uses them meanwhile. The target has an element for every index, and shares no byte with the source.
pub(crate) unsafe fn copy_by(
    number: usize,
    (from, source): (&Layout, *const u8),
    (to, target): (&Layout, *mut u8),
) -> Result<bool> {
    let plan = plan(from, to)?;
    let Some(level) = Level::all().nth(number / 2) else { return Ok(false) };
    let bytes = from.nbytes();
    if bytes > 0 {
        let copying = Copying { source, target, bytes, level };
        let prepared = copying.prepare(way(plan), number % 2 == 1);
        share(prepared.count(), bytes, |tasks| {
            // SAFETY: the tasks reach exactly the elements of both, which the caller guarantees to be
            // there for this copy alone; `share` gives each task to one thread.
            unsafe { prepared.carry_out(tasks) };
        });
    }
    Ok(true)
}

//! Carries out a copy between two fields in host memory.
//!
//! ```text
//! way: runs or planes ──▶ copying: tasks (walk), shared by threads ──▶ kernels: lines in registers
//! ```
//!
//! The cost of a copy is the memory traffic, so the order of accesses is what matters: sources are
//! read along few long streams and prefetched; targets larger than the cache are written in whole
//! lines past the caches, without reading them first.

mod way;
mod walk;
mod registers;
mod transpose;
mod kernels;
mod past_caches;
mod copying;

use copying::Copying;
use kernels::Level;
use past_caches::goes_past;
use way::way;

use super::plan::plan;
use crate::error::Result;
use crate::managed::Managed;

/// Copies every element of `source` to the same index of `target`.
///
/// # Errors
/// [`crate::error::Error::Argument`] if shapes differ.
///
/// # Safety
/// Both are host memory of one type and share no byte. During the copy, nothing else reads or
/// writes the elements of `target`, or writes those of `source`.
pub(super) unsafe fn copy(source: &Managed, target: &Managed) -> Result<()> {
    let plan = plan(source.layout(), target.layout())?;
    let bytes = source.layout().nbytes();
    if bytes > 0 {
        let level = Level::best();
        let copy = Copying { source: source.start(), target: target.start(), bytes, level };
        // SAFETY: the plan reaches exactly the elements of both layouts, which Managed guarantees
        // to be valid memory. The caller excludes other accesses.
        unsafe { copy.go(way(plan), goes_past(bytes)) };
    }
    Ok(())
}

/// Looks up constants of the process. A fork during the lookup would leave it half done.
pub(crate) fn settle() {
    goes_past(0);
}

#[cfg(test)]
mod tests;

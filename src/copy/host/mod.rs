//! Carries out a copy between two fields in host memory.
//!
//! ```text
//! way: runs or planes ──▶ copying: tasks (walk) ──▶ runs, kernels: lines in registers
//! ```
//!
//! The cost of a copy is the memory traffic, so the order of accesses is what matters: sources are
//! read along few long streams and prefetched. Large targets are written through the caches, or in
//! whole lines past them, without reading them first: which is faster is `learnt`.

mod way;
mod walk;
mod registers;
mod transpose;
mod stream;
mod kernels;
mod past_caches;
mod learnt;
mod buffer;
mod runs;
mod copying;
#[cfg(fuzzing)]
mod fuzzed;

use copying::Copying;
pub(super) use copying::Prepared;
#[cfg(fuzzing)]
pub(crate) use fuzzed::copy_by;
use kernels::Level;
use learnt::{Asked, Timed};
pub(crate) use learnt::{Learnt, VARIABLE, fixed, learnt, read};
use past_caches::last_cache;
use transpose::LINE;
use way::way;

use super::plan::plan;
use crate::error::Result;
use crate::managed::Managed;
use crate::threads::share;

/// Copies every element of `source` to the same index of `target`.
///
/// # Errors
/// [`crate::error::Error::Argument`] if shapes differ.
///
/// # Safety
/// Both are host memory of one type and share no byte. During the copy, nothing else reads or
/// writes the elements of `target`, or writes those of `source`.
pub(super) unsafe fn copy(source: &Managed, target: &Managed) -> Result<()> {
    let mut timed = None;
    let choose = |asked| {
        timed = Timed::begin(asked);
        timed.as_ref().map_or_else(|| learnt::goes_past(asked), |timed| timed.past_caches)
    };
    if let Some(prepared) = prepare_by(source, target, choose)? {
        share(prepared.count(), prepared.bytes(), |tasks| {
            // SAFETY: the tasks reach exactly the elements of both (prepare), which Managed
            // guarantees to be valid memory; `share` gives these to this thread only. The caller
            // excludes other accesses.
            unsafe { prepared.carry_out(tasks) };
        });
    }
    if let Some(timed) = timed {
        timed.end();
    }
    Ok(())
}

/// Divides the copy of every element of `source` to the same index of `target` into tasks; `None`
/// if there are no elements.
///
/// # Errors
/// [`crate::error::Error::Argument`] if shapes differ.
pub(super) fn prepare(source: &Managed, target: &Managed) -> Result<Option<Prepared>> {
    prepare_by(source, target, learnt::goes_past)
}

/// The same; `choose` says whether the copy goes past the caches.
fn prepare_by(
    source: &Managed,
    target: &Managed,
    choose: impl FnOnce(Asked) -> bool,
) -> Result<Option<Prepared>> {
    let plan = plan(source.layout(), target.layout())?;
    let bytes = source.layout().nbytes();
    let (source, target, level) = (source.start(), target.start(), Level::best());
    let copying = Copying { source, target, bytes, level };
    let way = way(plan);
    let past_caches = choose(Asked::of(&way, bytes, target.addr() % LINE));
    Ok((bytes > 0).then(|| copying.prepare(way, past_caches)))
}

/// Name of the registers that copies use on this processor.
pub(crate) fn registers() -> &'static str {
    Level::best().name()
}

/// Looks up constants of the process. A fork during the lookup would leave it half done.
pub(crate) fn settle() {
    last_cache();
    fixed();
}

#[cfg(test)]
pub(super) mod tests;

//! Memory: the same values into another layout or onto another device. Types are never converted.
//!
//! ```text
//! plan: the fewest loops ──▶ host: runs of bytes
//!                       └──▶ route: moves of the driver, a kernel, or a detour ──▶ cuda
//! ```
//!
//! `plan` and `route` decide (pure), `host` and `cuda` do.

mod plan;
mod host;
mod route;
mod cuda;

use crate::error::{Error, Result};
use crate::layout::may_overlap;
use crate::managed::Managed;

/// Copies every element of `source` to the same index of `target`. Nothing is converted.
///
/// Where a device takes part, the copy is put on its stream ([`crate::cuda::Stream::current`]), after
/// all work on both that is known of; it is waited for only where a side is host memory that dlfield
/// has not made itself, whose users cannot know of it.
///
/// # Errors
/// [`Error::Argument`] where shapes or types differ; [`Error::Buffer`] where `target` is read-only,
/// a side cannot be reached, or the two share memory; [`Error::Device`] for what CUDA refuses.
///
/// # Safety
/// Nobody else reads or writes the elements of `target`, or writes those of `source`, meanwhile, but
/// work that their timelines know of.
pub(crate) unsafe fn copy(source: &Managed, target: &Managed) -> Result<()> {
    check(source, target)?;
    if cuda::takes_part(source, target) {
        // SAFETY: checked; the caller's promise.
        return unsafe { cuda::copy(source, target) };
    }
    source.wait()?; // WAIT for what is written to host memory
    // SAFETY: checked, both in host memory. Nothing is written to the source any more, and who has the
    // target for the host has waited for what is in flight on it (Buffers::on_host).
    unsafe { host::copy(source, target) }
}

/// Finds out what does not change while the process runs: who forks meanwhile would find it half done.
#[cfg(feature = "python")]
pub(crate) fn settle() {
    host::settle();
}

fn check(source: &Managed, target: &Managed) -> Result<()> {
    if source.dtype() != target.dtype() {
        return Err(Error::Argument(format!(
            "copy: expected {}, got {}",
            target.dtype(),
            source.dtype()
        )));
    }
    let reached = |side: &Managed| side.device().is_host() || cuda::reaches(side);
    if target.readonly() || !reached(source) || !reached(target) {
        return Err(Error::Buffer(format!(
            "copy: expected memory of the host or of CUDA devices and a writable target, got {} into {}{}",
            source.device(),
            target.device(),
            if target.readonly() { " (read-only)" } else { "" }
        )));
    }
    if may_overlap(source.layout(), source.address(), target.layout(), target.address()) {
        return Err(Error::Buffer(
            "copy: expected separate memory, got fields that overlap".into(),
        ));
    }
    Ok(())
}

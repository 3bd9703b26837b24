//! Memory: copies of values into another layout or onto another device. Types are not converted.
//!
//! ```text
//! plan: the fewest loops ──▶ host: runs of bytes
//!                       └──▶ route: moves of the driver, a kernel, or a detour ──▶ cuda
//! ```
//!
//! `plan` and `route` decide (pure), `host` and `cuda` carry out. `batch` has many copies on the
//! host, which are planned once.

mod plan;
mod host;
mod batch;
mod route;
mod cuda;

pub(crate) use batch::{HostBatch, first_overlap};
#[cfg(fuzzing)]
pub(crate) use host::copy_by;
pub(crate) use host::{
    Learnt, VARIABLE, fixed as fixed_way, learnt, read as read_way, registers, settle,
};

use crate::error::{Error, Result};
use crate::managed::Managed;

/// Copies every element of `source` to the same index of `target`. Nothing is converted.
///
/// If a device takes part, the copy is enqueued on its stream ([`crate::cuda::Stream::current`])
/// after all known work on both. The host waits for the copy only if a side is foreign host memory,
/// whose users do not know of it.
///
/// # Errors
/// [`Error::Argument`] if shapes or types differ; [`Error::Buffer`] if `target` is read-only, a
/// side is out of reach, or the two overlap; [`Error::Device`] if CUDA fails.
///
/// # Safety
/// During the copy, nothing else reads or writes the elements of `target`, or writes those of
/// `source`, except work in their timelines.
pub(crate) unsafe fn copy(source: &Managed, target: &Managed) -> Result<()> {
    check(source, target)?;
    if cuda::takes_part(source, target) {
        // SAFETY: `check` accepted both; the caller excludes other accesses.
        return unsafe { cuda::copy(source, target) };
    }
    source.wait()?; // WAIT for writes to host memory
    // SAFETY: `check` accepted both, which are host memory. Writes to the source are done (wait),
    // and the work in flight on the target too: `Storage::host` and `SyncState` wait for it. The
    // caller excludes other accesses.
    unsafe { host::copy(source, target) }
}

fn check(source: &Managed, target: &Managed) -> Result<()> {
    if source.dtype() != target.dtype() {
        return Err(Error::Argument(format!(
            "copy: expected {}, got {}",
            target.dtype(),
            source.dtype()
        )));
    }
    let reached = |side: &Managed| side.device().is_host() || cuda::is_on_device(side);
    if target.readonly() || !reached(source) || !reached(target) {
        return Err(Error::Buffer(format!(
            "copy: expected memory of the host or of CUDA devices and a writable target, got {} \
             into {}{}",
            source.device(),
            target.device(),
            if target.readonly() { " (read-only)" } else { "" }
        )));
    }
    if source.may_overlap(target) {
        return Err(Error::Buffer(
            "copy: expected separate memory, got fields that overlap".into(),
        ));
    }
    Ok(())
}

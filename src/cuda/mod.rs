//! Memory: the CUDA driver, as small functions that return `Result`.
//!
//! Nothing is loaded before somebody asks for a device, and nothing here panics: without a driver,
//! or with one that is too old, every function answers [`crate::Error::Device`]. `library` and `calls`
//! alone name cudarc. The context of a device is its *primary* one, which torch, CuPy, JAX and numba use too.
//!
//! ```text
//! library ─ calls ──▶ driver (probed once) ──▶ context ──▶ stream, event ──▶ timeline ──▶ block
//!                                               └──▶ pointer, transfer, kernel
//! ```
//!
//! Work is asynchronous and ordered by events. What is still being done to a block of memory is
//! written down in its [`Timeline`], which all views of it share: who puts work on a stream joins
//! the timeline first and leaves a mark afterwards.

mod pitched;
#[cfg(feature = "cuda")]
mod library;
#[cfg(feature = "cuda")]
mod calls;
#[cfg(not(feature = "cuda"))]
mod absent;
mod driver;
mod context;
mod stream;
mod event;
mod timeline;
mod settled;
#[cfg(all(feature = "arrow", feature = "python"))]
mod signal;
mod block;
mod pointer;
mod transfer;
mod kernel;

#[cfg(not(feature = "cuda"))]
use absent as calls;

pub(crate) use block::{Block, Kind};
pub(crate) use context::current_ordinal;
#[cfg(feature = "python")]
pub(crate) use context::{enter, ordinal_of, synchronize};
pub(crate) use driver::{check_ordinal, device_count};
pub(crate) use kernel::{Arguments, MAX_WALKS, Walk, launch};
pub(crate) use pitched::{Pitched, Side};
pub(crate) use pointer::{Place, locate};
pub(crate) use settled::Settled;
#[cfg(feature = "python")]
pub(crate) use settled::release_interpreter_by;
#[cfg(all(feature = "arrow", feature = "python"))]
pub(crate) use signal::{ForeignEvent, Signal};
pub(crate) use stream::{Stream, of_handle};
#[cfg(feature = "python")]
pub(crate) use stream::{choose, unchoose};
pub(crate) use timeline::Timeline;
pub(crate) use transfer::{copy_2d, copy_3d, copy_linear, copy_peer, set};

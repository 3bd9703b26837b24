//! Memory: the CUDA driver, as small functions that return `Result`.
//!
//! Nothing is loaded before the first request for a device, and nothing panics: without a driver,
//! or with one that is too old, every function returns [`crate::Error::Device`]. dlfield uses the
//! *primary* context of each device, as torch, CuPy, JAX and numba do.
//!
//! ```text
//! calls ──▶ driver (probed once) ──▶ context ──▶ stream, event ──▶ timeline ──▶ block, work
//!                                      └──▶ transfer, kernel
//! ```
//!
//! Work is asynchronous, and ordered by the [`Timeline`] of each block.

mod calls;
mod driver;
mod context;
mod stream;
mod event;
mod timeline;
mod work;
mod wait_on_drop;
mod block;
mod transfer;
mod kernel;

pub(crate) use block::{Block, Kind, locate};
pub(crate) use calls::{Pitched, PitchedSide};
pub(crate) use context::{current_ordinal, enter, ordinal_of, synchronize};
pub(crate) use driver::{check_ordinal, device_count, is_available, properties, version};
pub(crate) use event::Event;
pub(crate) use kernel::{Arguments, MAX_WALKS, Walk, launch};
pub(crate) use stream::{Stream, choose, unchoose};
pub(crate) use timeline::Timeline;
pub(crate) use transfer::{copy_linear, copy_peer, copy_planes, set};
pub(crate) use wait_on_drop::{WaitOnDrop, release_interpreter_by};
pub(crate) use work::Work;

//! Memory: from a shape and its wishes to an allocation.
//!
//! `plan` decides (pure arithmetic: bytes, offset, strides), `host` does it in memory of the host,
//! `cuda` where a device can use it; `live` counts.

mod plan;
mod live;
mod host;
mod cuda;

pub(crate) use cuda::allocate_for;
pub use host::Fill;
pub(crate) use host::allocate;
pub use live::live_allocations;
#[cfg(feature = "python")]
pub(crate) use plan::HOST_ALIGNMENT;
pub(crate) use plan::{Plan, check_ranks, check_shape, plan};

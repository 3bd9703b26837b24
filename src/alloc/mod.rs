//! Memory: from a shape and its wishes to an allocation.
//!
//! `plan` decides (pure arithmetic: bytes, offset, strides), `host` does.

mod plan;
mod host;

pub(crate) use host::allocate;
pub use host::{Fill, live_allocations};
#[cfg(feature = "python")]
pub(crate) use plan::HOST_ALIGNMENT;
pub(crate) use plan::{Plan, check_ranks, check_shape, plan};

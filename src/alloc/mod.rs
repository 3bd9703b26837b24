//! Memory: from a shape and its wishes to an allocation.
//!
//! `plan` decides (pure arithmetic: bytes, offset, strides), `host` does it in memory of the host,
//! `cuda` where a device can use it; `live` counts. Of the host's memory `mapped` are the large blocks, in
//! pages as `huge` says, and a pool of them; `place` sets their starts apart; `fill` writes them.

mod plan;
mod live;
mod huge;
mod place;
mod fill;
mod mapped;
mod host;
mod cuda;

pub(crate) use cuda::allocate_for;
pub use host::Fill;
pub(crate) use host::allocate;
#[cfg(feature = "python")]
pub(crate) use huge::{VARIABLE as HUGE_PAGES_VARIABLE, read as read_switch};
pub use huge::{huge_pages, set_huge_pages};
pub use live::live_allocations;
pub use mapped::{free_pool, pool_bytes, pool_limit, set_pool_limit};
#[cfg(feature = "python")]
pub(crate) use plan::{HOST_ALIGNMENT, plan_in_c_order};
pub(crate) use plan::{Plan, check_ranks, check_shape, plan};

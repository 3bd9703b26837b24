//! Memory: allocation.
//!
//! - `plan`: bytes, offset and strides of an allocation (pure arithmetic);
//! - `live`: counter of live blocks;
//! - `huge`: switch for huge pages; `place`: staggered start addresses;
//! - `mapped`: large host blocks, and the pool of them;
//! - `host`, `cuda`: carry out a plan in host memory, or in memory that a device can use.

mod plan;
mod live;
mod huge;
mod place;
mod mapped;
mod host;
mod cuda;

pub(crate) use cuda::allocate_for;
pub use host::Fill;
pub(crate) use host::allocate;
pub(crate) use huge::{VARIABLE as HUGE_PAGES_VARIABLE, read as read_switch};
pub use huge::{huge_pages, set_huge_pages};
pub use live::live_allocations;
pub use mapped::{free_pool, pool_bytes, pool_limit, set_pool_limit};
pub(crate) use plan::{HOST_ALIGNMENT, Plan, check_ranks, common_multiple, plan};

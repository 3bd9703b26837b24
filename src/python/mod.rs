//! Python's classes and the conversions of their values. A function here reads its arguments, releases the
//! GIL and calls one function of the rooms above. What is computed with storages is in `compute`, the
//! calls of stencils are in `call`; `module` lists all that Python sees.

mod borrows;
mod library;
pub(crate) mod numpy;
pub(crate) mod device_array;
pub(crate) mod presets;
pub(crate) mod options;
pub(crate) mod sync_state;
pub(crate) mod stream;
pub(crate) mod settings;
pub(crate) mod machine;
mod jax;
pub(crate) mod storage;
pub(crate) mod batch;
pub(crate) mod halo;
pub(crate) mod names;
pub(crate) mod create;
pub(crate) mod entries;
pub(crate) mod ask;
#[cfg(feature = "ndarray")]
mod argument;

pub use borrows::share_borrows;

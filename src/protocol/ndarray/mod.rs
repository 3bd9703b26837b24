//! Door: arrays of the crate `ndarray`, for stencils that are written in Rust.
//!
//! A storage has no type and no number of dimensions; a view of it has both, checked when it is made. Storages
//! share memory at will, so that who reads and who writes is checked then, too, as in a `RefCell`.
//!
//! ```text
//! Storage ─ convert ──▶ view (FieldRef, FieldMut) ──▶ domain
//!    ▲                                 │
//!    └───────────── array ◀────────────┘
//! ```

mod convert;
mod view;
mod domain;
mod array;

pub use view::{FieldMut, FieldRef};

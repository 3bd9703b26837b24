//! Door: arrays of the crate `ndarray`, for stencils written in Rust.
//!
//! A storage has a dtype and a number of dimensions at run time; a view of it has both at compile
//! time, checked when it is made. Storages share memory freely, so borrows are checked at the same
//! time, as in a `RefCell`.
//!
//! ```text
//! Storage ─ convert ──▶ view (FieldRef, FieldMut) ──▶ domain
//!    ▲                                 │
//!    └───────────── array ◀────────────┘
//! ```

mod shapes;
mod convert;
mod view;
mod domain;
mod array;

pub use shapes::same_shape;
pub use view::{FieldMut, FieldRef};

//! Storages: memory with what is known of it as a field, and everything that a storage can do.
//!
//! ```text
//! Spec + memory ──make──▶ Storage ──view, copies, assign──▶ Storage
//! ```

mod buffers;
mod spec;
mod data;
mod view;
mod make;
mod builder;
mod copies;
mod join;
mod assign;
mod batch;
mod describe;

pub use batch::CopyBatch;
pub use buffers::{ManagedBy, Residence};
pub use builder::Builder;
pub use data::Storage;
pub(crate) use spec::check_on_gpu;
pub use spec::{Order, Spec};

#[cfg(test)]
mod tests;

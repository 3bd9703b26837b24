//! Storages: memory with what is known of it as a field, and everything that a storage can do.
//!
//! ```text
//! Spec + memory ──make──▶ Storage ──view, copies, assign──▶ Storage
//! ```

mod residence;
mod checks;
mod spec;
mod buffers;
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
pub use builder::Builder;
pub(crate) use checks::check_on_gpu;
pub use data::Storage;
pub use residence::{ManagedBy, Residence};
pub use spec::{Order, Spec};

#[cfg(test)]
mod tests;

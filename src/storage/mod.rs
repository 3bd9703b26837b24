//! Storages: memory with the labels of a field, and the operations of a storage that need nothing
//! else. Typed views and exports are in `protocol`, Python's classes in `python::storage`.
//!
//! ```text
//! Spec + memory ──make, builder──▶ Storage ──view, copies, join──▶ new Storage
//! values ──assign, batch──▶ the elements of a Storage
//! ```

mod buffers;
mod spec;
mod data;
mod view;
mod make;
mod builder;
mod copies;
mod last_results;
mod join;
mod assign;
mod batch;
mod describe;

pub use batch::CopyBatch;
#[cfg(feature = "python")]
pub(crate) use batch::first_sharing;
pub use buffers::{ManagedBy, Residence};
pub use builder::Builder;
pub use data::Storage;
pub(crate) use last_results::{LastResult, Source};
pub(crate) use spec::check_on_gpu;
pub use spec::{Order, Spec};

#[cfg(test)]
mod tests;

#![doc = include_str!("../README.md")]
//!
//! # Order of the modules
//!
//! Arrays pass through these stages:
//!
//! ```text
//! foreign array ─door: check─▶ Offer ─locate, own─▶ Arrival ─+ Spec─▶ Storage ─door: export─▶ consumer
//!                                                      └─bind─▶ stencil call
//! ```
//!
//! The list of modules in `lib.rs` has the same order. A file uses only modules above it in that list,
//! which `tests/road.rs` checks. `docs/design.md` describes the stages.

#![cfg_attr(
    not(all(feature = "python", feature = "cuda", feature = "arrow", feature = "ndarray")),
    allow(dead_code, unused_imports, reason = "unused code is searched for with all features on")
)]

#[cfg(feature = "python")]
mod interpreter;
mod error;
mod short_ways;

// Words: plain values, no unsafe code.
mod dtype;
mod device;
mod layout;
mod field;
mod halo;
mod preset;

// Memory.
mod threads;
mod cuda;
mod managed;
mod element;
mod alloc;
mod borrow;
mod copy;
mod sync;
mod storage;

// Doors, and stencil arguments.
mod protocol;
mod stencil;

// Python: classes and conversions, what is computed with fields, calls of stencils, and the list of
// all that Python sees.
#[cfg(feature = "python")]
mod python;
#[cfg(feature = "python")]
mod compute;
#[cfg(feature = "python")]
mod call;
#[cfg(any(feature = "python", fuzzing))]
mod xla;
#[cfg(feature = "python")]
mod module;

// The rules above as fuzz targets reach them.
#[cfg(fuzzing)]
pub mod fuzzed;

// Other crates: whole where their values are arguments of functions here, else the types alone.
#[cfg(feature = "arrow")]
pub use ::{arrow_array, arrow_schema};
#[cfg(feature = "ndarray")]
pub use ::ndarray;
#[cfg(feature = "python")]
pub use ::pyo3;
pub use dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned};
#[cfg(feature = "ndarray")]
pub use half::{bf16, f16};
#[cfg(feature = "ndarray")]
pub use num_complex::Complex;

pub use alloc::{
    Fill, free_pool, huge_pages, live_allocations, pool_bytes, pool_limit, set_huge_pages,
    set_pool_limit,
};
pub use device::{Device, DeviceKind, Target};
pub use dtype::DType;
pub use element::Element;
pub use error::{Error, Result};
pub use field::{Dim, Dims, Field, Halo};
pub use halo::{Divided, HaloBoxes, IndexBox};
pub use layout::{Extents, Item, Layout, MAX_NDIM, Span};
pub use managed::{Managed, Untrusted};
pub use preset::Preset;
#[cfg(feature = "ndarray")]
pub use protocol::ndarray::{FieldMut, FieldRef, same_shape};
#[cfg(feature = "python")]
pub use python::share_borrows;
pub use storage::{Builder, CopyBatch, ManagedBy, Order, Residence, Spec, Storage};
pub use sync::{Dirty, SyncState};
pub use threads::{num_threads, set_num_threads};

/// Runs the examples of the guide as tests.
#[cfg(all(doctest, feature = "arrow", feature = "ndarray"))]
#[doc = include_str!("../docs/rust.md")]
#[derive(Debug)]
pub struct GuideForRust;

//! Words: preferences of each GT4Py backend: order of the dimensions, alignment, device.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

mod table;
mod registry;

pub use table::Preset;
pub(crate) use table::default_dims;

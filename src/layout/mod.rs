//! Words: shape and strides, and every question that they alone can answer.
//!
//! A [`Layout`] is checked when it is made: each extent is at least 0; the bytes of all elements
//! and the distance from the lowest to the highest element fit an `isize`. Later arithmetic needs
//! no second thought about overflow. Extents and strides count elements, spans count bytes.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

mod order;
mod geometry;
mod contiguous;
mod overlap;
mod rows;
mod select;

pub use geometry::{Layout, MAX_NDIM, Span};
pub use order::Extents;
pub(crate) use order::{falls_along, strides_by_rank};
pub(crate) use overlap::{lies_within, may_overlap};
pub use select::Item;
pub(crate) use select::{Step, steps};

#[cfg(test)]
mod tests;

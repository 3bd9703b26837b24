//! Words: element types, and their spelling in each protocol.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

mod table;
mod parse;

pub use table::DType;

#[cfg(test)]
mod tests;

//! Universal functions and reductions of storages: names and labels are decided in `field`, NumPy computes straight
//! into memory that is laid out so.
//!
//! ```text
//! objects ──given──▶ arrays and their labels ──compute──▶ function(arrays..., outputs...)
//!                                           └─reduce──▶ function(array, axis, dtype, out)
//! ```

mod given;
mod outputs;
mod known;
mod compute;
mod operators;
mod asked;
mod place;
mod reduce;
mod reductions;
mod methods;
mod ufunc;

pub(super) use reductions::{reduced, reducing_functions};
pub(super) use ufunc::elementwise;

//! Universal functions of storages: names and labels are decided in `field`, NumPy computes straight
//! into memory that is laid out so.
//!
//! ```text
//! objects ──given──▶ arrays and their labels ──compute──▶ function(arrays..., outputs...)
//! ```

mod given;
mod outputs;
mod compute;
mod operators;
mod ufunc;

pub(super) use ufunc::elementwise;

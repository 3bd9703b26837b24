//! Universal functions and reductions of storages. NumPy on the host, or CuPy on a GPU, computes
//! straight into memory with the labels that `field` decides.
//!
//! ```text
//! objects ──Operand::read──▶ Lift: operands, outputs, target
//!                              ├─pointwise `...->...`──▶ join, outputs ──▶ function(arrays..., outputs...)
//!                              └─reduce `k...->...`────▶ labels, output ─▶ function(array, axis, dtype, out)
//! ```

mod types;
mod others;
mod operands;
mod lift;
mod cupy;
mod pointwise;
mod operators;
mod arguments;
mod place;
mod reduce;
mod reductions;
mod ufunc;

pub(crate) use reductions::{reduced, reducing_functions};
pub(crate) use ufunc::elementwise;

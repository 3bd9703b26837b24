//! Universal functions and reductions of storages: names and labels are decided in `field`; NumPy on
//! the host, or CuPy on a GPU, computes straight into memory that is laid out so.
//!
//! ```text
//! objects ──given──▶ arrays and their labels ──site──▶ the host or a GPU
//!                       ├──pointwise─▶ work: function(arrays..., outputs...) ◀── cupy
//!                       └──reduce──▶ function(array, axis, dtype, out)
//! ```

mod known;
mod given;
mod outputs;
mod site;
mod cupy;
mod work;
mod pointwise;
mod operators;
mod asked;
mod place;
mod reduce;
mod reduce_on_gpu;
mod reductions;
mod methods;
mod ufunc;

pub(crate) use reductions::{reduced, reducing_functions};
pub(crate) use ufunc::elementwise;

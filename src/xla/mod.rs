//! The handler through which XLA calls a bound stencil (XLA's foreign function interface, its C API
//! `xla/ffi/api/c_api.h`). One handler serves all stencils: a text attribute of the call names the
//! Python function that takes the arrays.
//!
//! ```text
//! CallFrame ──Frame::read──▶ buffers ─check, own─▶ Managed ──▶ arrays of NumPy ──▶ entry(*arrays)
//! ```

mod abi;
mod frame;
#[cfg(feature = "python")]
mod handler;
#[cfg(fuzzing)]
mod fuzzed;

#[cfg(feature = "python")]
use pyo3::prelude::*;

#[cfg(fuzzing)]
pub(crate) use fuzzed::read_frame;

#[cfg(feature = "python")]
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(handler::xla_handler, module)?)?;
    module.add_function(wrap_pyfunction!(handler::xla_entries, module)?)
}

//! The Python skin: thin. Every class and function of `dlfield._core`; assignment from foreign
//! objects lives here too, since it needs the doors.

mod exceptions;
mod borrows;
mod numpy;
mod options;
mod sync_state;
mod stream;
mod settings;
mod jax;
mod torch;
#[cfg(feature = "arrow")]
mod arrow;
mod storage;
mod create;
mod ask;
mod bind;
#[cfg(feature = "ndarray")]
mod argument;

use pyo3::prelude::*;

pub use borrows::share_borrows;

/// The compiled part of dlfield. Import from `dlfield` instead.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    share_borrows(py)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("UNSET", options::unset(py)?)?;
    module.add("DeviceUnavailable", py.get_type::<crate::error::DeviceUnavailable>())?;
    module.add("GTNoSuchBufferError", exceptions::no_such_buffer(py)?)?;
    module.add_class::<options::Unset>()?;
    module.add_class::<sync_state::PySyncState>()?;
    stream::register(module)?;
    settings::register(module)?;
    storage::register(module)?;
    bind::register(module)?;
    create::register(module)?;
    ask::register(module)
}

//! Door: DLPack's C exchange table, a capsule on the *type* over function pointers that live as
//! long as the process. The fastest way in and out: no capsule, no keywords, no Python call.
//!
//! Source: dlpack.h 1.3, `DLPackExchangeAPI`.
//!
//! Nothing in a table synchronises streams, so memory shared with a device goes through `__dlpack__`.

mod lookup;
mod import;
mod export;
mod hand_over;

pub(crate) use export::capsule;
pub(crate) use hand_over::hand_over;
pub(in crate::protocol) use import::import;

use pyo3::prelude::*;
use pyo3::types::PyType;

/// True if objects of this class have a table that can be used.
pub(in crate::protocol) fn has_table(class: &Bound<'_, PyType>) -> PyResult<bool> {
    Ok(lookup::functions(class)?.is_some())
}

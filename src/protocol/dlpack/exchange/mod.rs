//! Door: DLPack's C exchange table, a capsule on the *type* over function pointers that live as
//! long as the process. The fastest way in and out: no capsule, no keywords, no Python call.
//!
//! Source: dlpack.h 1.3, `DLPackExchangeAPI`.
//!
//! - `lookup` finds a type's table and remembers it, and the absence of one.
//! - `import` takes an owning tensor through it. Nothing in a table synchronises streams, so that
//!   memory shared with a device goes through `__dlpack__`.
//! - `export` is the table of a class of ours.
//! - `hand_over` makes objects of other classes over memory of ours, by their tables.

mod lookup;
mod import;
mod export;
mod hand_over;

pub(crate) use export::{Exchanged, capsule};
pub(crate) use hand_over::hand_over;
pub(in crate::protocol) use import::import;

use std::ffi::CStr;

use pyo3::prelude::*;
use pyo3::types::PyType;

/// Whether objects of this class have a table that can be used.
///
/// # Errors
/// What the class raises when it is asked for the attribute.
pub(in crate::protocol) fn has_table(class: &Bound<'_, PyType>) -> PyResult<bool> {
    Ok(lookup::functions(class)?.is_some())
}

const NAME: &CStr = c"dlpack_exchange_api";

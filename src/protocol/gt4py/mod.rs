//! Door: what GT4Py's own documents say an object may tell about itself.
//!
//! Sources: GDP-3 "Data Interface" (`__gt_data_interface__`), the storage interface notes (its older
//! name `__gt_interface__`, and values that are callables), the storage allocation note
//! (`__gt_dims__`, `default_origin`), and what GT4Py reads today (`__gt_dims__`, `__gt_origin__`,
//! `.ndarray`).
//!
//! - `names` reads the attributes that stand beside any other protocol.
//! - `interface` imports `__gt_data_interface__`: an array interface for each device, with dims,
//!   halo and functions to call around a computation. It has no owner: the object is held.
//! - `hooks` are those functions.
//! - `export` is ours: host memory under the key None.

mod names;
mod hooks;
mod interface;
mod export;

pub(crate) use export::add_names;
pub(crate) use hooks::{Acquired, Hooks};
pub(in crate::protocol) use interface::{
    Offer, Side, dims_of_interface, import, import_from, interface_names,
};
pub(in crate::protocol) use names::ndarray;
pub(crate) use names::{any_names, dims, entries, names, origin};

use pyo3::prelude::*;

/// Whether an object tells by these protocols where its memory is: what NumPy would make of it may
/// be something else.
pub(crate) fn says_more_than_numpy(obj: &Bound<'_, PyAny>) -> PyResult<bool> {
    for name in interface_names(obj.py()) {
        if obj.hasattr(name)? {
            return Ok(true);
        }
    }
    Ok(ndarray(obj)?.is_some())
}

//! Doors: GT4Py's own protocols.
//!
//! Sources: GDP-3 "Data Interface" (`__gt_data_interface__`), the storage interface notes (its
//! older name `__gt_interface__`, and values that are callables), the storage allocation note
//! (`__gt_dims__`, `default_origin`), and what GT4Py reads today (`__gt_dims__`, `__gt_origin__`,
//! `.ndarray`).
//!
//! `__gt_data_interface__` is an array interface for each device, with dims, halo and functions to
//! call around a computation. It has no owner: the object is held.

mod names;
mod interface;

pub(in crate::protocol) use interface::{dims_of_interface, import, import_from, interface_names};
pub(in crate::protocol) use names::import_ndarray;
pub(crate) use names::{add_names, dims, origin};

use pyo3::prelude::*;

/// True if an object describes its memory by these protocols: NumPy may make another array of it.
pub(crate) fn says_more_than_numpy(obj: &Bound<'_, PyAny>) -> PyResult<bool> {
    for name in interface_names(obj.py()) {
        if obj.hasattr(name)? {
            return Ok(true);
        }
    }
    Ok(names::ndarray(obj)?.is_some())
}

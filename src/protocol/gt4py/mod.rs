//! Doors: GT4Py's own protocols.
//!
//! Sources: GDP-3 "Data Interface" (`__gt_data_interface__`), the storage interface notes (the
//! older name `__gt_interface__`, and values that are callables), the storage allocation note
//! (`__gt_dims__`, `default_origin`), and what GT4Py reads today (`__gt_dims__`, `__gt_origin__`,
//! `.ndarray`).
//!
//! `__gt_data_interface__` is an array interface for each device, with dims, halo and functions to
//! call around a computation. It names no owner of the memory, so that an import holds the object.
//! `interface` imports it; `names` reads the attributes, and adds dims and halo to an export.

mod names;
mod interface;

pub(in crate::protocol) use interface::{dims_of_interface, import, import_from, interface_names};
pub(in crate::protocol) use names::import_ndarray;
pub(crate) use names::{add_names, dims, origin};

use pyo3::prelude::*;

/// True if an object describes its memory by these protocols. NumPy does not read them, and may
/// make a different array from the object.
pub(crate) fn says_more_than_numpy(obj: &Bound<'_, PyAny>) -> PyResult<bool> {
    for name in interface_names(obj.py()) {
        if obj.hasattr(name)? {
            return Ok(true);
        }
    }
    Ok(names::ndarray(obj)?.is_some())
}

//! Producer: what `__gt_data_interface__` says of a field besides its memory.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::field::{Dim, Field};

/// Adds dims and halo to the interface of one buffer: names where there are some, and None for a halo that is
/// unknown, which is not the same as none.
///
/// # Errors
/// Only what setting items may raise.
pub(crate) fn add_names(interface: &Bound<'_, PyDict>, field: &Field) -> PyResult<()> {
    let py = interface.py();
    if let Some(dims) = &field.dims {
        interface.set_item("dims", PyTuple::new(py, dims.iter().map(Dim::to_string))?)?;
    }
    let halo = field.halo.as_ref().map(|halo| PyTuple::new(py, halo.iter().copied()));
    interface.set_item("halo", halo.transpose()?)
}

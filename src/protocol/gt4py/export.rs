//! Producer: `__gt_data_interface__` of a field in host memory.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::field::{Dim, Field};
use crate::managed::Managed;
use crate::protocol::array_interface;

/// The array interface under the key None, with dims and halo where they are known; `None` for
/// types that the array interface cannot name. There is nothing to acquire or to touch.
///
/// # Errors
/// Only what building a dict may raise.
pub(crate) fn export<'py>(
    py: Python<'py>,
    managed: &Managed,
    field: &Field,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(interface) = array_interface::export(py, managed)? else {
        return Ok(None);
    };
    if let Some(dims) = &field.dims {
        interface.set_item("dims", PyTuple::new(py, dims.iter().map(Dim::to_string))?)?;
    }
    if let Some(halo) = &field.halo {
        interface.set_item("halo", PyTuple::new(py, halo.iter().copied())?)?;
    }
    let devices = PyDict::new(py);
    devices.set_item(py.None(), interface)?;
    Ok(Some(devices))
}

//! What an object tells without its memory: the doors it has, and the names of its axes.

use pyo3::prelude::*;
use pyo3::types::PyType;

use super::dlpack::exchange;
use super::producer::{Producer, Recognised};
use super::xarray;
use super::{buffer, gt4py};
use crate::error::Failure;
use crate::field::Dims;

/// Attributes of an object that are doors, in the order in which they are tried, and their names.
const ATTRIBUTES: [(&str, &str); 9] = [
    ("__gt_data_interface__", "gt_data_interface"),
    ("__gt_interface__", "gt_interface"),
    ("ndarray", "ndarray"),
    ("__dlpack__", "dlpack"),
    ("__array_interface__", "array_interface"),
    ("__cuda_array_interface__", "cuda_array_interface"),
    ("__arrow_c_device_array__", ARROW),
    ("__arrow_c_array__", ARROW),
    ("__arrow_c_stream__", ARROW),
];

const ARROW: &str = "arrow";

fn has_arrow(obj: &Bound<'_, PyAny>) -> bool {
    let mut names = ATTRIBUTES.iter().filter(|one| one.1 == ARROW);
    names.any(|one| obj.hasattr(one.0).unwrap_or(true))
}

/// The names of the axes of a foreign object: of a DataArray its dims, of others `__gt_dims__` or
/// what `__gt_data_interface__` says. `None` where it has none.
///
/// # Errors
/// `TypeError` for names that are none, and what the object raises.
pub(crate) fn names_of(obj: &Bound<'_, PyAny>) -> Result<Option<Dims>, Failure> {
    if Recognised::of(obj)?.producer == Producer::Xarray {
        return Ok(Some(xarray::names(obj)?));
    }
    match gt4py::dims(obj)? {
        Some(dims) => Ok(Some(dims)),
        None => gt4py::dims_of_interface(obj),
    }
}

/// Names of the doors that a foreign object has, whether what is behind them can be used or not.
/// A door that raises when it is asked for is one.
pub(crate) fn doors_of(obj: &Bound<'_, PyAny>) -> Vec<&'static str> {
    let mut doors = Vec::new();
    let producer = Recognised::of(obj).map_or(Producer::Other, |known| known.producer);
    match producer {
        Producer::Xarray => doors.push("xarray"),
        Producer::Arrow if has_arrow(obj) => doors.push(ARROW), // which is tried first there
        _ => {}
    }
    if exchange::has_table(&obj.get_type()).unwrap_or(true) {
        doors.push("dlpack_c_exchange_api");
    }
    if buffer::PyView::is_offered(obj) {
        doors.push("buffer");
    }
    for (attribute, door) in ATTRIBUTES {
        let closed = door == ARROW && producer == Producer::Pandas;
        if !closed && !doors.contains(&door) && obj.hasattr(attribute).unwrap_or(true) {
            doors.push(door);
        }
    }
    doors
}

/// As [`doors_of`], as far as a class tells: for objects that do something when they are asked.
pub(crate) fn doors_of_class(class: &Bound<'_, PyType>) -> Vec<&'static str> {
    let mut doors = vec!["dlpack_c_exchange_api"];
    if class.hasattr("__array_interface__").unwrap_or(false) {
        doors.push("buffer"); // both are of memory of the host
    }
    let there = |attribute: &str| class.hasattr(attribute).unwrap_or(false);
    doors.extend(ATTRIBUTES.iter().filter(|(attribute, _)| there(attribute)).map(|one| one.1));
    doors.dedup(); // one door may have several names
    doors
}

//! Door: an `xarray.DataArray`, read through its variable, with its dims by name.
//!
//! `np.asarray(data_array)` loses the names, which is how a field with dims K, J, I has ended up
//! in a stencil as I, J, K. A class may name its axes for GT4Py itself, with `__gt_dims__`.

use pyo3::intern;
use pyo3::prelude::*;

use super::gt4py;
use crate::error::Error;
use crate::field::Dims;

/// What a DataArray holds.
pub(super) struct Held<'py> {
    pub(super) data: Bound<'py, PyAny>,
    pub(super) dims: Dims,
    /// The data once more, where asking again gives another object.
    pub(super) again: Option<Bound<'py, PyAny>>,
}

/// The array inside a DataArray, and its dims.
pub(super) fn unwrap<'py>(data_array: &Bound<'py, PyAny>) -> PyResult<Held<'py>> {
    let py = data_array.py();
    let variable = data_array.getattr(intern!(py, "variable"))?;
    let dims = match own_dims(data_array)? {
        Some(dims) => dims,
        None => gt4py::names(&variable.getattr(intern!(py, "dims"))?)?,
    };
    let data = variable.getattr(intern!(py, "data"))?;
    let again = variable.getattr(intern!(py, "data"))?;
    let again = if again.is(&data) { None } else { Some(again) };
    Ok(Held { data, dims, again })
}

/// `__gt_dims__` of the class, by inheritance or as a registered accessor. It is asked of the
/// class first, since a DataArray searches long for an attribute that it does not have.
fn own_dims(data_array: &Bound<'_, PyAny>) -> PyResult<Option<Dims>> {
    if data_array.get_type().hasattr(intern!(data_array.py(), "__gt_dims__"))? {
        gt4py::dims(data_array)
    } else {
        Ok(None)
    }
}

/// A variable on disk that xarray reads anew each time: what is written into it is lost.
pub(super) fn not_loaded() -> Error {
    Error::Type(
        "DataArray: expected one whose data is in memory, got one that xarray loads anew at each \
         access; call .load() or .compute() first"
            .into(),
    )
}

//! Door: an `xarray.DataArray`, read through its variable, with its dims by name.
//!
//! `np.asarray(data_array)` loses the names, which is how a field with dims K, J, I has ended up
//! in a stencil as I, J, K. A class may name its axes for GT4Py itself, with `__gt_dims__`.

use pyo3::intern;
use pyo3::prelude::*;

use super::gt4py;
use crate::error::Error;
use crate::field::Dims;
use crate::layout::Extents;

/// What a DataArray holds.
pub(super) struct Held<'py> {
    pub(super) data: Bound<'py, PyAny>,
    pub(super) dims: Dims,
    /// Where its class says that the domain begins.
    pub(super) origin: Option<Extents>,
    /// The data once more, where asking again gives another object.
    pub(super) again: Option<Bound<'py, PyAny>>,
}

/// The array inside a DataArray, and its dims.
///
/// GT4Py's attributes, by inheritance or as registered accessors, are asked of the class first: a
/// DataArray searches long for an attribute that it does not have.
pub(super) fn unwrap<'py>(data_array: &Bound<'py, PyAny>) -> PyResult<Held<'py>> {
    let py = data_array.py();
    let variable = data_array.getattr(intern!(py, "variable"))?;
    let class = data_array.get_type();
    let own = class.hasattr(intern!(py, "__gt_dims__"))?;
    let dims = match if own { gt4py::dims(data_array)? } else { None } {
        Some(dims) => dims,
        None => gt4py::names(&variable.getattr(intern!(py, "dims"))?)?,
    };
    let own = class.hasattr(intern!(py, "__gt_origin__"))?;
    let origin = if own { gt4py::origin(data_array)? } else { None };
    let data = variable.getattr(intern!(py, "data"))?;
    let again = variable.getattr(intern!(py, "data"))?;
    let again = if again.is(&data) { None } else { Some(again) };
    Ok(Held { data, dims, origin, again })
}

/// A variable on disk that xarray reads anew each time: what is written into it is lost.
pub(super) fn not_loaded() -> Error {
    Error::Type(
        "DataArray: expected one whose data is in memory, got one that xarray loads anew at each \
         access; call .load() or .compute() first"
            .into(),
    )
}

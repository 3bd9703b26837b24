//! Door: an `xarray.DataArray`, read through its variable, with its dims by name.
//!
//! `np.asarray(data_array)` loses the names, which is how a field with dims K, J, I has ended up
//! in a stencil as I, J, K. A class may name its axes for GT4Py itself, with `__gt_dims__`.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::gt4py;
use super::producer::{Known, Producer, known};
use crate::error::{Error, Failure};
use crate::field::{Dim, Dims, show_dims};
use crate::layout::Extents;

/// What a DataArray holds.
pub(super) struct Held<'py> {
    pub(super) data: Bound<'py, PyAny>,
    pub(super) dims: Dims,
    /// Where its class says that the domain begins.
    pub(super) origin: Option<Extents>,
    /// What an accessor that a user registered says of the memory.
    pub(super) offer: Option<gt4py::Offer>,
    /// The data once more, where asking again gives another object.
    pub(super) again: Option<Bound<'py, PyAny>>,
}

/// The accessors that dlfield installs say what is read here without them.
static DEFAULT: Known = known(Producer::Other, "dlfield.xarray", "DefaultAccessor");

/// The array inside a DataArray, and its dims.
///
/// GT4Py's attributes, by inheritance or as registered accessors, are asked of the class first: a
/// DataArray searches long for an attribute that it does not have.
pub(super) fn unwrap<'py>(
    data_array: &Bound<'py, PyAny>,
    side: gt4py::Side,
) -> Result<Held<'py>, Failure> {
    let py = data_array.py();
    let (class, dims) = (data_array.get_type(), names(data_array)?);
    let variable = data_array.getattr(intern!(py, "variable"))?;
    let origin = class.hasattr(intern!(py, "__gt_origin__"))?;
    let origin = if origin { gt4py::origin(data_array)? } else { None };
    let mut own = [None; 2];
    for (slot, name) in own.iter_mut().zip(gt4py::interface_names(py)) {
        *slot = has_own(&class, name)?.then_some(name);
    }
    let offer = gt4py::import_from(data_array, own.into_iter().flatten(), side)?;
    let data = variable.getattr(intern!(py, "data"))?;
    let again = variable.getattr(intern!(py, "data"))?;
    let again = if again.is(&data) { None } else { Some(again) };
    Ok(Held { data, dims, origin, offer, again })
}

/// The names of the axes: as its class says, else its dims.
pub(super) fn names(data_array: &Bound<'_, PyAny>) -> PyResult<Dims> {
    let py = data_array.py();
    if has_own(&data_array.get_type(), intern!(py, "__gt_dims__"))?
        && let Some(dims) = gt4py::dims(data_array)?
    {
        return Ok(dims);
    }
    gt4py::any_names(&data_array.getattr(intern!(py, "variable"))?.getattr(intern!(py, "dims"))?)
}

/// Whether a class has an attribute that is not dlfield's own.
fn has_own(class: &Bound<'_, PyType>, name: &Bound<'_, PyString>) -> PyResult<bool> {
    let Some(found) = class.getattr_opt(name)? else {
        return Ok(false);
    };
    let default = DEFAULT.class(class.py())?;
    Ok(!default.is_some_and(|default| found.get_type().is(&default)))
}

/// The names of a DataArray count, unless its data contradicts them (GDP-3): where only one of the
/// two speaks of I, J and K, they are names of different kinds for the same axes.
pub(super) fn check_names(outer: &Dims, inner: &Dims) -> Result<(), Error> {
    let gt4py = |dims: &Dims| dims.iter().all(Dim::is_gt4py);
    if outer == inner || !gt4py(outer) || !gt4py(inner) {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "dims: expected {} as the data of the DataArray says, got {} from the DataArray; transpose or rename one of them",
        show_dims(inner),
        show_dims(outer)
    )))
}

/// An accessor that xarray keeps per object may have been made for other data.
pub(super) fn stale() -> Error {
    Error::Buffer(
        "DataArray: expected an accessor that describes its data, got one about other memory; xarray keeps \
         accessors from before `data` was replaced: make a new DataArray, or read the data anew in the accessor"
            .into(),
    )
}

/// A variable on disk that xarray reads anew each time: what is written into it is lost.
pub(super) fn not_loaded() -> Error {
    Error::Type(
        "DataArray: expected one whose data is in memory, got one that xarray loads anew at each \
         access; call .load() or .compute() first"
            .into(),
    )
}

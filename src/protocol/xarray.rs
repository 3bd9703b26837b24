//! Door: an `xarray.DataArray`, read through its variable, with its dims by name.
//!
//! `np.asarray(data_array)` loses the names, which is how a field with dims K, J, I has ended up
//! in a stencil as I, J, K. A lazily loaded variable is loaded, as xarray's own `data` does.

use pyo3::intern;
use pyo3::prelude::*;

use super::gt4py;
use crate::field::Dims;

/// The array inside a DataArray, and its dims.
pub(super) fn unwrap<'py>(data_array: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Dims)> {
    let py = data_array.py();
    let variable = data_array.getattr(intern!(py, "variable"))?;
    let dims = gt4py::names(&variable.getattr(intern!(py, "dims"))?)?;
    Ok((variable.getattr(intern!(py, "data"))?, dims))
}

//! Optional libraries, which are imported when they are first needed.

use pyo3::exceptions::{PyImportError, PyModuleNotFoundError};
use pyo3::prelude::*;

/// Makes the error of an import that `what` needs: with `way_out` if the library is not installed.
pub(super) fn missing(
    error: PyErr,
    py: Python<'_>,
    what: &str,
    library: &str,
    way_out: &str,
) -> PyErr {
    if !error.is_instance_of::<PyModuleNotFoundError>(py) {
        return error;
    }
    PyImportError::new_err(format!(
        "{what}: expected {library} to be installed, got no such module; {way_out}"
    ))
}

//! The exception that PyO3's macro cannot make: one with two bases.

use pyo3::exceptions::{PyAttributeError, PyBufferError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

/// `GTNoSuchBufferError` (GDP-3). It is an AttributeError too, so that `hasattr` says no where a
/// storage cannot serve a protocol.
pub(super) fn no_such_buffer(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        let bases =
            PyTuple::new(py, [py.get_type::<PyBufferError>(), py.get_type::<PyAttributeError>()])?;
        let body = PyDict::new(py);
        body.set_item("__module__", "dlfield")?;
        body.set_item("__doc__", "The storage has no buffer of the kind asked for.")?;
        let class = py.get_type::<PyType>().call1(("GTNoSuchBufferError", bases, body))?;
        PyResult::Ok(class.cast_into::<PyType>()?.unbind())
    })?;
    Ok(class.bind(py))
}

/// The absence of an attribute, with a reason.
pub(super) fn absent(py: Python<'_>, text: String) -> PyErr {
    match no_such_buffer(py) {
        Ok(class) => PyErr::from_type(class.clone(), text),
        Err(error) => error,
    }
}

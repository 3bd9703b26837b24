//! Maps kinds of failure to Python exceptions: the only such table.
//!
//! | [`Error`] | Python |
//! |---|---|
//! | `Argument` | `ValueError` |
//! | `Buffer` | `BufferError` |
//! | `Type` | `TypeError` |
//! | `Index` | `IndexError` |
//! | `OutOfMemory` | `MemoryError` |
//! | `Device` | `dlfield.DeviceUnavailable`, a `RuntimeError` |
//! | `NoBuffer` | `dlfield.GTNoSuchBufferError`, a `BufferError` and an `AttributeError` |

use std::ffi::CStr;

use pyo3::create_exception;
use pyo3::exceptions::{
    PyAttributeError, PyBufferError, PyIndexError, PyMemoryError, PyRuntimeError, PyTypeError,
    PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::kinds::Error;
use crate::interpreter::attached;

create_exception!(
    dlfield,
    DeviceUnavailable,
    PyRuntimeError,
    "No usable device of the requested kind: no driver, no such device, or a build without it."
);

/// `GTNoSuchBufferError` (GDP-3). It is an AttributeError too, so that `hasattr` says no where a
/// storage cannot serve a protocol.
pub(crate) fn no_such_buffer(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
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
pub(crate) fn absent(py: Python<'_>, text: String) -> PyErr {
    match no_such_buffer(py) {
        Ok(class) => PyErr::from_type(class.clone(), text),
        Err(error) => error,
    }
}

impl Error {
    /// Name of the built-in exception class, for C callers.
    pub(crate) fn python_name(&self) -> &'static CStr {
        match self {
            Self::Argument(_) => c"ValueError",
            Self::Buffer(_) => c"BufferError",
            Self::Type(_) => c"TypeError",
            Self::Index(_) => c"IndexError",
            Self::OutOfMemory(_) => c"MemoryError",
            Self::Device(_) => c"RuntimeError",
            Self::NoBuffer(_) => c"BufferError",
        }
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Argument(_) => PyValueError::new_err(text),
            Error::Buffer(_) => PyBufferError::new_err(text),
            Error::Type(_) => PyTypeError::new_err(text),
            Error::Index(_) => PyIndexError::new_err(text),
            Error::OutOfMemory(_) => PyMemoryError::new_err(text),
            Error::Device(_) => DeviceUnavailable::new_err(text),
            Error::NoBuffer(_) => attached(|py| absent(py, text.clone()))
                .unwrap_or_else(|| PyBufferError::new_err(text)),
        }
    }
}

/// A failed import, by origin. A caller that knows the argument may make dlfield's own errors more
/// precise; a producer's exception reaches the user unchanged.
#[derive(Debug)]
pub(crate) enum Failure {
    /// dlfield's own refusal.
    Ours(Error),
    /// An exception of the producer.
    Theirs(PyErr),
}

impl Failure {
    /// Prepends the name of the argument to an error of dlfield's own.
    pub(crate) fn about(self, argument: &str) -> Self {
        match self {
            Self::Ours(error) => error.about(argument).into(),
            theirs => theirs,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Ours(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Theirs(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Ours(error) => error.into(),
            Failure::Theirs(error) => error,
        }
    }
}

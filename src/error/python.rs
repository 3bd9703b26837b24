//! Kinds of failure to Python exceptions: the one table.
//!
//! | [`Error`] | Python |
//! |---|---|
//! | `Argument` | `ValueError` |
//! | `Buffer` | `BufferError` |
//! | `Type` | `TypeError` |
//! | `Index` | `IndexError` |
//! | `OutOfMemory` | `MemoryError` |
//! | `Device` | `dlfield.DeviceUnavailable`, a `RuntimeError` |

use std::ffi::CStr;

use pyo3::exceptions::{
    PyBufferError, PyIndexError, PyMemoryError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::{PyErr, create_exception};

use super::Error;

create_exception!(
    dlfield,
    DeviceUnavailable,
    PyRuntimeError,
    "No usable device of the kind asked for: no driver, no such device, or a build without it."
);

impl Error {
    /// Name of the exception class that Python knows without dlfield, for C callers.
    pub(crate) fn python_name(&self) -> &'static CStr {
        match self {
            Self::Argument(_) => c"ValueError",
            Self::Buffer(_) => c"BufferError",
            Self::Type(_) => c"TypeError",
            Self::Index(_) => c"IndexError",
            Self::OutOfMemory(_) => c"MemoryError",
            Self::Device(_) => c"RuntimeError",
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
        }
    }
}

/// A failed import, with whose fault it is: what dlfield refuses may be said more precisely by a
/// caller that knows the argument; what a producer raises reaches the user unchanged.
#[derive(Debug)]
pub(crate) enum Failure {
    /// dlfield's own refusal.
    Ours(Error),
    /// An exception of the producer.
    Theirs(PyErr),
}

impl Failure {
    /// The same failure; where it is dlfield's own with the name of the argument in front.
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

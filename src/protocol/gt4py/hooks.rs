//! The functions that an object wants called around a computation (GDP-3).
//!
//! `acquire` before anything reads or writes the memory, `touch` after it was written, `release`
//! when the computation is over. Each is optional and takes no argument.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyMapping;

use crate::protocol::keep::{Keep, undisturbed};

/// What an object wants called; `None` where it does not care.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    /// Whose they are.
    owner: Option<Py<PyAny>>,
    acquire: Option<Py<PyAny>>,
    touch: Option<Py<PyAny>>,
    release: Option<Py<PyAny>>,
}

/// Memory that was acquired, and is released when this is dropped, on whichever thread.
pub(crate) struct Acquired(Option<Keep<Py<PyAny>>>);

impl Hooks {
    /// Reads the functions of one device of `owner`.
    ///
    /// # Errors
    /// `TypeError` for something that cannot be called.
    pub(in crate::protocol) fn of(
        owner: &Bound<'_, PyAny>,
        interface: &Bound<'_, PyMapping>,
    ) -> PyResult<Self> {
        Ok(Self {
            owner: Some(owner.clone().unbind()),
            acquire: function(interface, "acquire")?,
            touch: function(interface, "touch")?,
            release: function(interface, "release")?,
        })
    }

    /// Whether there is nothing to call.
    pub(crate) fn is_empty(&self) -> bool {
        self.acquire.is_none() && self.touch.is_none() && self.release.is_none()
    }

    /// Those functions, and of `inner` those that are missing.
    pub(in crate::protocol) fn or(self, inner: Self) -> Self {
        Self {
            owner: if self.is_empty() { inner.owner } else { self.owner },
            acquire: self.acquire.or(inner.acquire),
            touch: self.touch.or(inner.touch),
            release: self.release.or(inner.release),
        }
    }

    /// Whether both are functions of one object.
    pub(crate) fn are_of_one_object(&self, other: &Self) -> bool {
        self.owner.as_ref().zip(other.owner.as_ref()).is_some_and(|(one, other)| one.is(other))
    }

    /// Calls `acquire`. What is returned calls `release` when it is dropped.
    ///
    /// # Errors
    /// What `acquire` raises; there is nothing to release then.
    pub(crate) fn acquire(&self, py: Python<'_>) -> PyResult<Acquired> {
        call(py, self.acquire.as_ref())?;
        Ok(Acquired(self.release.as_ref().map(|release| Keep::new(release.clone_ref(py)))))
    }

    /// Says that the memory was written.
    ///
    /// # Errors
    /// What `touch` raises.
    pub(crate) fn touch(&self, py: Python<'_>) -> PyResult<()> {
        call(py, self.touch.as_ref())
    }
}

impl Acquired {
    /// Calls `release` now.
    ///
    /// # Errors
    /// What it raises.
    pub(crate) fn release(mut self, py: Python<'_>) -> PyResult<()> {
        call(py, self.0.take().as_deref())
    }
}

impl Drop for Acquired {
    fn drop(&mut self) {
        let Some(release) = self.0.take() else { return };
        // After the interpreter is gone there is nobody to tell.
        let _ = Python::try_attach(|py| {
            undisturbed(py, || {
                if let Err(error) = release.call0(py) {
                    error.write_unraisable(py, Some(release.bind(py)));
                }
            });
        });
    }
}

fn function(interface: &Bound<'_, PyMapping>, key: &str) -> PyResult<Option<Py<PyAny>>> {
    if !interface.contains(key)? {
        return Ok(None);
    }
    let function = interface.get_item(key)?;
    if function.is_none() || function.is_callable() {
        return Ok(Some(function).filter(|function| !function.is_none()).map(Bound::unbind));
    }
    let text =
        format!("{key}: expected a function without arguments or None, got {}", function.repr()?);
    Err(PyTypeError::new_err(text))
}

fn call(py: Python<'_>, function: Option<&Py<PyAny>>) -> PyResult<()> {
    function.map_or(Ok(()), |function| function.call0(py).map(|_| ()))
}

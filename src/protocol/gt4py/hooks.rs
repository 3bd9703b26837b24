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

    /// The functions of an object of dlfield's own.
    ///
    /// # Errors
    /// What asking for them raises.
    pub(crate) fn of_methods(
        owner: &Bound<'_, PyAny>,
        acquire: &str,
        touch: &str,
    ) -> PyResult<Self> {
        Ok(Self {
            acquire: Some(owner.getattr(acquire)?.unbind()),
            touch: Some(owner.getattr(touch)?.unbind()),
            release: None,
            owner: Some(owner.clone().unbind()),
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

    /// Whether both are functions of one object: shown by it, or the same functions, as where a
    /// wrapper shows those of what it wraps (notes, second example).
    pub(crate) fn are_of_one_object(&self, other: &Self, py: Python<'_>) -> bool {
        let owner = self.owner.as_ref().zip(other.owner.as_ref());
        owner.is_some_and(|(one, other)| one.is(other))
            || [
                (&self.acquire, &other.acquire),
                (&self.touch, &other.touch),
                (&self.release, &other.release),
            ]
            .into_iter()
            .all(|(one, other)| are_the_same(one.as_ref(), other.as_ref(), py))
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

    /// As `touch`, where nobody is there to get the exception: it is reported as unraisable.
    #[cfg(feature = "ndarray")]
    pub(crate) fn touch_or_report(&self, py: Python<'_>) {
        undisturbed(py, || {
            if let Err(error) = self.touch(py) {
                error.write_unraisable(py, self.touch.as_ref().map(|touch| touch.bind(py)));
            }
        });
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

/// A method that is asked for twice is two objects, which are equal. Nothing but Python's own methods
/// is compared: others may answer as they like.
fn are_the_same(one: Option<&Py<PyAny>>, other: Option<&Py<PyAny>>, py: Python<'_>) -> bool {
    let (Some(one), Some(other)) = (one, other) else {
        return one.is_none() && other.is_none();
    };
    let (one, other) = (one.bind(py), other.bind(py));
    let methods = ["method", "builtin_function_or_method"];
    let kind = one.get_type();
    let is_method = kind.is(other.get_type())
        && kind.qualname().is_ok_and(|name| methods.iter().any(|method| name == *method))
        && kind.module().is_ok_and(|module| module == "builtins");
    one.is(other) || (is_method && one.eq(other).unwrap_or(false))
}

fn call(py: Python<'_>, function: Option<&Py<PyAny>>) -> PyResult<()> {
    function.map_or(Ok(()), |function| function.call0(py).map(|_| ()))
}

//! The functions that an object wants called around a computation (GDP-3).
//!
//! `acquire` before anything reads or writes the memory, `touch` after it was written, `release`
//! when the computation is over. Each is optional and takes no argument.

use pyo3::prelude::*;
use pyo3::types::PyMapping;

use super::read::{entry, wrong_type};
use crate::interpreter::{DropAttached, Inside, give_back};
use crate::managed::Managed;

/// The functions of an object; most objects have none.
#[derive(Debug, Default)]
pub(crate) struct Hooks(Option<Box<Functions>>);

#[derive(Debug)]
struct Functions {
    /// The object.
    owner: Py<PyAny>,
    /// All functions are dlfield's.
    own: bool,
    acquire: Option<Py<PyAny>>,
    touch: Option<Py<PyAny>>,
    release: Option<Py<PyAny>>,
}

/// Acquired memory. Dropping this releases it, on whichever thread that happens.
pub(crate) struct Acquired(Option<DropAttached<Py<PyAny>>>);

impl Hooks {
    /// Reads the functions of one device of `owner`.
    ///
    /// # Errors
    /// `TypeError` for something that cannot be called.
    pub(in crate::protocol) fn from_interface(
        owner: &Bound<'_, PyAny>,
        interface: &Bound<'_, PyMapping>,
    ) -> PyResult<Self> {
        Ok(Self::of(Functions {
            owner: owner.clone().unbind(),
            own: false,
            acquire: function(interface, "acquire")?,
            touch: function(interface, "touch")?,
            release: function(interface, "release")?,
        }))
    }

    /// The functions of an object of dlfield's own.
    pub(crate) fn from_methods(
        owner: &Bound<'_, PyAny>,
        acquire: &str,
        touch: &str,
    ) -> PyResult<Self> {
        Ok(Self::of(Functions {
            acquire: Some(owner.getattr(acquire)?.unbind()),
            touch: Some(owner.getattr(touch)?.unbind()),
            release: None,
            own: true,
            owner: owner.clone().unbind(),
        }))
    }

    fn of(all: Functions) -> Self {
        let is_empty = all.acquire.is_none() && all.touch.is_none() && all.release.is_none();
        Self(if is_empty { None } else { Some(Box::new(all)) })
    }

    /// True if there are no functions to call.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// True if there are none but those of dlfield's own objects.
    pub(crate) fn are_own(&self) -> bool {
        self.0.as_ref().is_none_or(|functions| functions.own)
    }

    /// Adds the functions of `inner` that are missing.
    pub(in crate::protocol) fn or(self, inner: Self) -> Self {
        let (own, inner) = match (self.0, inner.0) {
            (Some(own), Some(inner)) => (*own, *inner),
            (own, inner) => return Self(own.or(inner)),
        };
        Self::of(Functions {
            owner: own.owner,
            own: own.own && inner.own,
            acquire: own.acquire.or(inner.acquire),
            touch: own.touch.or(inner.touch),
            release: own.release.or(inner.release),
        })
    }

    /// True if both are functions of one object: it has them, or they are the same functions, as
    /// those of a wrapper and of the object inside (notes, second example).
    pub(crate) fn are_of_one_object(&self, other: &Self, py: Python<'_>) -> bool {
        let (Some(one), Some(other)) = (&self.0, &other.0) else {
            return self.is_empty() && other.is_empty();
        };
        let functions = [
            (&one.acquire, &other.acquire),
            (&one.touch, &other.touch),
            (&one.release, &other.release),
        ];
        let same =
            |(one, other): (&Option<_>, &Option<_>)| are_the_same(one.as_ref(), other.as_ref(), py);
        one.owner.is(&other.owner) || functions.into_iter().all(same)
    }

    /// Calls `acquire`. Dropping the result calls `release`.
    ///
    /// # Errors
    /// What `acquire` raises; there is nothing to release then.
    pub(crate) fn acquire(&self, py: Python<'_>) -> PyResult<Acquired> {
        let Some(functions) = &self.0 else { return Ok(Acquired(None)) };
        call(py, functions.acquire.as_ref())?;
        let release = functions.release.as_ref();
        Ok(Acquired(release.map(|release| DropAttached::new(release.clone_ref(py)))))
    }

    /// The memory, acquired now and released when the last view of it is gone.
    #[inline]
    pub(crate) fn acquired(&self, py: Python<'_>, memory: Managed) -> PyResult<Managed> {
        Ok(if self.is_empty() { memory } else { memory.along_with(self.acquire(py)?) })
    }

    /// Calls `touch`, which tells the object that its memory was written.
    pub(crate) fn touch(&self, py: Python<'_>) -> PyResult<()> {
        call(py, self.0.as_ref().and_then(|functions| functions.touch.as_ref()))
    }

    /// As `touch`, for [`give_back`]: without a caller to raise in, reports an exception as unraisable.
    #[cfg(feature = "ndarray")]
    pub(crate) fn touch_or_report(&self, py: Python<'_>) {
        if let Some(touch) = self.0.as_ref().and_then(|functions| functions.touch.as_ref()) {
            call_or_report(py, touch);
        }
    }
}

impl Acquired {
    /// Calls `release` now.
    pub(crate) fn release(mut self, py: Python<'_>) -> PyResult<()> {
        call(py, self.0.take().as_deref())
    }
}

impl Drop for Acquired {
    fn drop(&mut self) {
        let Some(release) = self.0.take() else { return };
        let _is_not_called_at_the_end = give_back(|py| call_or_report(py, &release));
    }
}

fn function(interface: &Bound<'_, PyMapping>, key: &str) -> PyResult<Option<Py<PyAny>>> {
    match entry(interface, key)? {
        Some(function) if !function.is_callable() => {
            Err(wrong_type(key, "a function without arguments or None", &function).into())
        }
        function => Ok(function.map(Bound::unbind)),
    }
}

/// Each access to a method makes a new object; these are equal. Only Python's own methods are
/// compared: the `__eq__` of another class may do anything.
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
    let Some(function) = function else { return Ok(()) };
    let _inside = Inside::enter(py);
    function.call0(py).map(|_| ())
}

/// Calls a function that has no caller to raise in: reports an exception as unraisable.
fn call_or_report(py: Python<'_>, function: &Py<PyAny>) {
    if let Err(error) = function.call0(py) {
        error.write_unraisable(py, Some(function.bind(py)));
    }
}

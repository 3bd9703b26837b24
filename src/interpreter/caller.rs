//! The library that calls. xarray and Dask match dimensions themselves: they put axes in order, leave out
//! and add axes as NumPy broadcasts them, and then call with the arrays inside, which go by position.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use pyo3::{Borrowed, ffi};

/// A library whose code calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// It matches arrays by name.
    User,
    Xarray,
    Dask,
}

impl Caller {
    /// The caller of the function that runs: that of the innermost function in Python outside of
    /// dlfield, NumPy and what xarray and Dask call it through.
    pub(crate) fn of_now(py: Python<'_>) -> PyResult<Self> {
        // SAFETY: attached, as `py` shows; the result is borrowed or null.
        let globals = unsafe { ffi::PyEval_GetGlobals() };
        // SAFETY: the namespace of the function that runs lives until it returns.
        let Some(globals) = (unsafe { Borrowed::from_ptr_or_opt(py, globals) }) else {
            return Ok(Self::User);
        };
        match Self::in_module(&globals.to_owned())? {
            Some(found) => Ok(found),
            None => Self::of_frames(py),
        }
    }

    /// True if arrays go by position.
    pub(crate) fn has_matched(self) -> bool {
        self != Self::User
    }

    /// Goes through the functions in Python that run, from the innermost.
    fn of_frames(py: Python<'_>) -> PyResult<Self> {
        let sys = py.import(intern!(py, "sys"))?;
        let mut frame = sys.call_method0(intern!(py, "_getframe"))?;
        while !frame.is_none() {
            if let Some(found) = Self::in_module(&frame.getattr(intern!(py, "f_globals"))?)? {
                return Ok(found);
            }
            frame = frame.getattr(intern!(py, "f_back"))?;
        }
        Ok(Self::User)
    }

    /// The caller whose functions have this namespace; `None` for those that call on behalf of others.
    fn in_module(globals: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let Ok(globals) = globals.cast::<PyDict>() else { return Ok(Some(Self::User)) };
        let name = globals.get_item(intern!(globals.py(), "__name__"))?;
        let Some(name) = name.and_then(|name| name.cast_into::<PyString>().ok()) else {
            return Ok(Some(Self::User));
        };
        let name = name.to_cow()?;
        Ok(match name.split('.').next() {
            Some("xarray") => Some(Self::Xarray),
            Some("dask" | "distributed") => Some(Self::Dask),
            Some("dlfield" | "numpy" | "toolz" | "opt_einsum") => None,
            _ => Some(Self::User),
        })
    }
}

/// Return True if xarray or Dask calls, which have matched dims themselves: arrays go by position.
#[pyfunction]
pub(crate) fn has_matched_dims(py: Python<'_>) -> PyResult<bool> {
    Caller::of_now(py).map(Caller::has_matched)
}

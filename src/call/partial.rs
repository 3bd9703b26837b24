//! Arguments that `functools.partial` fixed before the stencil was bound.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySequence};

use crate::protocol::read::wrong_type;

/// The arguments that every call gets, as those of `functools.partial`.
#[derive(Default)]
pub(super) struct Partial {
    /// The number of them that were given without a name.
    pub(super) leading: usize,
    /// All of them by name.
    pub(super) arguments: Option<Py<PyDict>>,
    pub(super) origin: Option<Py<PyAny>>,
    pub(super) domain: Option<Py<PyAny>>,
    pub(super) exec_info: Option<Py<PyAny>>,
}

impl Partial {
    /// Reads the arguments by name, `leading` of which were given without one.
    pub(super) fn read((leading, given): (usize, Bound<'_, PyDict>)) -> PyResult<Self> {
        let given = given.copy()?;
        let option = |name: &str| -> PyResult<Option<Py<PyAny>>> {
            let value = given.get_item(name)?;
            if value.is_some() {
                given.del_item(name)?;
            }
            Ok(value.filter(|value| !value.is_none()).map(Bound::unbind))
        };
        let (origin, domain) = (option("origin")?, option("domain")?);
        let exec_info = option("exec_info")?;
        Ok(Self { leading, arguments: Some(given.unbind()), origin, domain, exec_info })
    }

    /// The dict for times: the caller's, or else that of the partial.
    pub(super) fn exec_info<'a, 'py>(
        &'a self,
        py: Python<'py>,
        given: Option<&'a Bound<'py, PyAny>>,
    ) -> PyResult<Option<&'a Bound<'py, PyAny>>> {
        let found = given.or(self.exec_info.as_ref().map(|own| own.bind(py)));
        let takes_items = |found: &Bound<'py, PyAny>| {
            let has = |name| found.hasattr(name).unwrap_or(false);
            found.cast::<PySequence>().is_err() && !has("__array__") && has("__setitem__")
        };
        match found.filter(|found| !takes_items(found)) {
            None => Ok(found),
            Some(other) => Err(wrong_type("exec_info", "a dict for times", other).into()),
        }
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.arguments)?;
        let options = [&self.origin, &self.domain, &self.exec_info];
        options.into_iter().try_for_each(|given| visit.call(given))
    }
}

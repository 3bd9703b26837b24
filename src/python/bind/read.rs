//! Reading a call: which value belongs to which name, origin and domain as GT4Py takes them.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::BoundStencil;
use crate::field::Dim;
use crate::layout::Extents;
use crate::python::options::ints;
use crate::stencil::{Access, FieldSpec};

/// One value for each name, in the order of the names.
pub(super) type Values<'py> = Vec<Option<Bound<'py, PyAny>>>;

/// Points along I, J, K.
pub(super) fn domain(domain: &Bound<'_, PyAny>) -> PyResult<[i64; 3]> {
    let points = ints("domain", domain)?;
    <[i64; 3]>::try_from(points.as_slice()).map_err(|_| {
        let text = format!("domain: expected 3 numbers for I, J, K, got {domain}");
        PyValueError::new_err(text)
    })
}

impl BoundStencil {
    /// Gives every argument its name, as Python itself does for a function.
    pub(super) fn assign<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Values<'py>> {
        let mut values: Values<'py> = args.iter().map(Some).collect();
        if values.len() > self.positional {
            let (most, got) = (self.positional, values.len());
            let what = format!("at most {most} arguments without a name, got {got}");
            return Err(self.wrong(args.py(), &what));
        }
        values.resize(self.names.len(), None);
        for (name, value) in kwargs.into_iter().flatten() {
            let name = name.cast_into::<PyString>()?;
            match self.place(&name, &mut values)? {
                Some(slot @ None) => *slot = Some(value),
                Some(_) => {
                    return Err(self.wrong(name.py(), &format!("one value for '{name}', got two")));
                }
                None => {
                    return Err(self.wrong(
                        name.py(),
                        &format!("these, origin, domain or exec_info, got '{name}'"),
                    ));
                }
            }
        }
        self.check_complete(args.py(), &values)?;
        Ok(values)
    }

    fn place<'a, 'py>(
        &self,
        name: &Bound<'py, PyString>,
        values: &'a mut Values<'py>,
    ) -> PyResult<Option<&'a mut Option<Bound<'py, PyAny>>>> {
        let known = |one: &Py<PyString>| {
            one.is(name) || one.bind(name.py()).as_any().eq(name).unwrap_or(false)
        };
        Ok(self.names.iter().position(known).and_then(|at| values.get_mut(at)))
    }

    fn check_complete(&self, py: Python<'_>, values: &Values<'_>) -> PyResult<()> {
        for (field, &at) in self.spec.fields.iter().zip(&self.fields_at) {
            if field.access != Access::Unused && !matches!(values.get(at), Some(Some(_))) {
                return Err(self.missing(py, &field.name));
            }
        }
        Ok(())
    }

    pub(super) fn missing(&self, py: Python<'_>, name: &str) -> PyErr {
        self.wrong(py, &format!("an argument '{name}', got none"))
    }

    fn wrong(&self, py: Python<'_>, what: &str) -> PyErr {
        let (name, names) = (&self.spec.name, self.listed(py));
        PyTypeError::new_err(format!("{name}({names}): expected {what}"))
    }

    /// `origin` is one for all fields, or a dict with names and `_all_`, as GT4Py has it.
    pub(super) fn origins(
        &self,
        origin: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Option<Extents>>> {
        let Some(origin) = origin else {
            return Ok(Vec::new());
        };
        let Ok(named) = origin.cast::<PyDict>() else {
            let all = ints("origin", origin)?;
            return Ok(self
                .spec
                .fields
                .iter()
                .map(|field| Some(on_axes_of(field, &all)))
                .collect());
        };
        self.check_origin_names(named)?;
        let all = named.get_item("_all_")?.map(|all| ints("origin", &all)).transpose()?;
        let own = |field: &FieldSpec| match named.get_item(&field.name)? {
            Some(own) => ints(&format!("origin of '{}'", field.name), &own).map(Some),
            None => Ok(all.as_ref().map(|all| on_axes_of(field, all))),
        };
        self.spec.fields.iter().map(own).collect()
    }

    fn check_origin_names(&self, named: &Bound<'_, PyDict>) -> PyResult<()> {
        for name in named.keys() {
            let name = name.str()?;
            let name = name.to_cow()?;
            if name != "_all_" && !self.spec.fields.iter().any(|field| field.name == name) {
                return Err(PyValueError::new_err(format!(
                    "origin: expected names of fields or '_all_', got '{name}'"
                )));
            }
        }
        Ok(())
    }
}

/// Of an origin along I, J, K the numbers for the axes that a field has.
fn on_axes_of(field: &FieldSpec, all: &Extents) -> Extents {
    let spatial = [Dim::I, Dim::J, Dim::K];
    if all.len() != spatial.len() {
        return all.clone(); // a field's own dimensions, or an error that resolve reports
    }
    let own = spatial.iter().zip(all).filter(|(dim, _)| field.dims.contains(dim));
    own.map(|(_, &at)| at).collect()
}

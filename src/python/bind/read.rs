//! Reading a call: which value belongs to which name, origin and domain as GT4Py takes them.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::BoundStencil;
use crate::layout::Extents;
use crate::python::options::ints;
use crate::stencil::{Access, FieldSpec, Request};

/// One value for each name, in the order of the names.
pub(super) type Values<'py> = Vec<Option<Bound<'py, PyAny>>>;

impl BoundStencil {
    /// Gives every argument its name, as Python itself does for a function.
    pub(super) fn assign<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Values<'py>> {
        let mut values: Values<'py> = args.iter().map(Some).collect();
        if values.len() > self.declared.positional {
            let (most, got) = (self.declared.positional, values.len());
            let what = format!("at most {most} arguments without a name, got {got}");
            return Err(self.wrong(args.py(), &what));
        }
        values.resize(self.declared.names.len(), None);
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
        Ok(self.declared.names.iter().position(known).and_then(|at| values.get_mut(at)))
    }

    /// Refuses a call without a field that the stencil uses.
    pub(super) fn check_complete(
        &self,
        py: Python<'_>,
        values: &Values<'_>,
        request: &Request,
    ) -> PyResult<()> {
        for (field, &at) in self.declared.spec.fields.iter().zip(&self.declared.fields_at) {
            let made = request.functional && field.access == Access::Write;
            let given = matches!(values.get(at), Some(Some(_)));
            if field.access != Access::Unused && !made && !given {
                return Err(self.missing(py, &field.name));
            }
        }
        Ok(())
    }

    /// What the call says about the iteration.
    pub(super) fn request(
        &self,
        origin: Option<&Bound<'_, PyAny>>,
        domain: Option<&Bound<'_, PyAny>>,
        functional: bool,
    ) -> PyResult<Request> {
        let spec = &self.declared.spec;
        let sizes_outputs = functional && spec.decides_domain;
        self.check_told("origin", origin, spec.told_origin)?;
        self.check_told("domain", domain, spec.told_domain || sizes_outputs)?;
        let domain = domain.map(|domain| ints("domain", domain)).transpose()?;
        Ok(Request { domain, origins: self.origins(origin)?, functional })
    }

    fn check_told(
        &self,
        option: &str,
        given: Option<&Bound<'_, PyAny>>,
        told: bool,
    ) -> PyResult<()> {
        if given.is_none() || told {
            return Ok(());
        }
        Err(PyTypeError::new_err(format!(
            "{option}: expected none for '{}', which is not told where to compute, got one; slice the arrays, or \
             give the stencil a parameter {option}",
            self.declared.spec.name
        )))
    }

    pub(super) fn missing(&self, py: Python<'_>, name: &str) -> PyErr {
        self.wrong(py, &format!("an argument '{name}', got none"))
    }

    fn wrong(&self, py: Python<'_>, what: &str) -> PyErr {
        let (name, names) = (&self.declared.spec.name, self.listed(py));
        PyTypeError::new_err(format!("{name}({names}): expected {what}"))
    }

    /// `origin` is one for all fields, or a dict with names and `_all_`, as GT4Py has it.
    fn origins(&self, origin: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Option<Extents>>> {
        let Some(origin) = origin else {
            return Ok(Vec::new());
        };
        let Ok(named) = origin.cast::<PyDict>() else {
            let all = ints("origin", origin)?;
            return Ok(self
                .declared
                .spec
                .fields
                .iter()
                .map(|field| Some(self.on_axes_of(field, &all)))
                .collect());
        };
        self.check_origin_names(named)?;
        let all = named.get_item("_all_")?.map(|all| ints("origin", &all)).transpose()?;
        let own = |field: &FieldSpec| match named.get_item(&field.name)? {
            Some(own) => ints(&format!("origin of '{}'", field.name), &own).map(Some),
            None => Ok(all.as_ref().map(|all| self.on_axes_of(field, all))),
        };
        self.declared.spec.fields.iter().map(own).collect()
    }

    fn check_origin_names(&self, named: &Bound<'_, PyDict>) -> PyResult<()> {
        for name in named.keys() {
            let name = name.str()?;
            let name = name.to_cow()?;
            if name != "_all_" && !self.declared.spec.fields.iter().any(|field| field.name == name)
            {
                return Err(PyValueError::new_err(format!(
                    "origin: expected names of fields or '_all_', got '{name}'"
                )));
            }
        }
        Ok(())
    }

    /// Of an origin along the axes of the iteration the numbers for those that a field has.
    fn on_axes_of(&self, field: &FieldSpec, all: &Extents) -> Extents {
        let axes = &self.declared.spec.axes;
        if all.len() != axes.len() {
            return all.clone(); // a field's own dimensions, or an error that resolve reports
        }
        let at = |dim| axes.iter().position(|axis| axis == dim).and_then(|at| all.get(at));
        field.dims.iter().filter_map(|dim| at(dim).copied()).collect()
    }
}

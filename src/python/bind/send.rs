//! From a plan to the stencil's `run`.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::BoundStencil;
use super::read::Values;
use crate::managed::Managed;
use crate::python::numpy::array_over;
use crate::stencil::{Access, Argument, CallPlan, FieldSpec};

impl BoundStencil {
    /// Calls the stencil with arrays in its own order of axes.
    ///
    /// Straight to `run`, which does what GT4Py's own call does once it has taken the arguments
    /// apart. With `exec_info` through that call, which keeps the times.
    pub(super) fn send(
        &self,
        py: Python<'_>,
        arguments: &[Option<Argument>],
        scalars: &Values<'_>,
        plan: &CallPlan,
        exec_info: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let keywords = PyDict::new(py);
        for (parameter, value) in self.parameters.iter().zip(scalars) {
            keywords.set_item(self.names.get(parameter.at), value)?;
        }
        self.put_fields(arguments, plan, &keywords)?;
        let (domain, origins) = (PyTuple::new(py, plan.domain)?, self.origin_dict(py, plan)?);
        keywords.set_item(intern!(py, "exec_info"), exec_info)?;
        let stencil = self.stencil.bind(py);
        if exec_info.is_some() {
            keywords.set_item(intern!(py, "domain"), domain)?;
            keywords.set_item(intern!(py, "origin"), origins)?;
            stencil.call((), Some(&keywords))?;
        } else {
            keywords.set_item(intern!(py, "_domain_"), domain)?;
            keywords.set_item(intern!(py, "_origin_"), origins)?;
            stencil.call_method(intern!(py, "run"), (), Some(&keywords))?;
        }
        Ok(())
    }

    fn put_fields(
        &self,
        arguments: &[Option<Argument>],
        plan: &CallPlan,
        keywords: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        let py = keywords.py();
        let fields = self.spec.fields.iter().zip(&self.fields_at);
        for ((field, &at), (argument, axes)) in fields.zip(arguments.iter().zip(&plan.axes)) {
            let array = match (argument, axes) {
                (Some(argument), Some(axes)) => {
                    let ordered = argument.managed.permute(axes)?;
                    Some(array_over(py, &ordered, self.shown_readonly(field, &ordered))?)
                }
                _ => None,
            };
            keywords.set_item(self.names.get(at), array)?;
        }
        Ok(())
    }

    /// GT4Py's compiled backends ask for a writable buffer even where they only read. Such a field
    /// gets a view that claims to be writable; it lives for this call and reaches no user object.
    fn shown_readonly(&self, field: &FieldSpec, managed: &Managed) -> bool {
        managed.readonly() && !(self.spec.typed && field.access == Access::Read)
    }

    fn origin_dict<'py>(&self, py: Python<'py>, plan: &CallPlan) -> PyResult<Bound<'py, PyDict>> {
        let origins = PyDict::new(py);
        for (&at, origin) in self.fields_at.iter().zip(&plan.origins) {
            origins.set_item(self.names.get(at), PyTuple::new(py, origin)?)?;
        }
        Ok(origins)
    }
}

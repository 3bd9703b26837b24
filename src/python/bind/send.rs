//! From a plan to the stencil's `run`.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::BoundStencil;
use super::argument::Incoming;
use super::device_array::DeviceArray;
use super::read::Values;
use super::stage::Staged;
use crate::device::Target;
use crate::managed::Managed;
use crate::python::numpy::array_over;
use crate::stencil::{Access, Argument, CallPlan, FieldPlan, FieldSpec};

impl BoundStencil {
    /// Everything that `run` gets: arrays in the declared order of axes, scalars, where to compute.
    pub(super) fn keywords<'py>(
        &self,
        py: Python<'py>,
        incoming: &Incoming<'py>,
        scalars: &Values<'py>,
        plan: &CallPlan,
        staged: &Staged,
    ) -> PyResult<Bound<'py, PyDict>> {
        let keywords = PyDict::new(py);
        for (parameter, value) in self.declared.parameters.iter().zip(scalars) {
            keywords.set_item(self.name(py, parameter.at), value)?;
        }
        let origins = PyDict::new(py);
        let fields = self.declared.spec.fields.iter().zip(&self.declared.fields_at);
        for (at, ((field, &position), plan)) in fields.zip(&plan.fields).enumerate() {
            let name = self.name(py, position);
            let array = match plan {
                Some(plan) => Some(self.array(py, at, field, plan, incoming, staged)?),
                None => None,
            };
            keywords.set_item(name, array)?;
            match plan {
                Some(plan) => origins.set_item(name, PyTuple::new(py, &plan.origin)?)?,
                None => origins.set_item(name, PyTuple::new(py, vec![0; field.dims.len()])?)?,
            }
        }
        keywords.set_item(intern!(py, "_domain_"), PyTuple::new(py, &plan.domain)?)?;
        keywords.set_item(intern!(py, "_origin_"), origins)?;
        Ok(keywords)
    }

    fn name<'a, 'py>(&'a self, py: Python<'py>, at: usize) -> Option<&'a Bound<'py, PyAny>> {
        self.declared.names.get(at).map(|name| name.bind(py).as_any())
    }

    fn array<'py>(
        &self,
        py: Python<'py>,
        at: usize,
        field: &FieldSpec,
        plan: &FieldPlan,
        incoming: &Incoming<'py>,
        staged: &Staged,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(copy) = staged.given(at) {
            return self.over(py, copy, false);
        }
        let Some(Some(argument)) = incoming.arguments.get(at) else {
            return Ok(py.None().into_bound(py));
        };
        let readonly = self.shown_readonly(field, &argument.managed);
        let in_order = plan.axes.iter().enumerate().all(|(at, &axis)| at == axis);
        let plain = incoming.beside.get(at).and_then(|one| one.plain.as_ref());
        let as_it_was = incoming.is_undisturbed() && readonly == argument.managed.readonly();
        match plain.filter(|_| in_order && as_it_was) {
            Some(plain) => Ok(plain.clone()),
            None if in_order => self.over(py, &argument.managed, readonly),
            None => self.over(py, &argument.managed.permute(&plan.axes)?, readonly),
        }
    }

    fn over<'py>(
        &self,
        py: Python<'py>,
        managed: &Managed,
        readonly: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.declared.spec.target {
            Target::Host => array_over(py, managed, readonly),
            Target::Gpu(_) => {
                Ok(Bound::new(py, DeviceArray::new(managed.clone(), readonly))?.into_any())
            }
        }
    }

    /// GT4Py's compiled backends ask for a writable buffer even where they only read. Such a field
    /// gets a view that claims to be writable; it lives for this call, is none any more once the run
    /// has ended ([`Self::revoke`]), and reaches no user object.
    fn shown_readonly(&self, field: &FieldSpec, managed: &Managed) -> bool {
        managed.readonly() && !(self.declared.asks_writable && field.access == Access::Read)
    }

    /// Takes back that views of read-only memory are writable: a traceback may keep them.
    pub(super) fn revoke(
        &self,
        py: Python<'_>,
        incoming: &Incoming<'_>,
        keywords: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        let fields = self.declared.spec.fields.iter().zip(&self.declared.fields_at);
        for ((field, &position), argument) in fields.zip(&incoming.arguments) {
            let claimed = |one: &Argument| {
                one.managed.readonly() && !self.shown_readonly(field, &one.managed)
            };
            if argument.as_ref().is_some_and(claimed)
                && let Some(array) = keywords.get_item(self.name(py, position))?
                && self.declared.spec.target == Target::Host
            {
                let frozen = PyDict::new(py);
                frozen.set_item(intern!(py, "write"), false)?;
                array.call_method(intern!(py, "setflags"), (), Some(&frozen))?;
            }
        }
        Ok(())
    }

    /// Runs the stencil.
    ///
    /// Straight to `run`, which does what GT4Py's own call does once it has taken the arguments
    /// apart. With `exec_info` through the stencil's own call where it has one, which keeps more
    /// times.
    pub(super) fn run(
        &self,
        py: Python<'_>,
        keywords: &Bound<'_, PyDict>,
        exec_info: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        match (&self.own_call, exec_info) {
            (Some(call), Some(exec_info)) => {
                for (own, theirs) in [("_domain_", "domain"), ("_origin_", "origin")] {
                    let value = keywords.get_item(own)?;
                    keywords.del_item(own)?;
                    keywords.set_item(theirs, value)?;
                }
                keywords.set_item(intern!(py, "exec_info"), exec_info)?;
                call.bind(py).call((), Some(keywords))?;
            }
            _ => {
                keywords.set_item(intern!(py, "exec_info"), exec_info)?;
                self.runner.bind(py).call_method(intern!(py, "run"), (), Some(keywords))?;
            }
        }
        Ok(())
    }
}

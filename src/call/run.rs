//! Steps 5 and 6 of a call: from a plan and its copies to the stencil's `run`.

use std::iter::repeat_n;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::declared::OFFSET_PROVIDER;
use super::hooks::first_of;
use super::in_order::InOrder;
use super::incoming::Incoming;
use super::planned::{Planned, PlannedField};
use super::staged::{Staged, copy_to_device};
use crate::cuda::device_count;
use crate::device::Target;
use crate::managed::Managed;
use crate::protocol::{Request, import};
use crate::python::device_array::PyDeviceArray;
use crate::python::numpy::{array_over, dtype_to};
use crate::stencil::FieldSpec;
use crate::storage::Spec;

/// A run that has all its arguments.
pub(super) struct Run<'a, 'py> {
    pub(super) call: &'a Planned<'a, 'py>,
    /// Arrays in the declared order of axes, scalars, origin and domain.
    pub(super) keywords: Bound<'py, PyDict>,
    /// For a stencil that leaves its work on the stream of its GPU.
    in_order: Option<InOrder>,
}

impl<'a, 'py> Run<'a, 'py> {
    pub(super) fn new(
        py: Python<'py>,
        call: &'a Planned<'a, 'py>,
        staged: &Staged<'_>,
    ) -> PyResult<Self> {
        let (declared, keywords) = (call.declared, PyDict::new(py));
        let mut in_order = InOrder::new(call)?;
        for (&(at, _), value) in declared.scalars.iter().zip(&call.values.scalars) {
            keywords.set_item(declared.name(py, at), value)?;
        }
        let origins = PyDict::new(py);
        for field in call.fields() {
            let name = declared.name(py, field.name_at);
            keywords.set_item(name, array(py, call, field, staged, &mut in_order)?)?;
            let origin = match field.given {
                Some((_, plan)) => PyTuple::new(py, &plan.origin)?,
                None => PyTuple::new(py, vec![0; field.spec.dims.len()])?,
            };
            origins.set_item(name, origin)?;
        }
        if let Some(connectivities) = &call.values.connectivities {
            keywords.set_item(intern!(py, OFFSET_PROVIDER), connectivities)?;
        }
        keywords.set_item(intern!(py, "_domain_"), call.domain(py)?)?;
        keywords.set_item(intern!(py, "_origin_"), origins)?;
        keywords.set_item(intern!(py, "exec_info"), py.None())?;
        Ok(Self { call, keywords, in_order })
    }

    /// Runs the stencil, if it has anything to do.
    pub(super) fn run(&self, py: Python<'_>, exec_info: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        if !self.call.runs() {
            return Ok(());
        }
        let (runner, keywords) = (self.call.runner, &self.keywords);
        let outcome = match &self.in_order {
            Some(in_order) => in_order.run(self.call, keywords, exec_info),
            None => runner.run(py, keywords, exec_info),
        };
        first_of(py, outcome, self.revoke(py))
    }

    /// Makes views of read-only memory read-only again: a traceback may keep them.
    fn revoke(&self, py: Python<'_>) -> PyResult<()> {
        let (call, declared) = (self.call, self.call.declared);
        let on_host = declared.spec.target == Target::Host;
        for field in call.fields().filter(|_| on_host) {
            let incoming = field.given.map(|given| given.0).or(field.unused);
            let claims_writable = incoming.is_some_and(|incoming| {
                incoming.argument.managed.readonly() && !call.is_readonly(incoming)
            });
            if claims_writable
                && let Some(array) = self.keywords.get_item(declared.name(py, field.name_at))?
            {
                let frozen = PyDict::new(py);
                frozen.set_item(intern!(py, "write"), false)?;
                array.call_method(intern!(py, "setflags"), (), Some(&frozen))?;
            }
        }
        Ok(())
    }
}

/// The array that `run` gets for a field: a copy, the user's own array if it will do, or a view.
fn array<'py>(
    py: Python<'py>,
    call: &Planned<'_, 'py>,
    field: PlannedField<'_>,
    staged: &Staged<'_>,
    going_on: &mut Option<InOrder>,
) -> PyResult<Bound<'py, PyAny>> {
    let target = call.declared.spec.target;
    let Some((incoming, plan)) = field.given else {
        return match field.unused {
            Some(incoming) => unused(py, call, field.spec, incoming, going_on),
            None => spare(py, call, field.spec, going_on),
        };
    };
    if let Some(copy) = staged.given(field.at) {
        return view(py, target, copy, false, going_on);
    }
    let (managed, readonly) = (&incoming.argument.managed, call.is_readonly(incoming));
    let in_order = plan.axes.iter().enumerate().all(|(at, &axis)| at == axis);
    match &incoming.array {
        Some(own) if in_order && call.undisturbed && readonly == managed.readonly() => {
            Ok(own.bind(py).clone())
        }
        _ if in_order => view(py, target, managed, readonly, going_on),
        _ => view(py, target, &managed.permute(&plan.axes)?, readonly, going_on),
    }
}

/// The array of a field that GT4Py has left out of its code, whose arguments it still unpacks; a
/// spare one if the stencil does not reach the memory.
fn unused<'py>(
    py: Python<'py>,
    call: &Planned<'_, 'py>,
    spec: &FieldSpec,
    incoming: &Incoming,
    going_on: &mut Option<InOrder>,
) -> PyResult<Bound<'py, PyAny>> {
    let (target, argument) = (call.declared.spec.target, &incoming.argument);
    if !target.reaches(argument.managed.device()) {
        return spare(py, call, spec, going_on);
    }
    let find = |wanted| argument.dims.as_ref()?.iter().position(|dim| dim == wanted);
    let axes: Option<Vec<usize>> = spec.dims.iter().map(find).collect();
    let by_name = axes.and_then(|axes| argument.managed.permute(&axes).ok());
    let managed = by_name.as_ref().unwrap_or(&argument.managed);
    view(py, target, managed, call.is_readonly(incoming), going_on)
}

/// An array of one point for a field that GT4Py has left out of its code, and that is missing. On a
/// GPU without a driver it is `None`.
fn spare<'py>(
    py: Python<'py>,
    call: &Planned<'_, 'py>,
    spec: &FieldSpec,
    going_on: &mut Option<InOrder>,
) -> PyResult<Bound<'py, PyAny>> {
    let target = call.declared.spec.target;
    if target != Target::Host && device_count().is_err() {
        return Ok(py.None().into_bound(py)); // no memory can be had there
    }
    let points = spec.dims.len().saturating_sub(spec.data_shape.len());
    let shape: Vec<i64> = repeat_n(1, points).chain(spec.data_shape.iter().copied()).collect();
    let zeros = py.import(intern!(py, "numpy"))?.getattr(intern!(py, "zeros"))?;
    let array = zeros.call1((shape, dtype_to(py, spec.dtype)?))?;
    if target == Target::Host {
        return Ok(array);
    }
    let memory = import(&array, Request::SHARED)?.memory;
    let (copied, _) = copy_to_device(py, call.runner, target, &memory, &Spec::default())?;
    view(py, target, &copied, false, going_on)
}

fn view<'py>(
    py: Python<'py>,
    target: Target,
    managed: &Managed,
    readonly: bool,
    going_on: &mut Option<InOrder>,
) -> PyResult<Bound<'py, PyAny>> {
    let array = match (target, going_on) {
        (Target::Host, _) => return array_over(py, managed, readonly),
        (Target::Gpu(_), None) => PyDeviceArray::new(managed.clone(), readonly),
        (Target::Gpu(_), Some(going_on)) => going_on.array(managed, readonly)?,
    };
    Ok(Bound::new(py, array)?.into_any())
}

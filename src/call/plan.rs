//! A plan as Python reads it, for `explain` and for the functional form. The attributes are
//! documented in `_core.pyi`.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::declared::{decided_by_name, name_of};
use super::incoming::{Incoming, IncomingFields};
use super::planned::{Planned, PlannedField};
use crate::device::{DeviceKind, Target};
use crate::field::{Dim, Dims};
use crate::stencil::{Along, FieldPlan, Range};

/// The plan of a call of a bound stencil.
#[pyclass(frozen, get_all, name = "CallPlan", module = "dlfield._core")]
pub(super) struct PyCallPlan {
    axes: Py<PyTuple>,
    domain: Py<PyTuple>,
    start: Py<PyTuple>,
    halo: Py<PyTuple>,
    output_halo: Py<PyTuple>,
    slow: Py<PyTuple>,
    fields: Py<PyDict>,
    takes: Py<PyTuple>,
    device: Py<PyAny>,
    backend: Option<&'static str>,
    collections: Py<PyDict>,
    decided_by: &'static str,
    checked: String,
}

/// A field of a stencil in a `CallPlan`, as declared, with the array that was given for it.
#[pyclass(frozen, get_all, name = "FieldPlan", module = "dlfield._core")]
pub(super) struct PyFieldPlan {
    access: &'static str,
    dtype: &'static str,
    dims: Py<PyTuple>,
    data_shape: Py<PyTuple>,
    reads: Option<Py<PyTuple>>,
    writes: Option<Py<PyTuple>>,
    complete: bool,
    layout: Option<Py<PyTuple>>,
    alignment_size: usize,
    given: Option<Py<PyGivenArray>>,
}

/// The array that was given for a field, in its own order of axes.
#[pyclass(frozen, get_all, name = "GivenArray", module = "dlfield._core")]
pub(super) struct PyGivenArray {
    door: Option<&'static str>,
    shape: Py<PyTuple>,
    strides: Py<PyTuple>,
    device: String,
    readonly: bool,
    dims: Option<Py<PyTuple>>,
    axes: Py<PyTuple>,
    origin: Py<PyTuple>,
    copy: Option<String>,
}

impl PyCallPlan {
    pub(super) fn new(py: Python<'_>, call: &Planned<'_, '_>) -> PyResult<Self> {
        let (spec, plan, fields) = (&call.declared.spec, &call.plan, PyDict::new(py));
        for field in call.fields() {
            fields.set_item(&field.spec.name, PyFieldPlan::new(py, field)?)?;
        }
        let takes = [
            ("origin", spec.decided_by.takes_origin()),
            ("domain", spec.decided_by.takes_domain()),
        ];
        let takes: Vec<_> = takes.into_iter().filter(|one| one.1).map(|one| one.0).collect();
        Ok(Self {
            axes: names(py, &spec.axes)?,
            domain: PyTuple::new(py, &plan.domain)?.unbind(),
            start: PyTuple::new(py, &plan.start)?.unbind(),
            halo: PyTuple::new(py, plan.halo.iter().copied())?.unbind(),
            output_halo: PyTuple::new(py, plan.output_halo.iter().copied())?.unbind(),
            slow: PyTuple::new(py, &plan.slow)?.unbind(),
            fields: fields.unbind(),
            takes: PyTuple::new(py, takes)?.unbind(),
            device: device(py, spec.target, &call.fields)?.unbind(),
            backend: Some(spec.backend).filter(|name| !name.is_empty()),
            collections: call.declared.collections.clone_ref(py),
            decided_by: decided_by_name(spec.decided_by),
            checked: checked(call),
        })
    }
}

#[pymethods]
impl PyCallPlan {
    /// Visits the dicts, which their holder may change; everything else is numbers and texts.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.fields)?;
        visit.call(&self.collections)
    }
}

/// "checked", unless the declaration or a field of this call says less.
fn checked(call: &Planned<'_, '_>) -> String {
    let known = &call.declared.checked;
    let is_complete = |field: &FieldPlan| field.touched.complete;
    match known == "checked" && !call.plan.fields.iter().flatten().all(is_complete) {
        true => "partly checked".into(),
        false => known.clone(),
    }
}

impl PyFieldPlan {
    fn new(py: Python<'_>, field: PlannedField<'_>) -> PyResult<Self> {
        let (spec, given) = (field.spec, field.given);
        let given = given.map(|(incoming, plan)| PyGivenArray::new(py, incoming, plan));
        let touched = field.given.map(|(_, plan)| plan.touched.clone()).unwrap_or_default();
        let range = |ranges: Along<Range>| PyTuple::new(py, ranges).map(Bound::unbind);
        let layout = spec.ranks.as_ref().map(|ranks| PyTuple::new(py, ranks)).transpose()?;
        Ok(Self {
            access: name_of(spec.access),
            dtype: spec.dtype.name(),
            dims: names(py, &spec.dims)?,
            data_shape: PyTuple::new(py, &spec.data_shape)?.unbind(),
            reads: touched.reads.map(range).transpose()?,
            writes: touched.writes.map(range).transpose()?,
            complete: touched.complete,
            layout: layout.map(Bound::unbind),
            alignment_size: spec.alignment.max(1),
            given: given.transpose()?.map(|given| Py::new(py, given)).transpose()?,
        })
    }
}

impl PyGivenArray {
    fn new(py: Python<'_>, incoming: &Incoming, plan: &FieldPlan) -> PyResult<Self> {
        let (argument, managed) = (&incoming.argument, &incoming.argument.managed);
        Ok(Self {
            door: incoming.door,
            shape: PyTuple::new(py, managed.layout().shape())?.unbind(),
            strides: PyTuple::new(py, managed.layout().strides())?.unbind(),
            device: managed.device().to_string(),
            readonly: managed.readonly(),
            dims: argument.dims.as_ref().map(|dims| names(py, dims)).transpose()?,
            axes: PyTuple::new(py, &plan.axes)?.unbind(),
            origin: PyTuple::new(py, &plan.origin)?.unbind(),
            copy: plan.copy.as_ref().map(|copy| copy.text().to_owned()),
        })
    }
}

fn device<'py>(
    py: Python<'py>,
    target: Target,
    fields: &IncomingFields,
) -> PyResult<Bound<'py, PyAny>> {
    let number = match target {
        Target::Host => return Ok(py.None().into_bound(py)),
        Target::Gpu(number) => number.or_else(|| first_gpu(fields)),
    };
    match number {
        Some(number) => Ok(("gpu", number).into_pyobject(py)?.into_any()),
        None => Ok(intern!(py, "gpu").clone().into_any()),
    }
}

/// The GPU on which a stencil that takes any GPU will compute: that of its arguments.
fn first_gpu(fields: &IncomingFields) -> Option<i32> {
    let devices = || fields.arguments().flatten().map(|one| one.managed.device());
    let alone = devices().find(|one| matches!(one.kind, DeviceKind::Cuda | DeviceKind::Rocm));
    let managed = || devices().find(|one| one.kind == DeviceKind::CudaManaged);
    alone.or_else(managed).map(|one| one.ordinal)
}

fn names(py: Python<'_>, dims: &Dims) -> PyResult<Py<PyTuple>> {
    Ok(PyTuple::new(py, dims.iter().map(Dim::to_string))?.unbind())
}

//! A plan as Python reads it, for `explain` and for the functional form.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::BoundStencil;
use super::argument::Incoming;
use crate::device::{DeviceKind, Target};
use crate::field::{Dim, Dims};
use crate::stencil::{Access, Argument, CallPlan, FieldPlan, FieldSpec, Mismatch};

impl BoundStencil {
    /// `domain`, `halo` and `axes` of the iteration; `slow`; and for each field what became of it.
    pub(super) fn shown<'py>(
        &self,
        py: Python<'py>,
        incoming: &Incoming<'_>,
        plan: &CallPlan,
    ) -> PyResult<Bound<'py, PyDict>> {
        let shown = PyDict::new(py);
        let fields = PyDict::new(py);
        let spec = &self.declared.spec;
        for (at, (field, plan)) in spec.fields.iter().zip(&plan.fields).enumerate() {
            let argument = incoming.arguments.get(at).and_then(Option::as_ref);
            let door = incoming.beside.get(at).and_then(|one| one.door);
            fields.set_item(&field.name, one(py, field, argument.zip(plan.as_ref()), door)?)?;
        }
        shown.set_item("fields", fields)?;
        shown.set_item("axes", names(py, &spec.axes)?)?;
        shown.set_item("domain", PyTuple::new(py, &plan.domain)?)?;
        shown.set_item("halo", PyTuple::new(py, plan.halo.iter().copied())?)?;
        shown.set_item("slow", &plan.slow)?;
        let takes = [("origin", spec.told_origin), ("domain", spec.told_domain)];
        let takes = takes.into_iter().filter(|one| one.1).map(|one| one.0);
        shown.set_item("around", PyTuple::new(py, plan.around.iter().copied())?)?;
        shown.set_item("takes", PyTuple::new(py, takes.collect::<Vec<_>>())?)?;
        let device = match (spec.target, first_gpu(incoming)) {
            (Target::Host, _) => py.None().into_bound(py),
            (Target::Gpu(Some(number)), _) | (Target::Gpu(None), Some(number)) => {
                ("gpu", number).into_pyobject(py)?.into_any()
            }
            (Target::Gpu(None), None) => intern!(py, "gpu").clone().into_any(),
        };
        shown.set_item("device", device)?;
        shown.set_item("backend", Some(spec.backend).filter(|name| !name.is_empty()))?;
        Ok(shown)
    }
}

/// Where a stencil that takes any GPU will compute: all of its arguments have to be on one.
fn first_gpu(incoming: &Incoming<'_>) -> Option<i32> {
    let arguments = incoming.arguments.iter().flatten();
    let devices = || arguments.clone().map(|one| one.managed.device());
    let alone = devices().find(|one| matches!(one.kind, DeviceKind::Cuda | DeviceKind::Rocm));
    let managed = || devices().find(|one| one.kind == DeviceKind::CudaManaged);
    alone.or_else(managed).map(|one| one.ordinal)
}

fn one<'py>(
    py: Python<'py>,
    field: &FieldSpec,
    found: Option<(&Argument, &FieldPlan)>,
    door: Option<&'static str>,
) -> PyResult<Bound<'py, PyDict>> {
    let shown = PyDict::new(py);
    shown.set_item("access", access(field.access))?;
    shown.set_item("dtype", field.dtype.name())?;
    shown.set_item("dims", names(py, &field.dims)?)?;
    shown.set_item("layout", field.ranks.as_ref().map(|one| PyTuple::new(py, one)).transpose()?)?;
    shown.set_item("alignment_size", field.alignment.max(1))?;
    shown.set_item("data_shape", PyTuple::new(py, &field.data_shape)?)?;
    let Some((argument, plan)) = found else { return Ok(shown) };
    let layout = argument.managed.layout();
    shown.set_item("door", door)?;
    shown.set_item("shape", PyTuple::new(py, layout.shape())?)?;
    shown.set_item("strides", PyTuple::new(py, layout.strides())?)?;
    shown.set_item("device", argument.managed.device().to_string())?;
    shown.set_item("readonly", argument.managed.readonly())?;
    shown.set_item("own_dims", argument.dims.as_ref().map(|dims| names(py, dims)).transpose()?)?;
    shown.set_item("axes", PyTuple::new(py, &plan.axes)?)?;
    shown.set_item("origin", PyTuple::new(py, &plan.origin)?)?;
    shown.set_item("copy", plan.copy.as_ref().map(text))?;
    Ok(shown)
}

fn access(access: Access) -> &'static str {
    match access {
        Access::Unused => "unused",
        Access::Read => "read",
        Access::Write => "write",
        Access::Update => "update",
    }
}

fn text(mismatch: &Mismatch) -> &str {
    match mismatch {
        Mismatch::Device(text) | Mismatch::Memory(text) => text,
    }
}

fn names<'py>(py: Python<'py>, dims: &Dims) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, dims.iter().map(Dim::to_string))
}

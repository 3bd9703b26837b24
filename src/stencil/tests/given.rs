//! Stencils and arguments for the tests.

use std::collections::HashMap;

pub(super) use smallvec::smallvec;

pub(super) use crate::alloc::{Fill, allocate, plan};
pub(super) use crate::device::{Device, Target};
pub(super) use crate::dtype::DType;
pub(super) use crate::error::Result;
pub(super) use crate::field::{Dim, Dims, Halo};
pub(super) use crate::managed::Managed;
pub(super) use crate::stencil::{
    Access, Argument, CallOptions, CallPlan, DecidedBy, FieldSpec, Mismatch, StencilSpec,
};

pub(super) fn resolve(
    spec: &StencilSpec,
    arguments: &[Option<Argument>],
    options: &CallOptions,
) -> Result<CallPlan> {
    crate::stencil::resolve(spec, arguments.iter().map(Option::as_ref), options)
}

pub(super) fn dims(names: &str) -> Dims {
    names.chars().map(|name| Dim::from_name(&name.to_string())).collect()
}

pub(super) fn memory(shape: &[i64]) -> Managed {
    let ranks: Vec<i64> = (0..).take(shape.len()).collect();
    allocate(&plan(shape, DType::Float64, &ranks, 1, &[]).unwrap(), Fill::Zeros).unwrap()
}

pub(super) fn argument(shape: &[i64], names: Option<&str>, width: i64) -> Option<Argument> {
    let halo: Halo = shape
        .iter()
        .enumerate()
        .map(|(axis, _)| if axis < 2 { (width, width) } else { (0, 0) })
        .collect();
    let managed = memory(shape);
    Some(Argument {
        managed,
        dims: names.map(dims),
        halo: Some(halo),
        origin: None,
        kind: "a read-only array",
        copied: None,
    })
}

pub(super) fn field(name: &str, names: &str, access: Access, reach: i64) -> FieldSpec {
    let width = |dim: &Dim| if matches!(dim, Dim::I | Dim::J) { (reach, reach) } else { (0, 0) };
    FieldSpec {
        name: name.into(),
        dims: dims(names),
        data_shape: smallvec![],
        dtype: DType::Float64,
        access,
        reach: dims(names).iter().map(width).collect(),
        across: dims(names).iter().map(|_| (0, 0)).collect(),
        across_at_most: dims(names).iter().map(|_| (0, 0)).collect(),
        reach_known: true,
        ranks: None,
        fast: None,
        alignment: 1,
    }
}

pub(super) fn stencil() -> StencilSpec {
    let fields = vec![field("inp", "IJK", Access::Read, 1), field("out", "IJK", Access::Write, 0)];
    StencilSpec {
        name: "lap".into(),
        fields,
        dims: HashMap::new(),
        axes: dims("IJK"),
        min_points: smallvec![],
        typed: true,
        target: Target::Host,
        backend: "gt:cpu_kfirst",
        decided_by: DecidedBy::Fields,
        takes_origin: true,
        takes_domain: true,
        runs_empty: false,
        copy_device: false,
        copy_memory: false,
    }
}

pub(super) fn origin(plan: &CallPlan, field: usize) -> &[i64] {
    plan.fields[field].as_ref().map_or(&[], |field| &field.origin)
}

pub(super) fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().to_string()
}

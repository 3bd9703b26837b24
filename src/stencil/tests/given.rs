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
    Access, Along, Argument, CallOptions, CallPlan, DecidedBy, Declared, FieldSpec, Mismatch, Span,
    StencilSpec, Touched,
};

pub(super) fn resolve(
    spec: &StencilSpec,
    arguments: &[Option<Argument>],
    options: &CallOptions,
) -> Result<CallPlan> {
    crate::stencil::resolve(spec, arguments.iter().map(Option::as_ref), options, &Declared)
        .map(|(plan, ())| plan)
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

/// A footprint of so many points below and above the domain along each axis.
pub(super) fn touched(access: Access, widths: impl Iterator<Item = (i64, i64)>) -> Touched<Span> {
    let span = |(below, above)| Span { below, above, ..Span::default() };
    let spans: Along<Span> = widths.map(span).collect();
    let pointwise = spans.iter().all(|span| *span == Span::default());
    let reads = matches!(access, Access::Read | Access::Update).then(|| spans.clone());
    let writes = access.writes().then_some(spans);
    Touched { reads, writes, complete: true, pointwise }
}

pub(super) fn field(name: &str, names: &str, access: Access, reach: i64) -> FieldSpec {
    let width = |dim: &Dim| if matches!(dim, Dim::I | Dim::J) { (reach, reach) } else { (0, 0) };
    FieldSpec {
        name: name.into(),
        dims: dims(names),
        data_shape: smallvec![],
        dtype: DType::Float64,
        access,
        touched: touched(access, dims(names).iter().map(width)),
        overtaken_by: Vec::new(),
        ranks: None,
        fast: None,
        unit: None,
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
        smallest: smallvec![],
        smallest_because: String::new(),
        typed: true,
        target: Target::Host,
        backend: "gt:cpu_kfirst",
        decided_by: DecidedBy::Fields,
        runs_empty: false,
        copy_device: false,
        in_order: false,
        copy_memory: false,
    }
}

pub(super) fn origin(plan: &CallPlan, field: usize) -> &[i64] {
    plan.fields[field].as_ref().map_or(&[], |field| &field.origin)
}

pub(super) fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().to_string()
}

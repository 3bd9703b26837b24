//! What would be undefined behaviour in a stencil, asked at every call.

use super::{Access, Argument, Bound, FieldSpec, StencilSpec};
use crate::error::{Error, Result};
use crate::layout::may_overlap;
use crate::managed::Managed;

const NAMES: [&str; 3] = ["I", "J", "K"];

/// The element types must agree: a stencil reads the bytes as the type it was compiled for.
pub(super) fn check_dtype(spec: &FieldSpec, argument: &Argument) -> Result<()> {
    let got = argument.managed.dtype();
    if got == spec.dtype {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "argument '{}': expected dtype {}, got {got}; convert it with astype('{}') (in torch with to), \
         or compile the stencil for {got}",
        spec.name, spec.dtype, spec.dtype
    )))
}

/// Everything that needs origin and domain, and the rest.
pub(super) fn check(spec: &StencilSpec, bound: &[Bound<'_>], domain: [i64; 3]) -> Result<()> {
    for field in bound {
        check_memory(spec, field)?;
        check_data_shape(field)?;
        check_bounds(field, domain)?;
    }
    check_outputs(bound)?;
    check_inputs(bound, domain)
}

fn check_memory(spec: &StencilSpec, field: &Bound<'_>) -> Result<()> {
    let managed = &field.argument.managed;
    let refuse = |text: String| Error::Buffer(format!("argument '{}': {text}", field.spec.name));
    if !managed.device().is_host() {
        return Err(refuse(format!(
            "expected host memory, got {}; copy it to the host first",
            managed.device()
        )));
    }
    if spec.typed && !managed.is_aligned() {
        return Err(refuse(format!(
            "expected items aligned to {} bytes, got address {:#x}; pass a copy, for example x.copy()",
            managed.dtype().alignment(),
            managed.address()
        )));
    }
    if field.spec.access == Access::Write && managed.layout().overlaps_itself() {
        return Err(refuse(format!(
            "expected an output with an element for every index, got strides of {:?} elements that name \
             some twice; pass a copy",
            managed.layout().strides()
        )));
    }
    if field.spec.access == Access::Write && managed.readonly() {
        return Err(refuse(format!(
            "expected a writable output, got {}; write into a dlfield storage or a NumPy array instead",
            field.argument.kind
        )));
    }
    Ok(())
}

fn check_data_shape(field: &Bound<'_>) -> Result<()> {
    let spatial = field.spatial().count();
    let got = field.shape.get(spatial..).unwrap_or_default();
    if got == field.spec.data_shape.as_slice() {
        return Ok(());
    }
    Err(field.error(format!(
        "expected data dimensions of {:?}, got {got:?}",
        field.spec.data_shape.as_slice()
    )))
}

fn check_bounds(field: &Bound<'_>, domain: [i64; 3]) -> Result<()> {
    for (axis, at) in field.spatial() {
        let (below, above) = field.spec.reach[axis];
        let origin = field.origin.as_ref().and_then(|origin| origin.get(at).copied()).unwrap_or(0);
        let extent = field.shape.get(at).copied().unwrap_or(0);
        if origin < below.max(0) {
            return Err(field.error(format!(
                "expected an origin of at least {} along {}, as many points as the stencil reaches \
                 below the domain, got {origin}; pass origin=, or a storage with a halo",
                below.max(0),
                NAMES[axis]
            )));
        }
        check_inner_reach(field, axis, origin, extent, domain[axis])?;
        let end = origin.checked_add(domain[axis]).and_then(|end| end.checked_add(above));
        if end.is_none_or(|end| end > extent) {
            return Err(field.error(format!(
                "expected at least {origin} + {} + {above} points along {} (origin, domain, reach of the \
                 stencil), got {extent}; pass a larger array or a smaller domain=",
                domain[axis], NAMES[axis]
            )));
        }
    }
    Ok(())
}

/// A negative reach: the stencil begins above the first or ends below the last point of the domain,
/// because it uses the field in some interval only. What it reaches there must exist as well.
fn check_inner_reach(
    field: &Bound<'_>,
    axis: usize,
    origin: i64,
    extent: i64,
    points: i64,
) -> Result<()> {
    let (below, above) = field.spec.reach[axis];
    let first = origin.saturating_sub(below.min(0));
    let last = origin.saturating_add(points).saturating_sub(1).saturating_add(above.min(0));
    if first < extent && last >= 0 {
        return Ok(());
    }
    Err(field.error(format!(
        "expected points {first} and {last} along {}, which the stencil reaches, got {extent} points; \
         pass a larger array, or an origin= further inside",
        NAMES[axis]
    )))
}

fn check_outputs(bound: &[Bound<'_>]) -> Result<()> {
    let outputs: Vec<_> = bound.iter().filter(|field| field.spec.access == Access::Write).collect();
    for (at, field) in outputs.iter().enumerate() {
        let managed = &field.argument.managed;
        for other in outputs.iter().skip(at + 1) {
            let theirs = &other.argument.managed;
            if may_overlap(managed.layout(), managed.address(), theirs.layout(), theirs.address()) {
                return Err(Error::Buffer(format!(
                    "arguments '{}' and '{}': expected outputs in separate memory, got arrays that overlap; \
                     pass a copy for one of them",
                    field.spec.name, other.spec.name
                )));
            }
        }
    }
    Ok(())
}

/// A field that is read where another is written gives results that depend on the backend, unless
/// each point is read before it is written: the same points, without reaching to neighbours.
fn check_inputs(bound: &[Bound<'_>], domain: [i64; 3]) -> Result<()> {
    let reads = |field: &&Bound<'_>| field.spec.access == Access::Read;
    let writes = |field: &&Bound<'_>| field.spec.access == Access::Write;
    for input in bound.iter().filter(reads) {
        for output in bound.iter().filter(writes) {
            let (read, written) = (&input.argument.managed, &output.argument.managed);
            let apart = |a: &Managed, b: &Managed| {
                !may_overlap(a.layout(), a.address(), b.layout(), b.address())
            };
            if apart(read, written) {
                continue;
            }
            let (read, written) = (window(input, domain)?, window(output, domain)?);
            let same = read.address() == written.address() && read.layout() == written.layout();
            if !same && !apart(&read, &written) {
                return Err(Error::Buffer(format!(
                    "arguments '{}' and '{}': expected an input that is read apart from where the output is \
                     written, got arrays that overlap; pass a copy for one of them",
                    input.spec.name, output.spec.name
                )));
            }
        }
    }
    Ok(())
}

/// The part of an argument that the stencil reaches, in the declared order of dimensions.
fn window(field: &Bound<'_>, domain: [i64; 3]) -> Result<Managed> {
    let mut part = field.argument.managed.permute(&field.axes)?;
    for (axis, at) in field.spatial() {
        let (below, above) = field.spec.reach[axis];
        let origin = field.origin.as_ref().and_then(|origin| origin.get(at).copied()).unwrap_or(0);
        let points = (domain[axis] + below + above).max(0); // inside the extent: check_bounds
        part = part.narrow(at, origin - below, points)?;
    }
    Ok(part)
}

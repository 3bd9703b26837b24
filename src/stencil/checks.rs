//! What would be undefined behaviour in a stencil, asked at every call.

use super::bound::Bound;
use super::{Argument, FieldSpec};
use crate::error::{Error, Result};
use crate::layout::Extents;

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
pub(super) fn check(bound: &[Bound<'_>], domain: &Extents) -> Result<()> {
    for field in bound {
        check_data_shape(field)?;
        if !field.stencil.decides_domain {
            check_bounds(field, domain)?;
        }
    }
    Ok(())
}

/// A field that the stencil writes can be written, and has an element for every index.
pub(super) fn check_writable(field: &Bound<'_>) -> Result<()> {
    let managed = &field.argument.managed;
    if !field.spec.access.writes() {
        return Ok(());
    }
    if field.place().0.overlaps_itself() {
        return Err(Error::Buffer(format!(
            "{}: expected an output with an element for every index, got strides of {:?} elements that name \
             some twice; pass a copy",
            field.about(),
            field.place().0.strides()
        )));
    }
    if managed.readonly() {
        return Err(Error::Buffer(format!(
            "{}: expected a writable output, got {}; write into a dlfield storage or a NumPy array instead",
            field.about(),
            field.argument.kind
        )));
    }
    Ok(())
}

fn check_data_shape(field: &Bound<'_>) -> Result<()> {
    let shape = field.shape();
    let got = shape.get(field.spatial.len()..).unwrap_or_default();
    if got == field.spec.data_shape.as_slice() {
        return Ok(());
    }
    Err(field.error(format!(
        "expected data dimensions of {:?}, got {got:?}",
        field.spec.data_shape.as_slice()
    )))
}

fn check_bounds(field: &Bound<'_>, domain: &Extents) -> Result<()> {
    for (axis, at) in field.spatial() {
        let (below, above) = field.reach_at(at);
        let (origin, extent) = (field.origin_at(at), field.extent_at(at));
        let points = domain.get(axis).copied().unwrap_or(0);
        let name = field.axis_name(axis);
        if origin < 0 {
            return Err(field.error(format!(
                "expected an origin of at least 0 along {name}, got {origin}: the field begins behind the first point \
                 of the domain; pass origin= and domain=, or a larger field"
            )));
        }
        if origin < below.max(0) {
            return Err(field.error(format!(
                "expected an origin of at least {} along {name}, as many points as the stencil reaches below the \
                 domain, got {origin}; pass origin=, or a storage with a halo",
                below.max(0)
            )));
        }
        check_inner_reach(field, (axis, at), points)?;
        let end = origin.checked_add(points).and_then(|end| end.checked_add(above));
        if end.is_none_or(|end| end > extent) {
            return Err(field.error(format!(
                "expected at least {origin} + {points} + {above} points along {name} (origin, domain, reach of the \
                 stencil), got {extent}; pass a larger array or a smaller domain="
            )));
        }
    }
    Ok(())
}

/// A negative reach: the stencil begins above the first or ends below the last point of the domain,
/// because it uses the field in some interval only. What it reaches there must exist as well.
fn check_inner_reach(field: &Bound<'_>, (axis, at): (usize, usize), points: i64) -> Result<()> {
    let (below, above) = field.reach_at(at);
    let (origin, extent) = (field.origin_at(at), field.extent_at(at));
    let first = origin.saturating_sub(below.min(0));
    let last = origin.saturating_add(points).saturating_sub(1).saturating_add(above.min(0));
    if first < extent && last >= 0 {
        return Ok(());
    }
    Err(field.error(format!(
        "expected points {first} and {last} along {}, which the stencil reaches, got {extent} points; pass a \
         larger array, or an origin= further inside",
        field.axis_name(axis)
    )))
}

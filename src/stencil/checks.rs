//! Checks, at every call, for everything that would be undefined behaviour in a stencil.

use super::placed::{Placed, PlacedCall, Spatial};
use super::{Argument, DecidedBy, FieldSpec};
use crate::error::{Error, Result};
use crate::layout::Extents;

/// The element types must agree: a stencil reads the bytes as the type it was compiled for.
pub(super) fn check_dtype(spec: &FieldSpec, argument: &Argument) -> Result<()> {
    let got = argument.managed.dtype();
    if got == spec.dtype {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "argument '{}': expected dtype {}, got {got}; convert it with astype('{}'), or in torch \
         with to(torch.{}), or compile the stencil for {got}",
        spec.name, spec.dtype, spec.dtype, spec.dtype
    )))
}

/// Checks data dimensions, and those bounds that the stencil does not check itself.
pub(super) fn check(call: &PlacedCall<'_>, domain: &Extents) -> Result<()> {
    for field in &call.fields {
        check_data_shape(field)?;
        match call.spec.decided_by {
            DecidedBy::Fields => check_bounds(field, domain)?,
            DecidedBy::Outputs if field.spec.access.writes() => {
                check_written(field, &call.start, domain)?;
            }
            DecidedBy::Outputs | DecidedBy::Stencil => {}
        }
    }
    Ok(())
}

/// Checks that an output is writable and has an element for every index.
pub(super) fn check_writable(field: &Placed<'_>) -> Result<()> {
    let managed = &field.argument.managed;
    if !field.spec.access.writes() {
        return Ok(());
    }
    let layout = field.argument.place().0;
    if layout.overlaps_itself() {
        return Err(Error::Buffer(field.about(format_args!(
            "expected an output with an element for every index, got strides of {:?} elements, so \
             that several indices share one; pass an array of its own, such as a copy",
            layout.strides()
        ))));
    }
    if managed.readonly() {
        return Err(Error::Buffer(field.about(format_args!(
            "expected a writable output, got {}; write into a dlfield storage or a NumPy array \
             instead",
            field.argument.kind
        ))));
    }
    Ok(())
}

fn check_data_shape(field: &Placed<'_>) -> Result<()> {
    let shape = field.in_declared_order(field.argument.managed.layout().shape());
    let got = shape.get(field.spatial.len()..).unwrap_or_default();
    if got == field.spec.data_shape.as_slice() {
        return Ok(());
    }
    Err(field.error(format!(
        "expected data dimensions of {:?}, got {got:?}",
        field.spec.data_shape.as_slice()
    )))
}

fn check_bounds(field: &Placed<'_>, domain: &Extents) -> Result<()> {
    for one in &field.spatial {
        let &Spatial { name, extent, .. } = one;
        let (origin, points) =
            (field.origin_at(one.at), domain.get(one.axis).copied().unwrap_or(0));
        let empty = domain.contains(&0);
        let (below, above) = if empty { one.reach } else { one.reach_of(points) };
        // A field that is read ahead alone may begin behind the first point of the domain.
        let lowest = if field.spec.reach_known { below } else { below.max(0) };
        if origin < lowest.min(0) {
            return Err(field.error(format!(
                "expected an origin of at least {} along {name}, got {origin}: the field begins \
                 behind the first point that the stencil reaches; pass origin= and domain=, or a \
                 larger field",
                lowest.min(0)
            )));
        }
        if origin < lowest {
            return Err(field.error(format!(
                "expected an origin of at least {lowest} along {name}, as many points as the \
                 stencil reaches below the domain, got {origin}; pass origin=, or a storage with a \
                 halo"
            )));
        }
        if !empty {
            check_inner_reach(field, one, points)?;
        }
        let end = origin.checked_add(points).and_then(|end| end.checked_add(above));
        if end.is_none_or(|end| end > extent) {
            return Err(field.error(format!(
                "expected at least {origin} + {points} + {above} points along {name} (origin, \
                 domain, reach of the stencil), got {extent}; pass a larger array or a smaller \
                 domain="
            )));
        }
    }
    Ok(())
}

/// Checks that an output has every point of a domain that begins at `start`.
fn check_written(field: &Placed<'_>, start: &Extents, domain: &Extents) -> Result<()> {
    for one in &field.spatial {
        let of = |all: &Extents| all.get(one.axis).copied().unwrap_or(0);
        let (origin, first) = (field.origin_at(one.at), of(start));
        let (low, high) = (origin.saturating_neg(), one.extent.saturating_sub(origin));
        let end = first.saturating_add(of(domain));
        if first < low || end > high {
            return Err(field.error(format!(
                "expected points {first} to {end} along {}, the domain, got {low} to {high} (0 is \
                 the origin, the last is not among them); pass a larger array or a smaller domain=",
                one.name
            )));
        }
    }
    Ok(())
}

/// Checks a negative reach: the stencil begins above the first or ends below the last point of the
/// domain, because it reads ahead or behind alone, or uses the field in some interval only. The
/// points that it reaches must exist.
fn check_inner_reach(field: &Placed<'_>, one: &Spatial<'_>, points: i64) -> Result<()> {
    let &Spatial { name, extent, reach: (below, above), .. } = one;
    let origin = field.origin_at(one.at);
    let first = origin.saturating_sub(below);
    let last = origin.saturating_add(points).saturating_sub(1).saturating_add(above);
    if first < extent && last >= 0 {
        return Ok(());
    }
    Err(field.error(format!(
        "expected points {first} and {last} along {name}, which the stencil reaches, got {extent} \
         points; pass a larger array, or an origin= further inside"
    )))
}

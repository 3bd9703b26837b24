//! Checks, at every call, for everything that would be undefined behaviour in a stencil.

use super::footprint::{Along, Range, Touched};
use super::placed::{Placed, PlacedCall};
use super::{Argument, Copied, DecidedBy, FieldSpec};
use crate::error::{Error, Result};

/// The element types must agree: a stencil reads the bytes as the type it was compiled for.
pub(super) fn check_dtype(spec: &FieldSpec, argument: &Argument) -> Result<()> {
    let got = argument.managed.dtype();
    if got == spec.dtype {
        return Ok(());
    }
    let wanted = spec.dtype;
    let way_out = match (spec.access.writes(), argument.kind) {
        (true, _) => format!("pass an array of {wanted}"), // a converted copy would be written
        (false, "an immutable JAX array") if wanted.itemsize() == 8 => format!(
            "convert it with astype('{wanted}') after jax.config.update('jax_enable_x64', True)"
        ),
        (false, _) => {
            format!("convert it with astype('{wanted}'), or in torch with to(torch.{wanted})")
        }
    };
    Err(Error::Argument(format!(
        "argument '{}': expected dtype {wanted}, got {got}; {way_out}, or compile the stencil for \
         {got}",
        spec.name
    )))
}

/// Checks data dimensions, and that every point that the call touches is in its field.
pub(super) fn check(call: &PlacedCall<'_>) -> Result<()> {
    for field in &call.fields {
        check_data_shape(field)?;
        let Touched { reads, writes, .. } = &field.touched;
        check_inside(field, writes.as_ref(), "writes")?;
        check_inside(field, reads.as_ref(), "reads")?;
    }
    Ok(())
}

/// Checks that a field has every point of a box.
fn check_inside(field: &Placed<'_>, touched: Option<&Along<Range>>, verb: &str) -> Result<()> {
    for (one, &(first, end)) in field.spatial.iter().zip(touched.into_iter().flatten()) {
        let origin = field.origin_at(one.at);
        let (origin, extent) = (i128::from(origin), i128::from(one.extent));
        let (low, high) = (origin.saturating_neg(), extent.saturating_sub(origin));
        if i128::from(first) < low || i128::from(end) > high {
            return Err(field.error(format!(
                "expected points {first} to {end} along {}, which '{}' {verb}, got {low} to {high} \
                 (0 is the origin, the end is exclusive); pass a larger array, a wider halo, or {}",
                one.name,
                field.stencil.name,
                another_place(field.stencil.decided_by)
            )));
        }
    }
    Ok(())
}

fn another_place(decided_by: DecidedBy) -> String {
    let takes = decided_by.takes_origin() || decided_by.takes_domain();
    let options = decided_by.place_options().replace(" and ", " or ");
    format!("{}{options}", if takes { "another " } else { "" })
}

/// Checks that an output is writable and has an element for every index.
pub(super) fn check_writable(field: &Placed<'_>) -> Result<()> {
    let managed = &field.argument.managed;
    if !field.spec.access.writes() {
        return Ok(());
    }
    let layout = field.argument.place().0;
    if layout.overlaps_itself() {
        // Memory that is described byte by byte has an axis for the bytes of an element.
        let of_bytes = matches!(field.argument.copied, Some(Copied::Original(_)));
        let axes = layout.ndim().saturating_sub(usize::from(of_bytes));
        let strides = layout.strides().get(..axes).unwrap_or_default();
        let unit = if of_bytes { "bytes" } else { "elements" };
        return Err(Error::Buffer(field.about(format_args!(
            "expected an output with an element for every index, got strides of {:?} {unit}, so \
             that several indices share one; pass a copy",
            strides
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

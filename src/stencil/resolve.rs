//! The row of checks: arguments in, plan out.

use smallvec::SmallVec;

use super::footprint::Footprints;
use super::placed::{Placed, PlacedCall};
use super::{
    Access, Argument, CallOptions, CallPlan, FieldPlan, FieldSpec, Mismatch, StencilSpec, axes,
    checks, memory, overlap,
};
use crate::error::{Error, Result};
use crate::layout::Extents;

/// Orders the axes of every argument by name, finds origins and domain, and checks everything that
/// would be undefined behaviour in the stencil. `arguments` follow the fields of `spec`. Returns the
/// basis of the footprint beside the plan.
///
/// # Errors
/// As [`Footprints::find`], and
/// [`Error::Argument`], [`Error::Buffer`] or [`Error::Device`] that names the argument, what was
/// expected, what came and a way out.
pub(crate) fn resolve<'a, F: Footprints>(
    spec: &'a StencilSpec,
    arguments: impl Iterator<Item = Option<&'a Argument>>,
    options: &'a CallOptions,
    footprints: &F,
) -> std::result::Result<(CallPlan, F::Basis), F::Error> {
    let mut call = place(spec, arguments, options)?;
    let domain = call.resolve_domain().map_err(|error| error.followed_by(&call.table()))?;
    let basis = call.touch(&domain, footprints)?;
    Ok((check(call, domain)?, basis))
}

/// Checks a call whose footprint is known.
fn check(call: PlacedCall<'_>, domain: Extents) -> Result<CallPlan> {
    let options = call.options;
    checks::check(&call).map_err(|error| match error {
        Error::Argument(_) => error.followed_by(&call.table()),
        other => other,
    })?;
    if !options.functional {
        // A functional call writes into copies.
        call.fields.iter().try_for_each(checks::check_writable)?;
        overlap::check(&call.fields)?;
    }
    let halo = call.widest_halo();
    let output_halo = call.output_halo(&domain, &halo);
    let slow = call.fields.iter().filter_map(memory::slow).collect();
    let copy = |field: &Placed<'_>| {
        // The outputs of a functional call are copies already.
        let copied = options.functional && field.spec.access.writes();
        if copied { Ok(None) } else { memory::mismatch(field) }
    };
    let copies = call.fields.iter().map(copy).collect::<Result<_>>()?;
    memory::check_one_device(&call.fields)?;
    let start = call.start.clone();
    Ok(CallPlan { fields: collect(call, copies), domain, start, halo, output_halo, slow })
}

fn place<'a>(
    spec: &'a StencilSpec,
    mut arguments: impl Iterator<Item = Option<&'a Argument>>,
    options: &'a CallOptions,
) -> Result<PlacedCall<'a>> {
    let mut fields = SmallVec::new();
    for (at, field) in spec.fields.iter().enumerate() {
        match arguments.next().flatten().filter(|_| field.access != Access::Unused) {
            None if !field.access.is_needed(options.functional) => {}
            None => {
                let text = format!("argument '{}': expected a field, got None", field.name);
                return Err(Error::Argument(text));
            }
            Some(argument) => {
                checks::check_dtype(field, argument)?;
                let origin = options.origins.get(at).and_then(Option::as_ref);
                fields.push(axes::place(spec, field, argument, origin)?);
            }
        }
    }
    let start = Extents::from_elem(0, spec.axes.len());
    Ok(PlacedCall { spec, options, fields, start })
}

fn collect(
    call: PlacedCall<'_>,
    copies: SmallVec<[Option<Mismatch>; 8]>,
) -> SmallVec<[Option<FieldPlan>; 8]> {
    let mut placed = call.fields.into_iter().zip(copies).peekable();
    let plan = |field: &FieldSpec| {
        let (found, copy) = placed.next_if(|(one, _)| std::ptr::eq(one.spec, field))?;
        Some(FieldPlan { axes: found.axes, origin: found.origin, touched: found.touched, copy })
    };
    call.spec.fields.iter().map(plan).collect()
}

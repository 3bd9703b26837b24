//! Arguments in one memory: what a stencil writes, and what it reads beside that.

use super::bound::Bound;
use super::{Argument, StencilSpec};
use crate::error::{Error, Result};
use crate::layout::{Extents, may_overlap};
use crate::managed::Managed;

/// Refuses outputs that overlap, and inputs that are read where another field is written.
pub(super) fn check(bound: &[Bound<'_>], domain: &Extents) -> Result<()> {
    for (at, output) in bound.iter().enumerate().filter(|(_, field)| field.spec.access.writes()) {
        for (other_at, other) in bound.iter().enumerate() {
            if at == other_at || are_apart(output, other) {
                continue;
            }
            if other.spec.access.writes() {
                return Err(two_outputs(output, other));
            }
            check_input(other, output, domain)?;
        }
    }
    Ok(())
}

/// Whether no output shares a byte with any other argument, which is more than has to be.
pub(super) fn are_all_apart(spec: &StencilSpec, arguments: &[Option<Argument>]) -> bool {
    let given = || spec.fields.iter().zip(arguments).enumerate();
    given().filter(|(_, (field, _))| field.access.writes()).all(|(at, (_, output))| {
        let Some(output) = output else { return true };
        given().all(|(other_at, (_, other))| {
            let others = other.as_ref().filter(|_| other_at != at);
            others.is_none_or(|other| apart(&output.managed, &other.managed))
        })
    })
}

fn are_apart(one: &Bound<'_>, other: &Bound<'_>) -> bool {
    let ((a, a_at), (b, b_at)) = (one.place(), other.place());
    !may_overlap(a, a_at, b, b_at)
}

fn apart(a: &Managed, b: &Managed) -> bool {
    !may_overlap(a.layout(), a.address(), b.layout(), b.address())
}

fn two_outputs(one: &Bound<'_>, other: &Bound<'_>) -> Error {
    Error::Buffer(format!(
        "arguments '{}' and '{}': expected outputs in separate memory, got arrays that overlap; pass a copy for \
         one of them",
        one.spec.name, other.spec.name
    ))
}

/// A field that is read where another is written gives results that depend on the order of a
/// backend's loops, unless each point is read where it is written and nowhere else, or the parts
/// that are read and written lie beside each other.
fn check_input(input: &Bound<'_>, output: &Bound<'_>, domain: &Extents) -> Result<()> {
    if !input.stencil.reach_known {
        return Err(read_and_written(input, output));
    }
    let same = input.argument.stands_for == output.argument.stands_for;
    let (read, written) = (window(input, domain)?, window(output, domain)?);
    let described = input.argument.stands_for.is_none() && output.argument.stands_for.is_none();
    let in_place = if described {
        read.address() == written.address() && read.layout() == written.layout()
    } else {
        same && (&input.axes, &input.origin) == (&output.axes, &output.origin)
    };
    if described && apart(&read, &written) || in_place && point_by_point(input, output) {
        return Ok(());
    }
    Err(read_and_written(input, output))
}

/// Whether no field reaches to a neighbour, as far as a stencil says so: where it treats some levels
/// differently, which shows in the fewest points it needs, its reach is only that beyond the domain.
fn point_by_point(input: &Bound<'_>, output: &Bound<'_>) -> bool {
    let stencil = input.stencil;
    let stays = |field: &Bound<'_>| field.spatial().all(|(_, at)| field.reach_at(at) == (0, 0));
    stays(input) && stays(output) && (0..stencil.axes.len()).all(|axis| stencil.fewest(axis) <= 1)
}

fn read_and_written(input: &Bound<'_>, output: &Bound<'_>) -> Error {
    Error::Buffer(format!(
        "arguments '{}' and '{}': expected an input that is read apart from where the output is written, got \
         arrays that overlap; pass a copy for one of them",
        input.spec.name, output.spec.name
    ))
}

/// The part of an argument that the stencil reaches, in the declared order of dimensions.
fn window(field: &Bound<'_>, domain: &Extents) -> Result<Managed> {
    let mut part = field.argument.managed.permute(&field.axes)?;
    for (axis, at) in field.spatial() {
        let (below, above) = field.reach_at(at);
        let points = domain.get(axis).copied().unwrap_or(0);
        let points = (points + below + above).max(0); // inside the extent: checks::check_bounds
        part = part.narrow(at, field.origin_at(at) - below, points)?;
    }
    Ok(part)
}

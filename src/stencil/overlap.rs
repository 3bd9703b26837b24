//! Arguments in one memory: what a stencil writes, and what it reads beside that.

use super::bound::Bound;
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

/// A field that is read where another is written gives results that depend on the backend, unless
/// each point is read before it is written: the same points, without reaching to neighbours.
fn check_input(input: &Bound<'_>, output: &Bound<'_>, domain: &Extents) -> Result<()> {
    if !input.stencil.reach_known {
        return Err(read_and_written(input, output));
    }
    if input.argument.stands_for.is_some() || output.argument.stands_for.is_some() {
        let same = input.argument.stands_for == output.argument.stands_for
            && (&input.axes, &input.origin) == (&output.axes, &output.origin)
            && input.spatial().all(|(_, at)| input.reach_at(at) == output.reach_at(at));
        return if same { Ok(()) } else { Err(read_and_written(input, output)) };
    }
    let (read, written) = (window(input, domain)?, window(output, domain)?);
    let same = read.address() == written.address() && read.layout() == written.layout();
    if same || apart(&read, &written) {
        return Ok(());
    }
    Err(read_and_written(input, output))
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

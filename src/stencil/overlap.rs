//! Arguments that share memory: outputs with each other, and outputs with inputs.

use super::placed::Placed;
use super::{Access, StencilSpec};
use crate::error::{Error, Result};
use crate::layout::{Extents, Layout, may_overlap};
use crate::managed::Managed;

/// Refuses outputs that overlap, and inputs that are read where another field is written.
pub(super) fn check(placed: &[Placed<'_>], domain: &Extents) -> Result<()> {
    for (at, output) in placed.iter().enumerate().filter(|(_, field)| field.spec.access.writes()) {
        for (other_at, other) in placed.iter().enumerate() {
            if at == other_at || !output.argument.may_overlap(other.argument) {
                continue;
            }
            if other.spec.access.writes() {
                return Err(overlapping(output, other, "outputs in separate memory"));
            }
            if !may_be_read(other, output, domain)? {
                let expected = "an input that is read apart from where the output is written";
                return Err(overlapping(other, output, expected));
            }
        }
    }
    Ok(())
}

fn overlapping(one: &Placed<'_>, other: &Placed<'_>, expected: &str) -> Error {
    Error::Buffer(format!(
        "arguments '{}' and '{}': expected {expected}, got arrays that overlap; pass a copy for \
         one of them",
        one.spec.name, other.spec.name
    ))
}

/// Layout and address of the memory of an argument.
pub(crate) type Place<'a> = (&'a Layout, usize);

/// True if no output shares a byte with another argument, which is more than [`check`] asks for.
/// `places` follow the fields of `spec`.
pub(crate) fn are_all_apart<'a>(
    spec: &StencilSpec,
    places: impl Iterator<Item = Option<Place<'a>>> + Clone,
) -> bool {
    let given = || spec.fields.iter().zip(places.clone()).enumerate();
    given().filter(|(_, (field, _))| field.access.writes()).all(|(at, (_, output))| {
        let Some((own, own_at)) = output else { return true };
        given().all(|(other_at, (field, other))| {
            let other = other.filter(|_| other_at != at && field.access != Access::Unused);
            other.is_none_or(|(other, other_at)| !may_overlap(own, own_at, other, other_at))
        })
    })
}

/// False for an input that overlaps an output so that results would depend on the order of a
/// backend's loops. Legal are points that are read only where they are written, and parts that lie
/// beside each other.
fn may_be_read(input: &Placed<'_>, output: &Placed<'_>, domain: &Extents) -> Result<bool> {
    if !(input.spec.reach_known && output.spec.reach_known) {
        return Ok(false);
    }
    let (read, written) = (window(input, domain)?, window(output, domain)?);
    let in_place = match (input.argument.original(), output.argument.original()) {
        (None, None) if !read.may_overlap(&written) => return Ok(true),
        (None, None) => read.position() == written.position() && read.layout() == written.layout(),
        (one, other) => {
            one == other && (&input.axes, &input.origin) == (&output.axes, &output.origin)
        }
    };
    Ok(in_place && point_by_point(input, output))
}

/// True if neither field reaches to a neighbour, as far as the declaration tells: a stencil that
/// treats some levels differently, so that it needs more than one point, declares only its reach
/// beyond the domain.
fn point_by_point(input: &Placed<'_>, output: &Placed<'_>) -> bool {
    let stencil = input.stencil;
    let stays = |field: &Placed<'_>| field.spatial.iter().all(|one| one.reach_of(1) == (0, 0));
    stays(input) && stays(output) && (0..stencil.axes.len()).all(|axis| stencil.fewest(axis) <= 1)
}

/// The part of an argument that the stencil reaches, in the declared order of dimensions.
fn window(field: &Placed<'_>, domain: &Extents) -> Result<Managed> {
    let (mut part, empty) = (field.argument.managed.permute(&field.axes)?, domain.contains(&0));
    for one in &field.spatial {
        let (at, points) = (one.at, domain.get(one.axis).copied().unwrap_or(0));
        let (below, above) = if empty { one.reach } else { one.reach_of(points) };
        let points = (points + below + above).max(0); // inside the extent: checks::check_bounds
        part = part.narrow(at, field.origin_at(at) - below, points)?;
    }
    Ok(part)
}

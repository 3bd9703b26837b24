//! Arguments that share memory: outputs with each other, and outputs with inputs.

use super::footprint::{Along, Range};
use super::placed::{Placed, Spatial};
use super::{Access, DecidedBy, StencilSpec};
use crate::error::{Error, Result};
use crate::layout::{Layout, may_overlap};
use crate::managed::Managed;

/// Refuses outputs that touch each other's points, and inputs that are read where another field is
/// written.
pub(super) fn check(placed: &[Placed<'_>]) -> Result<()> {
    for (at, output) in placed.iter().enumerate().filter(|(_, field)| field.spec.access.writes()) {
        for (other_at, other) in placed.iter().enumerate() {
            if at == other_at || !output.argument.may_overlap(other.argument) {
                continue;
            }
            if other.spec.access.writes() {
                if are_apart(output, other)? && are_apart(other, output)? {
                    continue;
                }
                return Err(overlapping(output, other, "outputs at different points", ""));
            }
            if !may_be_read(other, output)? {
                let expected = "an input that is read apart from where the output is written";
                return Err(overlapping(other, output, expected, &reach(other, output)));
            }
        }
    }
    Ok(())
}

fn overlapping(one: &Placed<'_>, other: &Placed<'_>, expected: &str, reach: &str) -> Error {
    Error::Buffer(format!(
        "arguments '{}' and '{}': expected {expected}, got arrays that overlap{reach}; pass a copy \
         for one of them",
        one.spec.name, other.spec.name
    ))
}

/// How far from the points that are written the input is read, for the message.
fn reach(input: &Placed<'_>, output: &Placed<'_>) -> String {
    let (Some(reads), Some(writes)) = (&input.touched.reads, &output.touched.writes) else {
        return String::new();
    };
    let along = |(one, &(first, end)): (&Spatial<'_>, &Range)| {
        let at = output.spatial.iter().position(|other| other.axis == one.axis)?;
        let &(low, high) = writes.get(at)?;
        let points = low.saturating_sub(first).max(end.saturating_sub(high));
        (points > 0).then(|| format!("{points} along {}", one.name))
    };
    let along: Vec<String> = input.spatial.iter().zip(reads).filter_map(along).collect();
    match along.is_empty() {
        true => String::new(),
        false => format!(", '{}' is read with a reach of {}", input.spec.name, along.join(", ")),
    }
}

fn unknown(input: &Placed<'_>, output: &Placed<'_>) -> Error {
    Error::Buffer(format!(
        "arguments '{}' and '{}': expected separate memory, since not all points that a call \
         touches are known before it, got arrays that overlap; pass a copy for one of them",
        input.spec.name, output.spec.name
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
            let is_compared = other_at < at && field.access.writes();
            let is_other = other_at != at && !is_compared && field.access != Access::Unused;
            let other = other.filter(|_| is_other);
            other.is_none_or(|(other, other_at)| !may_overlap(own, own_at, other, other_at))
        })
    })
}

/// True if all that is written of one output is apart from all that another one touches. Not where
/// copies are made, which are written back whole, nor for callables that are not told where to compute.
fn are_apart(one: &Placed<'_>, other: &Placed<'_>) -> Result<bool> {
    let are_known = one.touched.complete && other.touched.complete;
    let may_copy = one.stencil.copy_memory || one.stencil.copy_device;
    let is_told = !matches!(one.stencil.decided_by, DecidedBy::Arrays { .. });
    let is_certain = are_known && is_told && !may_copy;
    let Some(written) = one.touched.writes.as_ref().filter(|_| is_certain) else {
        return Ok(false);
    };
    let written = window(one, written)?;
    for touched in [&other.touched.reads, &other.touched.writes].into_iter().flatten() {
        if window(other, touched)?.may_overlap(&written) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// False for an input that overlaps an output so that results would depend on the order of a
/// backend's loops. Legal are points that are read only where they are written, and parts that lie
/// beside each other.
///
/// # Errors
/// If not all points are known before the call.
fn may_be_read(input: &Placed<'_>, output: &Placed<'_>) -> Result<bool> {
    if !(input.touched.complete && output.touched.complete) {
        return Err(unknown(input, output));
    }
    let (Some(read), Some(written)) = (&input.touched.reads, &output.touched.writes) else {
        return Ok(true);
    };
    let (read, written) = (window(input, read)?, window(output, written)?);
    let in_place = match (input.argument.original(), output.argument.original()) {
        (None, None) if !read.may_overlap(&written) => return Ok(true),
        (None, None) => read.position() == written.position() && read.layout() == written.layout(),
        (one, other) => {
            one == other && (&input.axes, &input.origin) == (&output.axes, &output.origin)
        }
    };
    let overtaken = input.spec.overtaken_by.contains(&output.spec.name);
    let same_point = input.spec.dims == output.spec.dims && !overtaken;
    Ok(in_place && same_point && input.touched.pointwise && output.touched.pointwise)
}

/// The part of an argument in a box, in the declared order of dimensions.
fn window(field: &Placed<'_>, touched: &Along<Range>) -> Result<Managed> {
    let mut part = field.argument.managed.permute(&field.axes)?;
    for (one, &(first, end)) in field.spatial.iter().zip(touched) {
        // Inside the extent: checks::check_inside.
        let points = end.saturating_sub(first).max(0);
        part = part.narrow(one.at, field.origin_at(one.at).saturating_add(first), points)?;
    }
    Ok(part)
}

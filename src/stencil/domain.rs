//! Origin and domain from halos, where the caller does not give them.
//!
//! Per axis, shape minus halo must agree over the fields that carry a halo; that is the domain. A
//! field without one starts at 0 where its shape is the domain's, and at the lower halo where its
//! shape is that of the fields with a halo and these agree. Anything else is an error that asks
//! for `origin` and `domain`: nothing is shifted silently. Without any halo GT4Py's own rule
//! holds: origin 0, and the largest domain that fits.

use super::bound::Bound;
use super::frame::{agreed, along, each, frame, frame_of_lows, largest_domain};
use super::origin::{self, WAY_OUT};
use super::{Request, StencilSpec};
use crate::error::{Error, Result};
use crate::layout::Extents;

/// Gives every field an origin and returns the domain.
pub(super) fn resolve(
    spec: &StencilSpec,
    bound: &mut [Bound<'_>],
    request: &Request,
) -> Result<Extents> {
    check_length(spec, request.domain.as_ref())?;
    if spec.decides_domain {
        return decided(spec, bound, request);
    }
    let domain = if spec.told_origin && spec.told_domain {
        told(spec, bound, request)?
    } else {
        untold(spec, bound, request)?
    };
    check_domain(spec, &domain)?;
    Ok(domain)
}

fn told(spec: &StencilSpec, bound: &mut [Bound<'_>], request: &Request) -> Result<Extents> {
    let frame = frame(spec, bound);
    let domain = match &request.domain {
        Some(domain) => Some(domain.clone()),
        None if !frame.is_empty() => Some(domain_of_halos(spec, bound)?),
        None => None,
    };
    let inner = |axis: usize| domain.as_ref().and_then(|domain| domain.get(axis).copied());
    for field in bound.iter_mut() {
        field.origin = match field.given {
            None => origin::found(field, &frame, inner)?,
            Some(given) => {
                let origin = origin::given(field, given)?;
                if request.domain.is_none() {
                    origin::check_shift(field, &origin)?;
                }
                origin
            }
        };
    }
    Ok(domain.unwrap_or_else(|| largest_domain(spec, bound)))
}

fn domain_of_halos(spec: &StencilSpec, bound: &[Bound<'_>]) -> Result<Extents> {
    let found = agreed(spec, bound, |field| field.carries_halo(), WAY_OUT)?;
    // An axis that no field with a halo has: the smallest extent of the others there, or 1.
    let smallest = |axis| along(bound, axis).map(|(field, at)| field.extent_at(at)).min();
    Ok(each(spec, |axis| {
        found.get(axis).copied().flatten().or_else(|| smallest(axis)).unwrap_or(1)
    }))
}

/// A stencil that is not told all of where to compute gets arrays of one extent and with one halo, or,
/// where none has one, with as many points around the domain as the stencil reaches.
fn untold(spec: &StencilSpec, bound: &mut [Bound<'_>], request: &Request) -> Result<Extents> {
    let around: Vec<(i64, i64, i64)> = {
        let bound = &*bound;
        let with_halo = bound.iter().any(Bound::carries_halo);
        let axis = |axis| same_along(bound, axis, with_halo);
        each::<_, Result<_>>(spec, axis)?
    };
    for field in bound.iter_mut() {
        field.origin = match field.given.filter(|_| spec.told_origin) {
            Some(given) => origin::given(field, given)?,
            None => below(field, &around)?,
        };
    }
    match &request.domain {
        Some(domain) => Ok(domain.clone()),
        None if spec.told_origin => Ok(largest_domain(spec, bound)),
        None => Ok(around.iter().map(|(_, points, _)| *points).collect()),
    }
}

/// As many points from the edge as `around` says of each axis.
fn below(field: &Bound<'_>, around: &[(i64, i64, i64)]) -> Result<Extents> {
    let mut origin = origin::found(field, &[], |_| None)?;
    for (axis, at) in field.spatial() {
        if let (Some(first), Some(around)) = (origin.get_mut(at), around.get(axis)) {
            *first = around.0;
        }
    }
    Ok(origin)
}

/// Points below the domain, of it, and above it, along one axis.
fn same_along(bound: &[Bound<'_>], axis: usize, with_halo: bool) -> Result<(i64, i64, i64)> {
    let Some((first, at)) = along(bound, axis).next() else { return Ok((0, 1, 0)) };
    let (extent, halo) = (first.extent_at(at), first.halo_at(at));
    let differs = |(field, at): &(&Bound<'_>, usize)| {
        field.extent_at(*at) != extent || field.halo_at(*at) != halo
    };
    if let Some((field, at)) = along(bound, axis).find(differs) {
        return Err(field.error(format!(
            "expected {extent} points with a halo of {halo:?} along {}, as '{}' has, since '{}' is not told where \
             to compute, got {} with {:?}; pass arrays of one shape and halo, or give it parameters origin and \
             domain",
            field.axis_name(axis),
            first.spec.name,
            field.stencil.name,
            field.extent_at(at),
            field.halo_at(at)
        )));
    }
    let reach = along(bound, axis).map(|(field, at)| field.reach_at(at));
    let widest = reach.fold((0, 0), |widest, one| (widest.0.max(one.0), widest.1.max(one.1)));
    let (low, high) = if with_halo { halo } else { widest };
    Ok((low, extent.saturating_sub(low).saturating_sub(high), high))
}

/// Every field by itself. The domain that is returned is what the outputs of a functional call
/// have, and means nothing otherwise.
fn decided(spec: &StencilSpec, bound: &mut [Bound<'_>], request: &Request) -> Result<Extents> {
    let frame = frame_of_lows(spec, bound);
    for field in bound.iter_mut() {
        field.origin = match field.given {
            None => origin::found(field, &frame, |_| None)?,
            Some(given) => {
                let origin = origin::given(field, given)?;
                origin::check_inside(field, &origin)?;
                origin
            }
        };
    }
    match &request.domain {
        Some(domain) => Ok(domain.clone()),
        None if request.functional => {
            let found = agreed(spec, bound, |_| true, "pass domain=, or the outputs")?;
            Ok(found.into_iter().map(|points| points.unwrap_or(1)).collect())
        }
        None => Ok(largest_domain(spec, bound)),
    }
}

fn check_length(spec: &StencilSpec, given: Option<&Extents>) -> Result<()> {
    let axes = &spec.axes;
    match given.filter(|domain| domain.len() != axes.len()) {
        None => Ok(()),
        Some(domain) => Err(Error::Argument(format!(
            "domain: expected {} numbers for {}, got {:?}",
            axes.len(),
            axes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            domain.as_slice()
        ))),
    }
}

fn check_domain(spec: &StencilSpec, domain: &Extents) -> Result<()> {
    let mut points = domain.iter().zip(&spec.axes).enumerate();
    let short = points.find(|(axis, (points, _))| **points < spec.fewest(*axis));
    let Some((axis, (&points, name))) = short else { return Ok(()) };
    let fewest = spec.fewest(axis);
    let (expected, way_out) = match fewest {
        1 => (
            "1 point".to_owned(),
            format!(" in {:?}; pass larger fields, or {WAY_OUT}", domain.as_slice()),
        ),
        more => (format!("{more} points"), String::new()),
    };
    Err(Error::Argument(format!(
        "domain of '{}': expected at least {expected} along {name}, got {points}{way_out}",
        spec.name
    )))
}

//! Origin and domain from halos, where the caller does not give them.
//!
//! Per axis, shape minus halo must agree over the fields that carry a halo; that is the domain. A
//! field without one starts at 0 where its shape is the domain's, and at the lower halo where its
//! shape is that of the fields with a halo and these agree. Anything else is an error that asks
//! for `origin` and `domain`: nothing is shifted silently. Without any halo GT4Py's own rule
//! holds: origin 0, and the largest domain that fits.

use super::{Bound, StencilSpec};
use crate::error::{Error, Result};
use crate::field::HaloWidth;
use crate::layout::Extents;

const NAMES: [&str; 3] = ["I", "J", "K"];
const WAY_OUT: &str = "pass origin= and domain=";

/// What the fields with a halo agree on along one axis: extent of the whole field and its halo.
type Agreed = Option<(i64, HaloWidth)>;

/// Gives every field an origin and returns the domain.
pub(super) fn resolve(
    spec: &StencilSpec,
    bound: &mut [Bound<'_>],
    given: Option<[i64; 3]>,
) -> Result<[i64; 3]> {
    let with_halo = bound.iter().any(carries_halo);
    let domain = match given {
        Some(domain) => Some(domain),
        None if with_halo => Some(domain_of_halos(bound)?),
        None => None,
    };
    let frame = if with_halo { frame_of_halos(bound) } else { [None; 3] };
    for field in bound.iter_mut() {
        match &field.origin {
            Some(origin) => {
                let origin = check_origin(field, origin)?;
                check_shift(field, &origin, given)?;
                field.origin = Some(origin);
            }
            None if with_halo => field.origin = Some(origin_from_halo(field, domain, frame)?),
            None => field.origin = Some(origin_without_halo(field)?),
        }
    }
    let domain = domain.unwrap_or_else(|| largest_domain(bound));
    check_domain(spec, domain)?;
    Ok(domain)
}

fn carries_halo(field: &Bound<'_>) -> bool {
    field.spatial().any(|(_, at)| halo_at(field, at) != (0, 0))
}

fn halo_at(field: &Bound<'_>, at: usize) -> HaloWidth {
    field.halo.as_ref().and_then(|halo| halo.get(at).copied()).unwrap_or((0, 0))
}

fn extent_at(field: &Bound<'_>, at: usize) -> i64 {
    field.shape.get(at).copied().unwrap_or(0)
}

fn domain_of_halos(bound: &[Bound<'_>]) -> Result<[i64; 3]> {
    let mut domain: [Option<(i64, &str)>; 3] = [None; 3];
    for field in bound.iter().filter(|field| carries_halo(field)) {
        for (axis, at) in field.spatial() {
            let (low, high) = halo_at(field, at);
            let inner = extent_at(field, at) - low - high;
            match domain[axis] {
                None => domain[axis] = Some((inner, &field.spec.name)),
                Some((known, other)) if known != inner => {
                    return Err(field.error(format!(
                        "expected {known} points between the halos along {}, as in '{other}', got {inner}; {WAY_OUT}",
                        NAMES[axis]
                    )));
                }
                Some(_) => {}
            }
        }
    }
    Ok(fill_open_axes(bound, domain.map(|found| found.map(|known| known.0))))
}

/// An axis that no field with a halo has: the smallest extent of the others there, or 1.
fn fill_open_axes(bound: &[Bound<'_>], domain: [Option<i64>; 3]) -> [i64; 3] {
    let mut filled = [1; 3];
    for (axis, found) in domain.into_iter().enumerate() {
        let extents = bound.iter().flat_map(|field| {
            field.spatial().filter(move |s| s.0 == axis).map(|s| extent_at(field, s.1))
        });
        filled[axis] = found.or_else(|| extents.min()).unwrap_or(1);
    }
    filled
}

/// Extent and halo along each axis, where all fields with a halo have the same.
fn frame_of_halos(bound: &[Bound<'_>]) -> [Agreed; 3] {
    let mut frame: [Option<Agreed>; 3] = [None; 3];
    for field in bound.iter().filter(|field| carries_halo(field)) {
        for (axis, at) in field.spatial() {
            let own = Some((extent_at(field, at), halo_at(field, at)));
            frame[axis] = match frame[axis] {
                None => Some(own),
                Some(known) if known == own => Some(known),
                Some(_) => Some(None),
            };
        }
    }
    frame.map(Option::flatten)
}

fn origin_from_halo(
    field: &Bound<'_>,
    domain: Option<[i64; 3]>,
    frame: [Agreed; 3],
) -> Result<Extents> {
    check_known_halo(field)?;
    let mut origin = Extents::from_elem(0, field.shape.len()); // data dimensions start at 0
    if carries_halo(field) {
        for (_, at) in field.spatial() {
            origin[at] = halo_at(field, at).0;
        }
        return Ok(origin);
    }
    for (axis, at) in field.spatial() {
        let extent = extent_at(field, at);
        origin[at] = match frame[axis] {
            _ if domain.is_some_and(|domain| domain[axis] == extent) => 0,
            Some((whole, (low, _))) if whole == extent => low,
            _ => return Err(neither(field, axis, extent, domain, frame[axis])),
        };
    }
    Ok(origin)
}

fn neither(
    field: &Bound<'_>,
    axis: usize,
    extent: i64,
    domain: Option<[i64; 3]>,
    frame: Agreed,
) -> Error {
    let inner = domain.map_or(0, |domain| domain[axis]);
    let expected = match frame {
        Some((whole, _)) => format!("expected {inner} points (the domain) or {whole} (with halo)"),
        None => {
            format!("expected {inner} points (the domain), since the halos of the others differ,")
        }
    };
    field.error(format!("{expected} along {}, got {extent} and no halo; {WAY_OUT}", NAMES[axis]))
}

fn origin_without_halo(field: &Bound<'_>) -> Result<Extents> {
    check_known_halo(field)?;
    Ok(Extents::from_elem(0, field.shape.len()))
}

fn check_known_halo(field: &Bound<'_>) -> Result<()> {
    if field.halo.is_some() {
        return Ok(());
    }
    Err(field.error("expected a known halo, got a view whose halo is unknown; pass origin="))
}

/// An origin may name the spatial dimensions only; data dimensions then start at 0.
fn check_origin(field: &Bound<'_>, origin: &Extents) -> Result<Extents> {
    let (spatial, all) = (field.spatial().count(), field.shape.len());
    if origin.len() != spatial && origin.len() != all {
        return Err(
            field.error(format!("origin: expected {spatial} numbers, got {:?}", origin.as_slice()))
        );
    }
    if origin.iter().skip(spatial).any(|&at| at != 0) {
        let got = origin.as_slice();
        return Err(field.error(format!("origin: expected 0 along data dimensions, got {got:?}")));
    }
    let mut whole = origin.clone();
    whole.resize(all, 0);
    Ok(whole)
}

/// The domain of the halos begins at the lower halo. From anywhere else it would be a silent shift.
fn check_shift(field: &Bound<'_>, origin: &Extents, given: Option<[i64; 3]>) -> Result<()> {
    let at_halo = field.spatial().all(|(_, at)| origin.get(at) == Some(&halo_at(field, at).0));
    if given.is_some() || at_halo || !carries_halo(field) {
        return Ok(());
    }
    Err(field.error(format!(
        "expected a domain= beside an origin other than the lower halo, got origin {:?} alone",
        origin.as_slice()
    )))
}

/// GT4Py's rule: along each axis as far as every field that has it reaches.
fn largest_domain(bound: &[Bound<'_>]) -> [i64; 3] {
    let mut domain: [Option<i64>; 3] = [None; 3];
    for field in bound {
        for (axis, at) in field.spatial() {
            let origin =
                field.origin.as_ref().and_then(|origin| origin.get(at).copied()).unwrap_or(0);
            let room = extent_at(field, at)
                .saturating_sub(origin)
                .saturating_sub(field.spec.reach[axis].1);
            domain[axis] = Some(domain[axis].map_or(room, |known| known.min(room)));
        }
    }
    domain.map(|found| found.unwrap_or(1))
}

fn check_domain(spec: &StencilSpec, domain: [i64; 3]) -> Result<()> {
    if let Some(axis) = domain.iter().position(|&points| points < 1) {
        return Err(Error::Argument(format!(
            "domain of '{}': expected at least 1 point along {}, got {domain:?}; pass larger fields, or {WAY_OUT}",
            spec.name, NAMES[axis]
        )));
    }
    if domain[2] < spec.min_k {
        return Err(Error::Argument(format!(
            "domain of '{}': expected at least {} points along K, got {}",
            spec.name, spec.min_k, domain[2]
        )));
    }
    Ok(())
}

//! Origin and domain from halos, where the caller does not give them.
//!
//! Per axis, shape minus halo must agree over the fields that carry a halo; that is the domain. A
//! field without one starts at 0 where its shape is the domain's, and at the lower halo where its
//! shape is that of the fields with a halo and these agree. Anything else is an error that asks
//! for `origin` and `domain`: nothing is shifted silently. Without any halo GT4Py's own rule
//! holds: origin 0, and the largest domain that fits.

use super::bound::Bound;
use super::{Request, StencilSpec};
use crate::error::{Error, Result};
use crate::field::{Halo, HaloWidth};
use crate::layout::Extents;

const WAY_OUT: &str = "pass origin= and domain=";

/// What the fields with a halo agree on along one axis: extent of the whole field and its halo.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// No field with a halo has the axis.
    Open,
    /// All have the same.
    Agreed(i64, HaloWidth),
    /// They differ.
    Differs,
}

/// Gives every field an origin and returns the domain.
pub(super) fn resolve(
    spec: &StencilSpec,
    bound: &mut [Bound<'_>],
    request: &Request,
) -> Result<Extents> {
    let given = request.domain.as_ref();
    check_length(spec, given)?;
    if spec.decides_domain {
        return decided(spec, bound, request);
    }
    let with_halo = bound.iter().any(Bound::carries_halo);
    let domain = match given {
        Some(domain) => Some(domain.clone()),
        None if with_halo => Some(domain_of_halos(spec, bound)?),
        None => None,
    };
    let frame = if with_halo { frame_of_halos(spec, bound) } else { Frames::new() };
    for field in bound.iter_mut() {
        field.origin = match field.given {
            Some(origin) => whole_origin(field, origin, given.is_some())?,
            None => origin_of(field, domain.as_ref(), &frame)?,
        };
    }
    let domain = domain.unwrap_or_else(|| largest_domain(spec, bound));
    check_domain(spec, &domain)?;
    if !spec.told_domain && !with_halo {
        check_filled(bound, &domain)?;
    }
    Ok(domain)
}

/// A stencil that is not told the domain takes what it gets for it: all arrays have the same points.
fn check_filled(bound: &[Bound<'_>], domain: &Extents) -> Result<()> {
    for field in bound {
        for (axis, at) in field.spatial() {
            let points = domain.get(axis).copied().unwrap_or(0);
            let expected =
                points.saturating_add(field.origin_at(at)).saturating_add(field.reach_at(at).1);
            if field.extent_at(at) != expected {
                return Err(field.error(format!(
                    "expected {expected} points along {}, as the others have them, since '{}' is not told where to \
                     compute, got {}; pass arrays of one shape, or give it a parameter domain",
                    field.axis_name(axis),
                    field.stencil.name,
                    field.extent_at(at)
                )));
            }
        }
    }
    Ok(())
}

/// Every field by itself. The domain that is returned is what the outputs of a functional call
/// have, and means nothing otherwise.
fn decided(spec: &StencilSpec, bound: &mut [Bound<'_>], request: &Request) -> Result<Extents> {
    let with_halo = bound.iter().any(Bound::carries_halo);
    let frame = if with_halo { lows_of_halos(spec, bound) } else { Vec::new() };
    for field in bound.iter_mut() {
        field.origin = match field.given {
            Some(origin) => inside(field, whole_origin(field, origin, true)?)?,
            None => own_origin(field, &frame)?,
        };
    }
    match &request.domain {
        Some(domain) => Ok(domain.clone()),
        None if request.functional => common_domain(spec, bound),
        None => Ok(largest_domain(spec, bound)),
    }
}

/// An origin behind the array is no point of it. One before it is: the field begins later.
fn inside(field: &Bound<'_>, origin: Extents) -> Result<Extents> {
    for (axis, at) in field.spatial() {
        let (first, extent) = (origin.get(at).copied().unwrap_or(0), field.extent_at(at));
        if first > extent {
            return Err(field.error(format!(
                "origin: expected at most {extent} along {}, as many points as there are, got {first}",
                field.axis_name(axis)
            )));
        }
    }
    Ok(origin)
}

/// Along each axis the lower halo of the fields with a halo, where it is the same. Extents may differ.
fn lows_of_halos(spec: &StencilSpec, bound: &[Bound<'_>]) -> Vec<Frame> {
    let frame = frame_of_halos(spec, bound);
    let lows = |axis: usize| {
        let halos = bound.iter().filter(|field| field.carries_halo()).flat_map(move |field| {
            field.spatial().filter(move |one| one.0 == axis).map(|one| field.halo_at(one.1))
        });
        halos.map(|halo| halo.0).max()
    };
    // Where no field has points below its domain, every field begins with it.
    let open = |(axis, own): (usize, Frame)| match lows(axis) {
        Some(0) | None => Frame::Open,
        Some(_) => own,
    };
    frame.into_iter().enumerate().map(open).collect()
}

/// Where a field of a stencil begins that decides itself where it computes.
fn own_origin(field: &Bound<'_>, frame: &[Frame]) -> Result<Extents> {
    let mut origin = origin_of(field, None, &[])?;
    for (axis, at) in field.spatial() {
        let Some(first) = origin.get_mut(at) else { continue };
        *first = match frame.get(axis) {
            _ if field.carries_halo() => field.halo_at(at).0,
            None | Some(Frame::Open) => 0,
            Some(&own @ Frame::Agreed(whole, (low, high))) => {
                let inner = whole.saturating_sub(low).saturating_sub(high);
                beside_halos(field, (axis, at), inner, own)?
            }
            Some(&own @ Frame::Differs) => beside_halos(field, (axis, at), -1, own)?,
        };
    }
    Ok(origin)
}

/// What all fields have between their halos.
fn common_domain(spec: &StencilSpec, bound: &[Bound<'_>]) -> Result<Extents> {
    let mut domain: Vec<Option<i64>> = vec![None; spec.axes.len()];
    for field in bound {
        for (axis, at) in field.spatial() {
            let (low, high) = field.halo_at(at);
            let inner = field.extent_at(at).saturating_sub(low).saturating_sub(high);
            let Some(known) = domain.get_mut(axis) else { continue };
            if known.is_some_and(|known| known != inner) {
                return Err(field.error(format!(
                    "expected the same points along {} as in the others, for an output that is to be made, got \
                     {inner}; pass domain=, or the outputs",
                    field.axis_name(axis)
                )));
            }
            *known = Some(inner);
        }
    }
    Ok(domain.into_iter().map(|found| found.unwrap_or(1)).collect())
}

/// The widest halo along each axis, over the fields that carry one.
pub(super) fn widest_halo(spec: &StencilSpec, bound: &[Bound<'_>]) -> Halo {
    let mut widest = Halo::from_elem((0, 0), spec.axes.len());
    for field in bound {
        for (axis, at) in field.spatial() {
            let (low, high) = field.halo_at(at);
            if let Some(known) = widest.get_mut(axis) {
                *known = (known.0.max(low), known.1.max(high));
            }
        }
    }
    widest
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

fn domain_of_halos(spec: &StencilSpec, bound: &[Bound<'_>]) -> Result<Extents> {
    let mut domain: Vec<Option<(i64, &str)>> = vec![None; spec.axes.len()];
    for field in bound.iter().filter(|field| field.carries_halo()) {
        for (axis, at) in field.spatial() {
            let (low, high) = field.halo_at(at);
            let inner = field.extent_at(at).saturating_sub(low).saturating_sub(high);
            let Some(known) = domain.get_mut(axis) else { continue };
            match *known {
                None => *known = Some((inner, &field.spec.name)),
                Some((points, other)) if points != inner => {
                    return Err(field.error(format!(
                        "expected {points} points between the halos along {}, as in '{other}', got {inner}; {WAY_OUT}",
                        field.axis_name(axis)
                    )));
                }
                Some(_) => {}
            }
        }
    }
    let found = domain.iter().map(|found| found.map(|known| known.0));
    Ok(found.enumerate().map(|(axis, found)| found.unwrap_or_else(|| open(bound, axis))).collect())
}

/// An axis that no field with a halo has: the smallest extent of the others there, or 1.
fn open(bound: &[Bound<'_>], axis: usize) -> i64 {
    let extents = bound.iter().flat_map(|field| {
        field.spatial().filter(move |one| one.0 == axis).map(|one| field.extent_at(one.1))
    });
    extents.min().unwrap_or(1)
}

type Frames = Vec<Frame>;

fn frame_of_halos(spec: &StencilSpec, bound: &[Bound<'_>]) -> Frames {
    let mut frame = vec![Frame::Open; spec.axes.len()];
    for field in bound.iter().filter(|field| field.carries_halo()) {
        for (axis, at) in field.spatial() {
            let own = Frame::Agreed(field.extent_at(at), field.halo_at(at));
            if let Some(known) = frame.get_mut(axis) {
                *known = match *known {
                    Frame::Open => own,
                    known if known == own => own,
                    _ => Frame::Differs,
                };
            }
        }
    }
    frame
}

/// Where a field begins that says nothing, and of which nothing is said.
fn origin_of(field: &Bound<'_>, domain: Option<&Extents>, frame: &[Frame]) -> Result<Extents> {
    if !field.knows_halo() {
        return Err(
            field.error("expected a known halo, got a view whose halo is unknown; pass origin=")
        );
    }
    let mut origin = Extents::from_elem(0, field.axes.len()); // data dimensions start at 0
    if frame.is_empty() {
        return Ok(origin);
    }
    for (axis, at) in field.spatial() {
        let Some(first) = origin.get_mut(at) else { continue };
        *first = if field.carries_halo() {
            field.halo_at(at).0
        } else {
            let inner = domain.and_then(|domain| domain.get(axis).copied()).unwrap_or(0);
            beside_halos(field, (axis, at), inner, frame.get(axis).copied().unwrap_or(Frame::Open))?
        };
    }
    Ok(origin)
}

/// A field without a halo beside others that have one: the domain, or the whole of the others.
fn beside_halos(
    field: &Bound<'_>,
    (axis, at): (usize, usize),
    inner: i64,
    frame: Frame,
) -> Result<i64> {
    let extent = field.extent_at(at);
    match frame {
        _ if inner == extent => Ok(0),
        Frame::Agreed(whole, (low, _)) if whole == extent => Ok(low),
        _ => Err(neither(field, axis, inner, frame)),
    }
}

fn neither(field: &Bound<'_>, axis: usize, inner: i64, frame: Frame) -> Error {
    let expected = match frame {
        Frame::Agreed(whole, _) => {
            format!("expected {inner} points (the domain) or {whole} (with halo)")
        }
        Frame::Open => format!("expected {inner} points (the domain)"),
        Frame::Differs if inner < 0 => "expected a halo, since those of the others differ,".into(),
        Frame::Differs => {
            format!("expected {inner} points (the domain), since the halos of the others differ,")
        }
    };
    let extent = field.spatial().find(|one| one.0 == axis).map_or(0, |one| field.extent_at(one.1));
    let name = field.axis_name(axis);
    field.error(format!("{expected} along {name}, got {extent} and no halo; {WAY_OUT}"))
}

/// An origin may name the spatial dimensions only; data dimensions then start at 0.
fn whole_origin(field: &Bound<'_>, origin: &Extents, domain_given: bool) -> Result<Extents> {
    let (spatial, all) = (field.spatial.len(), field.axes.len());
    if origin.len() != spatial && origin.len() != all {
        return Err(
            field.error(format!("origin: expected {spatial} numbers, got {:?}", origin.as_slice()))
        );
    }
    if origin.iter().skip(spatial).any(|&at| at != 0) {
        let got = origin.as_slice();
        return Err(field.error(format!("origin: expected 0 along data dimensions, got {got:?}")));
    }
    let mut origin = origin.clone();
    origin.resize(all, 0);
    check_shift(field, &origin, domain_given)?;
    Ok(origin)
}

/// The domain of the halos begins at the lower halo. From anywhere else it would be a silent shift.
fn check_shift(field: &Bound<'_>, origin: &Extents, domain_given: bool) -> Result<()> {
    let at_halo = field.spatial().all(|(_, at)| origin.get(at) == Some(&field.halo_at(at).0));
    if domain_given || at_halo || !field.carries_halo() {
        return Ok(());
    }
    Err(field.error(format!(
        "expected a domain= beside an origin other than the lower halo, got origin {:?} alone",
        origin.as_slice()
    )))
}

/// GT4Py's rule: along each axis as far as every field that has it reaches.
fn largest_domain(spec: &StencilSpec, bound: &[Bound<'_>]) -> Extents {
    let mut domain: Vec<Option<i64>> = vec![None; spec.axes.len()];
    for field in bound {
        for (axis, at) in field.spatial() {
            let room = field
                .extent_at(at)
                .saturating_sub(field.origin_at(at))
                .saturating_sub(field.reach_at(at).1);
            if let Some(known) = domain.get_mut(axis) {
                *known = Some(known.map_or(room, |known| known.min(room)));
            }
        }
    }
    domain.into_iter().map(|found| found.unwrap_or(1)).collect()
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

//! Where the domain begins in a field.

use super::bound::Bound;
use super::frame::Frame;
use crate::error::{Error, Result};
use crate::layout::Extents;

/// What helps where fields do not agree.
pub(super) const WAY_OUT: &str = "pass origin= and domain=";

/// As it was given. It may name the spatial dimensions only; data dimensions then start at 0.
pub(super) fn given(field: &Bound<'_>, origin: &Extents) -> Result<Extents> {
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
    Ok(origin)
}

/// The domain of the halos begins at the lower halo. From anywhere else it would be a silent shift.
pub(super) fn check_shift(field: &Bound<'_>, origin: &Extents) -> Result<()> {
    let at_halo = field.spatial().all(|(_, at)| origin.get(at) == Some(&field.halo_at(at).0));
    if at_halo || !field.carries_halo() {
        return Ok(());
    }
    Err(field.error(format!(
        "expected a domain= beside an origin other than the lower halo, got origin {:?} alone",
        origin.as_slice()
    )))
}

/// An origin behind the array is no point of it. One before it is: the field begins later.
pub(super) fn check_inside(field: &Bound<'_>, origin: &Extents) -> Result<()> {
    for (axis, at) in field.spatial() {
        let (first, extent) = (origin.get(at).copied().unwrap_or(0), field.extent_at(at));
        if first > extent {
            return Err(field.error(format!(
                "origin: expected at most {extent} along {}, as many points as there are, got {first}",
                field.axis_name(axis)
            )));
        }
    }
    Ok(())
}

/// For a field about which nothing is said, beside the fields with a halo that `frame` is about.
/// `inner`: points of the domain along an axis, where they are known.
pub(super) fn found(
    field: &Bound<'_>,
    frame: &[Frame],
    inner: impl Fn(usize) -> Option<i64>,
) -> Result<Extents> {
    if !field.knows_halo() {
        return Err(
            field.error("expected a known halo, got a view whose halo is unknown; pass origin=")
        );
    }
    let mut origin = Extents::from_elem(0, field.axes.len()); // data dimensions start at 0
    for (axis, at) in field.spatial() {
        let Some(first) = origin.get_mut(at) else { continue };
        *first = match frame.get(axis) {
            None => 0,
            Some(_) if field.carries_halo() => field.halo_at(at).0,
            Some(&frame) => beside_halos(field, (axis, at), inner(axis), frame)?,
        };
    }
    Ok(origin)
}

/// A field without a halo beside others that have one: the domain, or the whole of the others.
fn beside_halos(
    field: &Bound<'_>,
    (axis, at): (usize, usize),
    inner: Option<i64>,
    frame: Frame,
) -> Result<i64> {
    let extent = field.extent_at(at);
    let between = match frame {
        Frame::Agreed(whole, (low, high)) => Some(whole.saturating_sub(low).saturating_sub(high)),
        _ => None,
    };
    match (inner.or(between), frame) {
        (Some(inner), _) if inner == extent => Ok(0),
        (_, Frame::Agreed(whole, (low, _))) if whole == extent => Ok(low),
        (None, Frame::Open) => Ok(0),
        (inner, _) => Err(neither(field, axis, at, inner, frame)),
    }
}

fn neither(field: &Bound<'_>, axis: usize, at: usize, inner: Option<i64>, frame: Frame) -> Error {
    let domain = inner.map(|points| format!("{points} points (the domain)"));
    let expected = match (domain, frame) {
        (Some(domain), Frame::Agreed(whole, _)) => format!("{domain} or {whole} (with halo)"),
        (None, Frame::Agreed(whole, (low, high))) => {
            format!("{} points (the domain) or {whole} (with halo)", whole - low - high)
        }
        (Some(domain), Frame::Differs) => {
            format!("{domain}, since the halos of the others differ,")
        }
        (Some(domain), Frame::Open) => domain,
        (None, _) => "a halo, since those of the others differ,".into(),
    };
    let (name, extent) = (field.axis_name(axis), field.extent_at(at));
    field.error(format!("expected {expected} along {name}, got {extent} and no halo; {WAY_OUT}"))
}

//! The first point of the domain in a field.

use super::frame::Frame;
use super::placed::{Placed, Spatial};
use crate::error::Result;
use crate::layout::Extents;

/// Reads a given origin, which may be of the spatial dimensions only; data dimensions start at 0.
pub(super) fn given(field: &Placed<'_>, origin: &Extents) -> Result<Extents> {
    let (spatial, all) = (field.spatial.len(), field.axes.len());
    if origin.len() != spatial && origin.len() != all {
        let plural = if spatial == 1 { "" } else { "s" };
        return Err(field.error(format!(
            "origin: expected {spatial} number{plural}, got {:?}",
            origin.as_slice()
        )));
    }
    if origin.iter().skip(spatial).any(|&at| at != 0) {
        let got = origin.as_slice();
        return Err(field.error(format!("origin: expected 0 along data dimensions, got {got:?}")));
    }
    let mut origin = origin.clone();
    origin.resize(all, 0);
    Ok(origin)
}

/// Refuses a silent shift: the domain that follows from halos begins at the lower halo.
pub(super) fn check_shift(field: &Placed<'_>) -> Result<()> {
    let mut spatial = field.spatial.iter();
    if spatial.all(|one| field.origin_at(one.at) == one.halo.0) || !field.carries_halo() {
        return Ok(());
    }
    Err(field.error(format!(
        "expected a domain= beside an origin other than the lower halo, got origin {:?} alone",
        field.origin.as_slice()
    )))
}

/// Refuses an origin behind the array. One before it is legal: the field begins later.
pub(super) fn check_inside(field: &Placed<'_>) -> Result<()> {
    match field.spatial.iter().find(|one| field.origin_at(one.at) > one.extent) {
        None => Ok(()),
        Some(one) => Err(field.error(format!(
            "origin: expected at most {} along {}, as many points as there are, got {}",
            one.extent,
            one.name,
            field.origin_at(one.at)
        ))),
    }
}

/// Finds the origin of a field that has none, from the `frame` of the fields with a halo. `inner`
/// gives the points of the domain along an axis, if they are known.
pub(super) fn found(
    field: &Placed<'_>,
    frame: &[Frame],
    inner: impl Fn(usize) -> Option<i64>,
) -> Result<Extents> {
    if field.argument.halo.is_none() {
        let way_out = match field.stencil.decided_by.takes_origin() {
            true => "pass origin=",
            false => "give it one with dlfield.as_storage(x, halo=...)",
        };
        return Err(field
            .error(format!("expected a known halo, got a view whose halo is unknown; {way_out}")));
    }
    let mut origin = Extents::from_elem(0, field.axes.len()); // data dimensions start at 0
    for one in &field.spatial {
        let Some(first) = origin.get_mut(one.at) else { continue };
        *first = match frame.get(one.axis) {
            None => 0,
            Some(_) if field.carries_halo() => one.halo.0,
            Some(&frame) => beside_halos(field, one, inner(one.axis), frame)?,
        };
    }
    Ok(origin)
}

/// For a field without a halo beside others that have one: its extent is that of the domain, or
/// that of the others with their halos.
fn beside_halos(
    field: &Placed<'_>,
    one: &Spatial<'_>,
    inner: Option<i64>,
    frame: Frame,
) -> Result<i64> {
    let between = match frame {
        Frame::Agreed(whole, (low, high)) => Some(whole.saturating_sub(low).saturating_sub(high)),
        _ => None,
    };
    let expected = match (inner.or(between), frame) {
        (Some(inner), _) if inner == one.extent => return Ok(0),
        (_, Frame::Agreed(whole, (low, _))) if whole == one.extent => return Ok(low),
        (None, Frame::Open) => return Ok(0),
        (Some(inner), Frame::Agreed(whole, _)) if whole != inner => {
            format!("{inner} points (the domain) or {whole} (with halo)")
        }
        (Some(inner), Frame::Differs) => {
            format!("{inner} points (the domain), since the halos of the others differ,")
        }
        (Some(inner), _) => format!("{inner} points (the domain)"),
        (None, _) => {
            return Err(field.error(format!(
                "expected a halo along {}, since those of the others differ, got none; pass {}",
                one.name,
                field.stencil.decided_by.place_options()
            )));
        }
    };
    let (name, extent, way_out) = (one.name, one.extent, field.stencil.decided_by.place_options());
    Err(field.error(format!(
        "expected {expected} along {name}, got {extent} and no halo; pass an array of such an extent, \
         with the axes in this order, or {way_out}"
    )))
}

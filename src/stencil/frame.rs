//! What the fields of a call say together about each axis of the iteration.

use super::StencilSpec;
use super::bound::Bound;
use crate::error::{Error, Result};
use crate::field::{Halo, HaloWidth};
use crate::layout::Extents;

/// What the fields with a halo agree on along one axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    /// No field with a halo has the axis.
    Open,
    /// All have the same extent, halo included, and the same halo.
    Agreed(i64, HaloWidth),
    /// They differ.
    Differs,
}

/// The fields that have an axis, with its position among the dimensions of each.
pub(super) fn along<'b, 'a>(
    bound: &'b [Bound<'a>],
    axis: usize,
) -> impl Iterator<Item = (&'b Bound<'a>, usize)> {
    bound.iter().filter_map(move |field| {
        field.spatial().find(|one| one.0 == axis).map(|(_, at)| (field, at))
    })
}

/// One value for each axis.
pub(super) fn each<T, C: FromIterator<T>>(spec: &StencilSpec, of: impl Fn(usize) -> T) -> C {
    (0..spec.axes.len()).map(of).collect()
}

/// The widest halo along each axis.
pub(super) fn widest_halo(spec: &StencilSpec, bound: &[Bound<'_>]) -> Halo {
    each(spec, |axis| {
        let halos = along(bound, axis).map(|(field, at)| field.halo_at(at));
        halos.fold((0, 0), |widest, halo| (widest.0.max(halo.0), widest.1.max(halo.1)))
    })
}

/// Points around the domain of an output that is made: none for a stencil that might compute there,
/// all that the others have for one that is not told where to compute.
pub(super) fn around(
    spec: &StencilSpec,
    bound: &[Bound<'_>],
    domain: &Extents,
    halo: &Halo,
) -> Halo {
    if spec.decides_domain {
        return Halo::from_elem((0, 0), spec.axes.len());
    }
    if spec.told_origin && spec.told_domain {
        return halo.clone();
    }
    each(spec, |axis| {
        let Some((field, at)) = along(bound, axis).next() else { return (0, 0) };
        let (low, points) = (field.origin_at(at), domain.get(axis).copied().unwrap_or(0));
        (low, field.extent_at(at).saturating_sub(low).saturating_sub(points))
    })
}

/// What the fields with a halo agree on along each axis; empty where none has one.
pub(super) fn frame(spec: &StencilSpec, bound: &[Bound<'_>]) -> Vec<Frame> {
    if !bound.iter().any(Bound::carries_halo) {
        return Vec::new();
    }
    each(spec, |axis| {
        let with_halo = along(bound, axis).filter(|(field, _)| field.carries_halo());
        let own =
            with_halo.map(|(field, at)| Frame::Agreed(field.extent_at(at), field.halo_at(at)));
        own.fold(Frame::Open, |known, own| match known {
            Frame::Open => own,
            known if known == own => own,
            _ => Frame::Differs,
        })
    })
}

/// As [`frame`], for fields that need not have the same extents: where none has points below its
/// domain, every field begins with it.
pub(super) fn frame_of_lows(spec: &StencilSpec, bound: &[Bound<'_>]) -> Vec<Frame> {
    let lowest = |axis| along(bound, axis).map(|(field, at)| field.halo_at(at).0).max();
    let known = frame(spec, bound).into_iter().enumerate();
    known.map(|(axis, own)| if lowest(axis) == Some(0) { Frame::Open } else { own }).collect()
}

/// Points between the halos, which must be the same for all fields that `counts`; `None` for an axis
/// that none of them has.
pub(super) fn agreed(
    spec: &StencilSpec,
    bound: &[Bound<'_>],
    counts: impl Fn(&Bound<'_>) -> bool,
    way_out: &str,
) -> Result<Vec<Option<i64>>> {
    let inner = |(field, at): &(&Bound<'_>, usize)| {
        let (low, high) = field.halo_at(*at);
        field.extent_at(*at).saturating_sub(low).saturating_sub(high)
    };
    each::<_, Result<_>>(spec, |axis| {
        let mut fields = along(bound, axis).filter(|(field, _)| counts(field));
        let Some(first) = fields.next() else { return Ok(None) };
        match fields.find(|one| inner(one) != inner(&first)) {
            None => Ok(Some(inner(&first))),
            Some(other) => {
                Err(disagree(axis, (&first, inner(&first)), (&other, inner(&other)), way_out))
            }
        }
    })
}

type Said<'s, 'b, 'a> = (&'s (&'b Bound<'a>, usize), i64);

fn disagree(axis: usize, first: Said<'_, '_, '_>, other: Said<'_, '_, '_>, way_out: &str) -> Error {
    let ((known, _), points) = first;
    let ((field, _), got) = other;
    field.error(format!(
        "expected {points} points between the halos along {}, as in '{}', got {got}; {way_out}",
        field.axis_name(axis),
        known.spec.name
    ))
}

/// GT4Py's rule: along each axis as far as every field that has it reaches.
pub(super) fn largest_domain(spec: &StencilSpec, bound: &[Bound<'_>]) -> Extents {
    let room = |(field, at): (&Bound<'_>, usize)| {
        field.extent_at(at).saturating_sub(field.origin_at(at)).saturating_sub(field.reach_at(at).1)
    };
    each(spec, |axis| along(bound, axis).map(room).min().unwrap_or(1))
}

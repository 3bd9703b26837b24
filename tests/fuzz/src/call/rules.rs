//! The points that a call touches, and where it computes if the caller does not say: `docs/stencils.md`,
//! "Origin and domain".

use std::collections::BTreeSet;

use dlfield::fuzzed::{Boxes, Reach};

use super::field::Field;

// ── the points that are touched ──

/// The first point along an axis, and the end behind the last, for a domain of `n` points.
fn range(reach: &Reach, n: i64) -> (i64, i64) {
    let [below, above, below_end, above_start, most_below, most_above] = *reach;
    // Points below the upper end, and above the lower end, count where the domain has fewer.
    let low = -below.max((below_end - n).min(most_below));
    let high = n + above.max((above_start - n).min(most_above));
    // What is read ahead or behind alone covers both of its ends.
    if low < high { (low, high) } else { (high - 1, low + 1) }
}

/// The box of a use, in the declared order; without all accesses known it has the first point.
fn box_of(field: &Field, reach: &[Reach; 3], domain: &[i64]) -> Vec<(i64, i64)> {
    let along = |axis: usize| {
        let (low, high) = range(&reach[axis], domain[axis]);
        if field.complete { (low, high) } else { (low.min(0), high) }
    };
    field.spatial().map(along).collect()
}

pub fn boxes(field: &Field, domain: &[i64]) -> Boxes {
    let of = |reach: &Option<[Reach; 3]>| reach.as_ref().map(|one| box_of(field, one, domain));
    (of(&field.reads), of(&field.writes))
}

/// Where a footprint that was found has its points: the numbers of the declared one, for a domain of 3.
pub fn found_boxes(fields: &[Field]) -> Vec<Boxes> {
    fields.iter().map(|field| boxes(field, &[3, 3, 3])).collect()
}

/// True if each point of a box, counted from the origin, is in the array.
fn is_inside(field: &Field, origin: &[i64], points: &[(i64, i64)]) -> bool {
    let along = field.spatial().zip(field.dims.iter().zip(origin).filter(|(dim, _)| **dim < 3));
    let mut along = along.zip(points);
    along.all(|((axis, (_, at)), (first, end))| {
        (*first..*end).all(|point| (0..field.extents[axis]).contains(&(at + point)))
    })
}

pub fn are_inside(field: &Field, origin: &[i64], boxes: &Boxes) -> bool {
    [&boxes.0, &boxes.1].into_iter().flatten().all(|points| is_inside(field, origin, points))
}

// ── where a stencil computes ──

/// Domain and origins along I, J, K of a stencil of gt4py.cartesian; `None` if they must be refused.
pub fn placed(fields: &[Field], domain: Option<[i64; 3]>) -> Option<([i64; 3], Vec<[i64; 3]>)> {
    let with_halo = fields.iter().any(|field| field.is_used() && field.carries_halo());
    let points = match domain {
        Some(domain) => Some(domain),
        None if with_halo => {
            let along = |axis| points_between(fields, axis);
            Some([along(0)?, along(1)?, along(2)?])
        }
        None => None,
    };
    let mut origins = vec![];
    for field in fields {
        origins.push(match field.origin.filter(|_| field.is_used()) {
            _ if !field.is_used() => [0; 3],
            Some(origin) => {
                let moved = field.spatial().any(|axis| origin[axis] != field.halo_along(axis).0);
                if moved && domain.is_none() && field.carries_halo() {
                    return None; // a silent shift
                }
                origin
            }
            None => begin(field, fields, points)?,
        });
    }
    let largest = |axis: usize| {
        let room = |(field, origin): (&Field, &[i64; 3])| {
            let has = field.is_used() && field.dims.contains(&axis);
            has.then(|| field.extents[axis] - origin[axis] - above(field, axis))
        };
        fields.iter().zip(&origins).filter_map(room).min().unwrap_or(1)
    };
    Some((points.unwrap_or_else(|| [0, 1, 2].map(largest)), origins))
}

/// The most points above the domain that are touched, whatever its size.
fn above(field: &Field, axis: usize) -> i64 {
    let uses = [&field.reads, &field.writes];
    uses.into_iter().flatten().map(|reach| reach[axis][1]).max().unwrap_or(0)
}

/// The points between the halos along an axis, in which all fields with a halo agree; else the smallest
/// extent, or 1 if no field has the axis.
fn points_between(fields: &[Field], axis: usize) -> Option<i64> {
    let having = || fields.iter().filter(|one| one.is_used() && one.dims.contains(&axis));
    let inner = |field: &Field| {
        let (low, high) = field.halo_along(axis);
        field.extents[axis] - low - high
    };
    let mut inner = having().filter(|one| one.carries_halo()).map(inner);
    match inner.next() {
        Some(first) => inner.all(|other| other == first).then_some(first),
        None => Some(having().map(|one| one.extents[axis]).min().unwrap_or(1)),
    }
}

/// The origin of a field that is given none.
fn begin(field: &Field, fields: &[Field], points: Option<[i64; 3]>) -> Option<[i64; 3]> {
    field.halo?; // an unknown halo asks for an origin
    let carriers: Vec<&Field> =
        fields.iter().filter(|one| one.is_used() && one.carries_halo()).collect();
    let mut origin = [0; 3];
    for axis in field.spatial() {
        if field.carries_halo() {
            origin[axis] = field.halo_along(axis).0;
        } else if !carriers.is_empty() {
            let forms: BTreeSet<(i64, (i64, i64))> = carriers
                .iter()
                .filter(|one| one.dims.contains(&axis))
                .map(|one| (one.extents[axis], one.halo_along(axis)))
                .collect();
            let whole = forms.first().filter(|_| forms.len() == 1);
            origin[axis] = match whole {
                _ if points.is_some_and(|points| points[axis] == field.extents[axis]) => 0,
                Some((extent, (low, _))) if *extent == field.extents[axis] => *low,
                _ => return None,
            };
        }
    }
    Some(origin)
}

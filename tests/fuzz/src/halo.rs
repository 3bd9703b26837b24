//! Boxes of a halo exchange, held against a periodic row of equal fields: what is sent in a direction is
//! what the neighbour there receives, point by point, and edges and interior are the domain.
#![no_main]

use std::collections::BTreeSet;
use std::iter::{repeat, zip};

use arbitrary::{Arbitrary, Result, Unstructured};
use dlfield::{Dim, Divided, Field, Halo, HaloBoxes, IndexBox};
use fuzz::elements::indices;
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 5] = ["I", "J", "K", "Cell", "0"];

#[derive(Debug, Arbitrary)]
struct Input {
    /// For each axis the extent and the halo, mostly one that fits.
    #[arbitrary(with = axes)]
    axes: Vec<(i64, (i64, i64))>,
    #[arbitrary(with = all_divided)]
    divided: Vec<Divided>,
    #[arbitrary(with = reaches)]
    reach: Vec<(i64, i64)>,
}

fn axes(input: &mut Unstructured<'_>) -> Result<Vec<(i64, (i64, i64))>> {
    let axis = |input: &mut Unstructured<'_>| {
        Ok((input.int_in_range(0..=9)?, (input.int_in_range(0..=3)?, input.int_in_range(0..=3)?)))
    };
    (0..input.int_in_range(0..=3)?).map(|_| axis(input)).collect()
}

fn divided(input: &mut Unstructured<'_>) -> Result<Divided> {
    let width = match input.ratio(1, 2)? {
        true => Some((input.int_in_range(-1..=3)?, input.int_in_range(0..=3)?)),
        false => None,
    };
    let shared = if input.ratio(1, 2)? { 0 } else { input.int_in_range(-1..=2)? };
    Ok(Divided { dim: (*input.choose(&NAMES)?).into(), width, shared })
}

fn all_divided(input: &mut Unstructured<'_>) -> Result<Vec<Divided>> {
    (0..input.int_in_range(0..=3)?).map(|_| divided(input)).collect()
}

fn reaches(input: &mut Unstructured<'_>) -> Result<Vec<(i64, i64)>> {
    let one = |input: &mut Unstructured<'_>| {
        Ok((input.int_in_range(-2..=9)?, input.int_in_range(-2..=9)?))
    };
    (0..input.int_in_range(0..=3)?).map(|_| one(input)).collect()
}

/// A divided dimension of the field.
struct Row {
    axis: usize,
    width: (i64, i64),
    shared: i64,
}

/// A field and how it is divided.
struct Model {
    shape: Vec<i64>,
    halo: Halo,
    /// In the order of `divided`; `None` if the field lacks the dimension.
    rows: Vec<Option<Row>>,
}

impl Model {
    /// The first point of the domain along an axis, and the end behind the last.
    fn domain(&self, axis: usize) -> (i64, i64) {
        (self.halo[axis].0, self.shape[axis] - self.halo[axis].1)
    }

    /// `None` for what must be refused.
    fn new(shape: Vec<i64>, halo: Halo, names: &[&str], divided: &[Divided]) -> Option<Self> {
        let fits = |(&extent, &(low, high)): (&i64, &(i64, i64))| low + high <= extent;
        let distinct: BTreeSet<String> = divided.iter().map(|one| one.dim.to_string()).collect();
        if !zip(&shape, &halo).all(fits) || distinct.len() < divided.len() {
            return None;
        }
        let row = |one: &Divided| {
            let axis = names.iter().position(|name| one.dim == **name);
            let (low, high) = axis.map_or((0, 0), |axis| halo[axis]);
            let width = one.width.filter(|_| axis.is_some()).unwrap_or((low, high));
            let right = (0..=low).contains(&width.0) && (0..=high).contains(&width.1);
            (right && one.shared >= 0).then_some(axis.map(|axis| Row {
                axis,
                width,
                shared: one.shared,
            }))
        };
        let rows = divided.iter().map(row).collect::<Option<_>>()?;
        Some(Self { shape, halo, rows })
    }

    fn steps<'a>(&'a self, direction: &'a [i8]) -> impl Iterator<Item = (Option<&'a Row>, i8)> {
        zip(self.rows.iter().map(Option::as_ref), direction.iter().copied().chain(repeat(0)))
    }

    /// The points that are received from a direction, by the place of each along each divided dimension.
    fn received(&self, direction: &[i8], point: &[i64]) -> bool {
        self.steps(direction).all(|(row, step)| {
            let Some(row) = row else { return step == 0 };
            let (at, (first, end)) = (point[row.axis], self.domain(row.axis));
            match step {
                0 => first <= at && at < end,
                1.. => end <= at && at < end + row.width.1,
                _ => first - row.width.0 <= at && at < first,
            }
        })
    }

    /// The place of a point in the neighbour, whose first points are the last of this domain.
    fn in_neighbour(&self, direction: &[i8], point: &[i64]) -> Vec<i64> {
        let mut there = point.to_vec();
        for (row, step) in self.steps(direction) {
            let Some(row) = row else { continue };
            let (first, end) = self.domain(row.axis);
            there[row.axis] -= i64::from(step) * (end - first - row.shared);
        }
        there
    }

    /// True if the domain has too few points for the neighbour in a direction.
    fn is_short(&self, direction: &[i8]) -> bool {
        self.steps(direction).any(|(row, step)| {
            let Some(row) = row else { return false };
            let (first, end) = self.domain(row.axis);
            let sent = if step > 0 { row.width.0 } else { row.width.1 };
            step != 0 && sent > 0 && end - first < sent + row.shared
        })
    }

    /// True if a stencil that reaches so far stays in the domain along each divided dimension.
    fn is_inner(&self, reach: &[(i64, i64)], point: &[i64]) -> bool {
        zip(&self.rows, reach).all(|(row, (low, high))| {
            let Some(row) = row else { return true };
            let (at, (first, end)) = (point[row.axis], self.domain(row.axis));
            at - low.max(&0) >= first && at + high.max(&0) < end
        })
    }

    fn points(&self, is_one: impl Fn(&[i64]) -> bool) -> BTreeSet<Vec<i64>> {
        indices(&self.shape).into_iter().filter(|point| is_one(point)).collect()
    }
}

fn points_of(part: &IndexBox) -> BTreeSet<Vec<i64>> {
    let extents: Vec<i64> = part.iter().map(|range| (range.end - range.start).max(0)).collect();
    let moved = |index: Vec<i64>| zip(index, part).map(|(at, range)| range.start + at).collect();
    indices(&extents).into_iter().map(moved).collect()
}

fn check_direction(model: &Model, boxes: &HaloBoxes, direction: &[i8]) {
    let received = model.points(|point| model.received(direction, point));
    let found = boxes.receive(direction).as_ref().map(points_of).unwrap_or_default();
    assert_eq!(found, received, "received from {direction:?}");
    if model.is_short(direction) {
        assert!(boxes.send(direction).is_err(), "{direction:?}");
        return;
    }
    let opposite: Vec<i8> = direction.iter().map(|step| -step).collect();
    let is_sent = |point: &[i64]| model.received(&opposite, &model.in_neighbour(direction, point));
    let sent = model.points(is_sent);
    let found = boxes.send(direction).expect("points for the neighbour");
    assert_eq!(found.as_ref().map(points_of).unwrap_or_default(), sent, "sent in {direction:?}");
}

fn check_edges(model: &Model, boxes: &HaloBoxes, reach: &[(i64, i64)]) {
    let in_domain = |point: &[i64]| {
        (0..point.len()).all(|axis| {
            let (first, end) = model.domain(axis);
            first <= point[axis] && point[axis] < end
        })
    };
    let interior = model.points(|point| in_domain(point) && model.is_inner(reach, point));
    assert_eq!(points_of(&boxes.interior(reach)), interior, "interior");
    let mut rest = model.points(|point| in_domain(point) && !interior.contains(point));
    for edge in boxes.edges(reach) {
        for point in points_of(&edge) {
            assert!(rest.remove(&point), "{point:?} is in two edges, or in none");
        }
    }
    assert!(rest.is_empty(), "{rest:?} are in no edge");
}

fuzz_target!(|input: Input| {
    let Input { axes, divided, reach } = input;
    let names = &NAMES[..axes.len()];
    let (shape, halo): (Vec<i64>, Halo) = axes.into_iter().unzip();
    let dims = names.iter().map(|name| Dim::from_name(name)).collect();
    let field = Field { dims: Some(dims), halo: Some(halo.clone()), ..Field::default() };
    let found = HaloBoxes::new(&shape, &field, &divided);
    let Some(model) = Model::new(shape, halo, names, &divided) else {
        assert!(found.is_err(), "{field:?} {divided:?}");
        return;
    };
    let boxes = found.expect("a field and a division that fit");
    for direction in HaloBoxes::directions(divided.len()) {
        check_direction(&model, &boxes, &direction);
    }
    check_edges(&model, &boxes, &reach);
});

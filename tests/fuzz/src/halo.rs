//! Boxes of a halo exchange, held against a periodic row of equal fields: what is sent in a direction is
//! what the neighbour there receives, point by point, and edges and interior are the domain.
#![no_main]

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::iter::{repeat, zip};
use std::ops::Range;

use arbitrary::{Arbitrary, Result, Unstructured};
use dlfield::{Dim, Divided, Field, Halo, HaloBoxes, IndexBox};
use fuzz::elements::{Index, indices};
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
    /// Which of the directions is looked at.
    turn: u8,
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
    fn in_neighbour(&self, direction: &[i8], point: &[i64]) -> Index {
        let mut there = Index::from_slice(point);
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

    fn is_inside(&self, part: &IndexBox) -> bool {
        let is_within =
            |(range, &extent): (&Range<i64>, &i64)| 0 <= range.start && range.end <= extent;
        part.iter().any(Range::is_empty) || zip(part, &self.shape).all(is_within)
    }

    /// A box has exactly the points of the field for which `is_one` is true, and none outside.
    fn check(&self, found: Option<&IndexBox>, is_one: impl Fn(&[i64]) -> bool, what: impl Debug) {
        assert!(found.is_none_or(|part| self.is_inside(part)), "{what:?}: {found:?}");
        for point in indices(&self.shape) {
            let is_found = found.is_some_and(|part| has(part, &point));
            assert_eq!(is_found, is_one(&point), "{what:?}: {point:?}, {found:?}");
        }
    }
}

fn has(part: &IndexBox, point: &[i64]) -> bool {
    zip(part, point).all(|(range, at)| range.contains(at))
}

fn check_direction(model: &Model, boxes: &HaloBoxes, direction: &[i8]) {
    let received = |point: &[i64]| model.received(direction, point);
    model.check(boxes.receive(direction).as_ref(), received, ("received", direction));
    if model.is_short(direction) {
        assert!(boxes.send(direction).is_err(), "{direction:?}");
        return;
    }
    let opposite: Vec<i8> = direction.iter().map(|step| -step).collect();
    let is_sent = |point: &[i64]| model.received(&opposite, &model.in_neighbour(direction, point));
    let found = boxes.send(direction).expect("points for the neighbour");
    model.check(found.as_ref(), is_sent, ("sent", direction));
}

fn check_edges(model: &Model, boxes: &HaloBoxes, reach: &[(i64, i64)]) {
    let in_domain = |point: &[i64]| {
        (0..point.len()).all(|axis| {
            let (first, end) = model.domain(axis);
            first <= point[axis] && point[axis] < end
        })
    };
    let is_interior = |point: &[i64]| in_domain(point) && model.is_inner(reach, point);
    model.check(Some(&boxes.interior(reach)), is_interior, "interior");
    let edges = boxes.edges(reach);
    assert!(edges.iter().all(|edge| model.is_inside(edge)), "{edges:?}");
    for point in indices(&model.shape) {
        let times = edges.iter().filter(|edge| has(edge, &point)).count();
        let is_edge = in_domain(&point) && !is_interior(&point);
        assert_eq!(times, usize::from(is_edge), "{point:?} in {edges:?}");
    }
}

fuzz_target!(|input: Input| {
    let Input { axes, divided, reach, turn } = input;
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
    let all = HaloBoxes::directions(divided.len());
    if let Some(direction) = all.get(usize::from(turn) % all.len().max(1)) {
        check_direction(&model, &boxes, direction);
    }
    check_edges(&model, &boxes, &reach);
});

//! Boxes of neighbours, for every small width, halo and number of shared points.
#![allow(clippy::arithmetic_side_effects, reason = "tests: an overflow panics")]

use std::iter::zip;

use super::{Divided, HaloBoxes, IndexBox};
use crate::field::{Dim, Field};

/// A periodic row of parts of one dimension.
#[derive(Clone, Copy, Debug)]
struct Row {
    width: (i64, i64),
    /// Points of the halo that no neighbour fills.
    spare: i64,
    shared: i64,
    /// Points of the domain of each part.
    points: [i64; 3],
}

impl Row {
    fn halo(&self) -> (i64, i64) {
        (self.width.0 + self.spare, self.width.1 + self.spare)
    }

    fn extent(&self, part: usize) -> i64 {
        self.halo().0 + self.points[part] + self.halo().1
    }

    /// The point of the whole row that an index of a part stands for.
    fn point(&self, part: usize, index: i64) -> i64 {
        let own = |points: &i64| points - self.shared;
        let first: i64 = self.points[..part].iter().map(own).sum();
        (first + index - self.halo().0).rem_euclid(self.points.iter().map(own).sum())
    }
}

fn rows() -> Vec<Row> {
    let mut rows = vec![];
    for (low, high) in [(0, 0), (0, 1), (2, 0), (1, 2), (2, 2)] {
        for (spare, shared) in [(0, 0), (1, 0), (0, 1), (1, 2)] {
            let (width, least) = ((low, high), low.max(high) + shared);
            rows.push(Row { width, spare, shared, points: [least + 1, least + 3, least + 2] });
        }
    }
    rows
}

/// The boxes of part `(i, j)` of two rows, as a field with the axes J, K, I.
fn boxes(rows: [Row; 2], [i, j]: [usize; 2]) -> HaloBoxes {
    let [of_i, of_j] = rows;
    let field = Field {
        dims: Some([Dim::J, Dim::K, Dim::I].into_iter().collect()),
        halo: Some([of_j.halo(), (1, 0), of_i.halo()].into_iter().collect()),
        ..Field::default()
    };
    let divided = zip([Dim::I, Dim::J], rows);
    let divided =
        divided.map(|(dim, row)| Divided { dim, width: Some(row.width), shared: row.shared });
    let shape = [of_j.extent(j), 4, of_i.extent(i)];
    HaloBoxes::new(&shape, &field, &divided.collect::<Vec<_>>()).unwrap()
}

fn along(part: usize, step: i8) -> usize {
    (part + 3).checked_add_signed(isize::from(step)).unwrap() % 3
}

/// Every index of a box.
fn indices(of: &IndexBox) -> Vec<Vec<i64>> {
    of.iter().fold(vec![vec![]], |all, range| {
        let longer = |one: &Vec<i64>| -> Vec<Vec<i64>> {
            range.clone().map(|at| [one.as_slice(), &[at]].concat()).collect()
        };
        all.iter().flat_map(longer).collect()
    })
}

#[test]
fn every_halo_is_filled_once_with_the_points_of_the_neighbours_that_it_stands_for() {
    for of_i in rows() {
        for of_j in rows() {
            check_exchange([of_i, of_j]);
        }
    }
}

fn check_exchange(rows: [Row; 2]) {
    for part in [[0, 0], [1, 2], [2, 1]] {
        let (own, mut filled) = (boxes(rows, part), 0);
        for direction in HaloBoxes::directions(2) {
            let neighbour = [along(part[0], direction[0]), along(part[1], direction[1])];
            let opposite: Vec<i8> = direction.iter().map(|step| -step).collect();
            let sent = boxes(rows, neighbour).send(&opposite).unwrap();
            let received = own.receive(&direction);
            assert_eq!(sent.is_some(), received.is_some(), "{rows:?} {direction:?}");
            let (Some(sent), Some(received)) = (sent, received) else { continue };
            let [from, to] = [indices(&sent), indices(&received)];
            assert_eq!(from.len(), to.len(), "{rows:?} {direction:?}");
            for (from, to) in zip(from, to) {
                let [of_i, of_j] = rows;
                assert_eq!(of_i.point(neighbour[0], from[2]), of_i.point(part[0], to[2]));
                assert_eq!(of_j.point(neighbour[1], from[0]), of_j.point(part[1], to[0]));
                assert_eq!(from[1], to[1], "the dimension that is not divided");
                filled += 1;
            }
        }
        let [of_i, of_j] = rows;
        let [i, j] = [of_i.points[part[0]], of_j.points[part[1]]];
        let all = (i + of_i.width.0 + of_i.width.1) * (j + of_j.width.0 + of_j.width.1);
        assert_eq!(filled, (all - i * j) * 4, "{rows:?} {part:?}");
    }
}

#[test]
fn interior_and_edges_have_every_point_of_the_domain_once() {
    for (of_i, of_j) in zip(rows(), rows().into_iter().rev()) {
        let boxes = boxes([of_i, of_j], [1, 1]);
        for reach in [[(0, 0), (0, 0)], [(1, 0), (2, 3)], [(1, 1), (0, 9)], [(9, 9), (1, 1)]] {
            let interior = boxes.interior(&reach);
            let parts = boxes.edges(&reach).into_iter().chain([interior]);
            let mut found: Vec<_> = parts.flat_map(|part| indices(&part)).collect();
            found.sort();
            let domain = boxes.interior(&[]);
            assert_eq!(found, indices(&domain), "{of_i:?} {of_j:?} {reach:?}");
        }
    }
}

#[test]
fn the_interior_reaches_no_halo() {
    let row = Row { width: (1, 2), spare: 0, shared: 0, points: [6; 3] };
    let interior = boxes([row, row], [0, 0]).interior(&[(1, 2), (0, 3)]);
    assert_eq!(interior.as_slice(), [1..4, 1..4, 2..5]);
}

fn refused(shape: &[i64], halo: &[(i64, i64)], divided: Divided) -> String {
    let dims = [Dim::I, Dim::J].into_iter().take(shape.len()).collect();
    let halo = Some(halo.iter().copied().collect());
    let field = Field { dims: Some(dims), halo, ..Field::default() };
    let sent = HaloBoxes::new(shape, &field, &[divided]).and_then(|boxes| boxes.send(&[1]));
    sent.unwrap_err().to_string()
}

#[test]
fn a_width_beyond_the_halo_is_refused() {
    let wide = Divided { width: Some((1, 2)), ..Divided::whole_halo("I") };
    let text = refused(&[8], &[(1, 1)], wide);
    assert!(
        text.starts_with("width: expected from (0, 0) to the halo (1, 1) along I, got (1, 2);"),
        "{text}"
    );
    let negative = Divided { width: Some((-1, 0)), ..Divided::whole_halo("I") };
    assert!(refused(&[8], &[(1, 1)], negative).contains("got (-1, 0)"));
}

#[test]
fn a_domain_smaller_than_the_neighbour_s_halo_is_refused_where_there_is_a_neighbour() {
    let text = refused(&[8], &[(3, 3)], Divided::whole_halo("I"));
    assert!(
        text.starts_with("domain: expected at least the 3 points along I that go to"),
        "{text}"
    );
    assert!(text.contains("got 2"), "{text}");
    let shared = refused(&[9], &[(3, 3)], Divided { shared: 1, ..Divided::whole_halo("I") });
    assert!(shared.contains("beside 1 shared with it, got 3"), "{shared}");

    let field = Field {
        dims: Some([Dim::I, Dim::J].into_iter().collect()),
        halo: Some([(3, 3), (1, 1)].into_iter().collect()),
        ..Field::default()
    };
    let divided = [Divided::whole_halo("I"), Divided::whole_halo("J")];
    let boxes = HaloBoxes::new(&[8, 8], &field, &divided).unwrap();
    assert_eq!(boxes.send(&[0, 1]).unwrap().unwrap().as_slice(), [3..5, 6..7]);
}

#[test]
fn a_field_without_a_divided_dimension_has_no_box_in_its_directions() {
    let field = Field {
        dims: Some([Dim::I, Dim::K].into_iter().collect()),
        halo: Some([(1, 1), (0, 0)].into_iter().collect()),
        ..Field::default()
    };
    let divided = [Divided::whole_halo("I"), Divided::whole_halo("J")];
    let boxes = HaloBoxes::new(&[5, 2], &field, &divided).unwrap();
    assert_eq!(boxes.send(&[1, 1]), Ok(None));
    assert_eq!(boxes.receive(&[0, -1]), None);
    assert_eq!(boxes.receive(&[-1, 0]).unwrap().as_slice(), [0..1, 0..2]);
    assert_eq!(boxes.widths().collect::<Vec<_>>(), [Some((1, 1)), None]);
}

#[test]
fn names_a_known_halo_and_distinct_divided_dimensions_are_needed() {
    let named = Field { dims: Some([Dim::I].into_iter().collect()), ..Field::default() };
    let known = Field { halo: Some([(1, 1)].into_iter().collect()), ..named.clone() };
    let i = Divided::whole_halo("I");
    let text = |field: &Field, divided: &[Divided]| {
        HaloBoxes::new(&[5], field, divided).unwrap_err().to_string()
    };
    assert!(
        text(&Field { dims: None, ..known.clone() }, &[]).starts_with("dims: expected a field")
    );
    assert!(text(&named, &[]).starts_with("halo: expected a known halo"));
    assert!(text(&known, &[i.clone(), i.clone()]).contains("'I' twice"));
    assert!(
        text(&known, &[Divided { shared: -1, ..i }]).starts_with("shared: expected at least 0")
    );
}

#[test]
fn the_opposite_of_a_direction_stands_at_its_place_from_the_end() {
    for divided in 0..4 {
        let all = HaloBoxes::directions(divided);
        assert_eq!(all.len() + 1, 3_usize.pow(u32::try_from(divided).unwrap()));
        for (one, other) in zip(&all, all.iter().rev()) {
            assert!(zip(one, other).all(|(step, opposite)| step + opposite == 0));
        }
    }
}

//! Arguments that share memory.

use dlfield::Managed;
use dlfield::fuzzed::Boxes;

use super::field::Field;
use crate::elements::{Index, distance, indices};

/// An argument where the call has it: addresses by index in the declared order.
#[derive(Debug)]
pub struct Lying<'a> {
    pub field: &'a Field,
    pub memory: Managed,
    pub origin: Vec<i64>,
    pub boxes: Boxes,
}

impl Lying<'_> {
    /// Addresses of the elements in a box, data dimensions whole, in C order.
    fn addresses(&self, points: Option<&Vec<(i64, i64)>>) -> Vec<i64> {
        let spatial: Vec<usize> =
            (0..self.field.dims.len()).filter(|&at| self.field.dims[at] < 3).collect();
        let within = |index: &Index| {
            points.is_none_or(|points| {
                spatial.iter().zip(points).all(|(&at, (first, end))| {
                    (*first..*end).contains(&(index[at] - self.origin[at]))
                })
            })
        };
        let start = i64::try_from(self.memory.address()).expect("an address of a user's memory");
        let (layout, shape) = (self.memory.layout(), self.field.shape());
        let all = indices(&shape).filter(within);
        all.map(|index| start + distance(layout, &index)).collect()
    }
}

fn meet(one: &[i64], other: &[i64]) -> bool {
    let mut sorted = other.to_vec();
    sorted.sort_unstable();
    one.iter().any(|address| sorted.binary_search(address).is_ok())
}

/// True if a call with these arguments gives the same in any order of a backend's loops.
pub fn may_share(all: &[Lying<'_>]) -> bool {
    let pairs = all.iter().enumerate().flat_map(|(at, output)| {
        all.iter()
            .enumerate()
            .filter(move |(other, _)| *other != at)
            .map(move |one| (output, one.1))
    });
    pairs.filter(|(output, _)| output.field.writes.is_some()).all(|(output, other)| {
        if !meet(&output.addresses(None), &other.addresses(None)) {
            return true;
        }
        if !output.field.complete || !other.field.complete {
            return false;
        }
        let written = output.addresses(output.boxes.1.as_ref());
        let touched = |points: Option<&Vec<_>>| points.map(|one| other.addresses(Some(one)));
        if other.field.writes.is_some() {
            let all = [&other.boxes.0, &other.boxes.1].map(|points| touched(points.as_ref()));
            return all.iter().flatten().all(|addresses| !meet(&written, addresses));
        }
        let read = other.addresses(other.boxes.0.as_ref());
        let in_place = written == read && output.field.dims == other.field.dims;
        let pointwise = output.field.pointwise && other.field.pointwise;
        !meet(&written, &read) || (in_place && pointwise)
    })
}

/// True if strides that mean nothing may make two windows differ, of which one point is the whole extent.
pub fn has_single_points(all: &[Lying<'_>]) -> bool {
    let single = |points: &Vec<(i64, i64)>| points.iter().any(|(first, end)| end - first == 1);
    all.iter().any(|one| [&one.boxes.0, &one.boxes.1].into_iter().flatten().any(single))
}

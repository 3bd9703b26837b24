//! Plans a copy in host memory: runs of bytes, or transpositions of planes.
#![forbid(unsafe_code)]

use super::super::plan::{CopyPlan, Loop, Loops};

/// Largest item in bytes that is transposed in registers.
const LARGEST_ITEM: usize = 16;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Way {
    /// Both sides are contiguous along the same dimension, or neither is contiguous.
    Runs { loops: Loops, run: usize },
    /// The sides are contiguous along different dimensions.
    Planes(Planes),
}

/// Planes of items that are contiguous along one dimension in the source and along the other in
/// the target.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Planes {
    /// Bytes of an item: 1, 2, 4, 8 or 16.
    pub(super) item: usize,
    /// The dimension along which the source is contiguous.
    pub(super) read: Loop,
    /// The dimension along which the target is contiguous.
    pub(super) written: Loop,
    /// The other dimensions, in the source's order.
    pub(super) others: Loops,
}

pub(super) fn way(plan: CopyPlan) -> Way {
    if let Some(planes) = planes(&plan) {
        return Way::Planes(planes);
    }
    let CopyPlan { mut loops, run } = plan;
    if run > LARGEST_ITEM {
        in_order_of_source(&mut loops);
    }
    Way::Runs { loops, run }
}

/// Sorts loops by the source: reading in order matters more than writing whole lines in order.
fn in_order_of_source(loops: &mut Loops) {
    loops.sort_by_key(|one| std::cmp::Reverse(one.source.unsigned_abs()));
}

fn planes(plan: &CopyPlan) -> Option<Planes> {
    if !plan.run.is_power_of_two() || plan.run > LARGEST_ITEM {
        return None;
    }
    let item = isize::try_from(plan.run).ok()?;
    let mut others = plan.loops.clone();
    let written = take(&mut others, |one| one.target == item)?;
    let read = take(&mut others, |one| one.source == item)?;
    in_order_of_source(&mut others);
    Some(Planes { item: plan.run, read, written, others })
}

fn take(loops: &mut Loops, is: impl Fn(&Loop) -> bool) -> Option<Loop> {
    loops.iter().position(is).map(|at| loops.remove(at))
}

#[cfg(test)]
mod tests {
    use super::super::super::plan::plan;
    use super::*;
    use crate::layout::Layout;

    fn way_of(shape: &[i64], from: &[i64], to: &[i64], itemsize: usize) -> Way {
        let layout = |strides: &[i64]| Layout::new(shape.into(), strides.into(), itemsize).unwrap();
        way(plan(&layout(from), &layout(to)).unwrap())
    }

    #[test]
    fn different_fast_dimensions_make_planes() {
        let Way::Planes(planes) = way_of(&[3, 4, 5], &[20, 5, 1], &[1, 3, 12], 8) else { panic!() };
        assert_eq!(planes.read, Loop { count: 5, source: 8, target: 96 });
        assert_eq!(planes.written, Loop { count: 3, source: 160, target: 8 });
        assert_eq!(planes.others.as_slice(), [Loop { count: 4, source: 40, target: 24 }]);
    }

    #[test]
    fn two_adjacent_short_items_move_as_one() {
        let Way::Planes(planes) = way_of(&[3, 4, 2], &[8, 2, 1], &[2, 6, 1], 4) else { panic!() };
        assert_eq!(planes.item, 8);
    }

    #[test]
    fn whole_rows_and_items_apart_on_both_sides_are_runs() {
        let rows = way_of(&[3, 4, 5], &[20, 5, 1], &[5, 15, 1], 8);
        assert!(matches!(rows, Way::Runs { run: 40, .. }), "{rows:?}");
        let items = way_of(&[3, 4], &[8, 2], &[2, 6], 8);
        assert!(matches!(items, Way::Runs { run: 8, .. }), "{items:?}");
    }

    #[test]
    fn a_reversed_dimension_does_not_make_planes() {
        let mirrored = way_of(&[3, 4], &[4, -1], &[1, 3], 8);
        assert!(matches!(mirrored, Way::Runs { .. }), "{mirrored:?}");
    }
}

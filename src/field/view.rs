//! Fields of views: what slicing and reordering do to names, halo, origin and alignment.

use super::description::{Field, Halo, HaloWidth, check_index, check_origin};
use crate::layout::{Extents, Step};

impl Field {
    /// Derives the field of the elements that `steps` select: `shape` becomes `selected`.
    ///
    /// Slices keep names and integers drop them; a new axis is unnamed, which drops all names. A
    /// halo keeps its points inside the view and is mirrored with its dimension. It becomes
    /// unknown if a step thins out a dimension that has one. An origin moves along, unless it is a
    /// point that the view excludes.
    #[must_use]
    pub(crate) fn select(&self, steps: &[Step], shape: &[i64], selected: &[i64]) -> Self {
        let aligned_index = self.selected_index(steps, shape, selected);
        let by_axis = self.origin_by_axis(shape.len());
        let origin = by_axis.filter(|by_axis| !steps.iter().any(|step| excludes(step, by_axis)));
        let origin = origin.and_then(|by_axis| shifted(&by_axis, steps));
        let alignment = if aligned_index.is_some() { self.alignment } else { 1 };
        let dims = self.dims.as_ref().and_then(|dims| remaining(dims, steps));
        let halo = self.halo.as_ref().and_then(|halo| selected_halo(halo, steps, shape));
        let order = self.order.as_ref().and_then(|order| remaining(order, steps));
        let field = Self { dims, halo, aligned_index, alignment, origin: None, order };
        Self { origin: origin.and_then(|by_axis| field.in_order(&by_axis, selected)), ..field }
    }

    /// Reorders the dimensions by `axes`, a permutation.
    #[must_use]
    pub(crate) fn permute(&self, axes: &[usize], permuted: &[i64]) -> Self {
        let field = Self {
            dims: self.dims.as_ref().map(|dims| reordered(dims, axes)),
            halo: self.halo.as_ref().map(|halo| reordered(halo, axes)),
            aligned_index: self.aligned_index.as_ref().map(|index| reordered(index, axes)),
            alignment: self.alignment,
            origin: None,
            order: self.order.as_ref().map(|order| reordered(order, axes)),
        };
        let by_axis = self.origin_by_axis(permuted.len());
        let origin = by_axis
            .and_then(|by_axis| field.in_order(&reordered::<_, Extents>(&by_axis, axes), permuted));
        Self { origin, ..field }
    }

    /// Returns an origin in GT4Py's order; `None` if it lies behind `shape`.
    fn in_order(&self, by_axis: &[i64], shape: &[i64]) -> Option<Extents> {
        let origin = self.origin_in_order(by_axis);
        check_origin(&origin, &self.axes_in_order(shape.len()), shape).is_ok().then_some(origin)
    }

    /// Index of the aligned element in a view that keeps all dimensions.
    fn selected_index(&self, steps: &[Step], shape: &[i64], selected: &[i64]) -> Option<Extents> {
        if self.alignment <= 1 || steps.iter().any(|step| matches!(step, Step::At { .. })) {
            return None;
        }
        let moved = shifted(&self.aligned_index(shape.len()), steps)?;
        check_index(&moved, selected).is_ok().then_some(moved)
    }
}

/// Reorders one entry per axis.
fn reordered<T: Clone, C: FromIterator<T>>(by_axis: &[T], axes: &[usize]) -> C {
    axes.iter().filter_map(|&axis| by_axis.get(axis).cloned()).collect()
}

/// True if a slice begins behind an origin that is a point of the memory.
fn excludes(step: &Step, by_axis: &[i64]) -> bool {
    let Step::Slice { axis, start, .. } = *step else { return false };
    by_axis.get(axis).is_some_and(|at| (0..start).contains(at))
}

/// Moves one index per axis along with slices of step 1. `None` for new axes and other steps.
fn shifted(by_axis: &[i64], steps: &[Step]) -> Option<Extents> {
    let kept = steps.iter().filter(|step| !matches!(step, Step::At { .. }));
    let moved = |step: &Step| match *step {
        Step::Slice { axis, start, step: 1, .. } => Some(by_axis.get(axis)?.saturating_sub(start)),
        _ => None,
    };
    kept.map(moved).collect()
}

/// Keeps the entries of the remaining axes. `None` if there is a new axis, which has no entry.
fn remaining<T: Clone, C: FromIterator<T>>(by_axis: &[T], steps: &[Step]) -> Option<C> {
    let one = |step: &Step| match *step {
        Step::At { .. } => None,
        Step::Slice { axis, .. } => Some(by_axis.get(axis).cloned()),
        Step::New => Some(None),
    };
    steps.iter().filter_map(one).collect()
}

fn selected_halo(halo: &Halo, steps: &[Step], shape: &[i64]) -> Option<Halo> {
    let mut kept = Halo::new();
    for step in steps {
        match *step {
            Step::At { .. } => {}
            Step::New => kept.push((0, 0)),
            Step::Slice { axis, start, step, length } => {
                let (width, extent) = (*halo.get(axis)?, *shape.get(axis)?);
                // The step of a single point has no meaning, except that -1 mirrors the halo.
                let step = if length <= 1 && step != -1 { 1 } else { step };
                kept.push(remaining_halo(width, extent, start, step, length)?);
            }
        }
    }
    Some(kept)
}

/// Halo of `length` points from `start` on. `None` if the step leaves it undefined.
fn remaining_halo(
    (low, high): HaloWidth,
    extent: i64,
    start: i64,
    step: i64,
    length: i64,
) -> Option<HaloWidth> {
    if (low, high) == (0, 0) {
        return Some((0, 0));
    }
    let first = match step {
        1 => start,
        -1 => start.saturating_sub(length).saturating_add(1),
        _ => return None,
    };
    let past = first.saturating_add(length);
    let below = low.saturating_sub(first).clamp(0, length);
    let above = past.saturating_sub(extent.saturating_sub(high)).clamp(0, length);
    Some(if step == 1 { (below, above) } else { (above, below) })
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::super::dims::Dim;
    use super::*;
    use crate::layout::{Item, Layout, steps};

    const SHAPE: [i64; 3] = [10, 8, 4];

    #[test]
    fn an_origin_before_the_memory_moves_along_and_an_excluded_point_is_dropped() {
        let field = Field { origin: Some(smallvec![-5, 2]), ..Field::default() };
        let from = |start, length| Step::Slice { axis: 0, start, step: 1, length };
        let whole = Step::Slice { axis: 1, start: 0, step: 1, length: 4 };
        let selected = field.select(&[from(3, 3), whole], &[6, 4], &[3, 4]);
        assert_eq!(selected.origin.as_deref(), Some(&[-8, 2][..]));
        let inside = Field { origin: Some(smallvec![2, 2]), ..Field::default() };
        assert_eq!(inside.select(&[from(3, 3), whole], &[6, 4], &[3, 4]).origin, None);
    }

    fn field() -> Field {
        Field {
            dims: Some(smallvec![Dim::J, Dim::I, Dim::K]),
            halo: Some(smallvec![(3, 2), (1, 1), (0, 0)]),
            origin: Some(smallvec![1, 3, 0]),
            ..Field::default()
        }
    }

    fn slice(start: i64, stop: i64, step: i64) -> Item {
        Item::Slice { start: Some(start), stop: Some(stop), step: Some(step) }
    }

    fn selected(key: &[Item]) -> Field {
        let steps = steps(key, &SHAPE).unwrap();
        let layout = Layout::compact(SHAPE.as_slice().into(), 8).unwrap();
        let shape = layout.select(&steps).unwrap().0;
        let field = field().select(&steps, &SHAPE, shape.shape());
        field.check(shape.shape()).unwrap();
        field
    }

    #[test]
    fn a_slice_keeps_the_halo_points_inside_it() {
        let halo = |start, stop| selected(&[slice(start, stop, 1)]).halo.unwrap().to_vec();
        assert_eq!(halo(1, 9)[0], (2, 1));
        assert_eq!(halo(4, 6)[0], (0, 0));
        assert_eq!(halo(0, 2)[0], (2, 0), "the whole view lies in the lower halo");
        assert_eq!(halo(9, 10)[0], (0, 1));
        assert_eq!(halo(5, 5)[0], (0, 0));
    }

    #[test]
    fn reversing_a_dimension_mirrors_its_halo() {
        let back = Item::Slice { start: None, stop: None, step: Some(-1) };
        assert_eq!(selected(&[back]).halo.unwrap()[0], (2, 3));
    }

    #[test]
    fn thinning_out_a_dimension_makes_its_halo_unknown_unless_it_has_none() {
        assert_eq!(selected(&[slice(0, 10, 2)]).halo, None);
        assert!(selected(&[Item::Ellipsis, slice(0, 4, 2)]).halo.is_some());
    }

    #[test]
    fn an_integer_drops_one_name_and_a_new_axis_drops_all() {
        let field = selected(&[Item::At(5)]);
        assert_eq!(field.dims, Some(smallvec![Dim::I, Dim::K]));
        assert_eq!((field.halo.unwrap().len(), field.origin), (2, Some(smallvec![1, 0])));
        assert_eq!(selected(&[Item::NewAxis]).dims, None);
    }

    #[test]
    fn an_origin_moves_with_a_slice_and_stays_with_its_name() {
        assert_eq!(selected(&[slice(2, 10, 1)]).origin, Some(smallvec![1, 1, 0]));
        assert_eq!(selected(&[slice(4, 10, 1)]).origin, None, "the origin lies before the view");
        let moved = field().permute(&[2, 0, 1], &[4, 10, 8]);
        assert_eq!(moved.origin, Some(smallvec![1, 3, 0]), "I, J, K as before");
        assert_eq!(moved.halo, Some(smallvec![(0, 0), (3, 2), (1, 1)]));
    }
}

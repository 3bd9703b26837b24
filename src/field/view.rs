//! What a view knows of the field it is a part of.

use smallvec::SmallVec;

use super::{Dim, Dims, Field, Halo, HaloWidth, check_index, check_origin, show_dims};
use crate::error::{Error, Result};
use crate::layout::{Extents, Step};

impl Field {
    /// The field of what `steps` select of one of `shape`, which becomes `selected`.
    ///
    /// Slices keep names, integers drop them, a new axis has none, and a field with an axis without
    /// a name has no names. A halo keeps what is still inside, is mirrored with its dimension, and
    /// is unknown once a dimension that has one is thinned out.
    #[must_use]
    pub(crate) fn select(&self, steps: &[Step], shape: &[i64], selected: &[i64]) -> Self {
        let (aligned_index, origin) =
            (self.selected_index(steps, shape, selected), self.selected_origin(steps, shape));
        let alignment = if aligned_index.is_some() { self.alignment } else { 1 };
        let dims = self.dims.as_ref().and_then(|dims| left_over(dims, steps));
        let halo = self.halo.as_ref().and_then(|halo| selected_halo(halo, steps, shape));
        let order = self.order.as_ref().and_then(|order| left_over(order, steps));
        let field = Self { dims, halo, aligned_index, alignment, origin: None, order };
        Self { origin: origin.and_then(|by_axis| field.in_order(by_axis, selected)), ..field }
    }

    /// The field with its dimensions in the order of `axes`, a permutation.
    #[must_use]
    pub(crate) fn permute(&self, axes: &[usize], permuted: &[i64]) -> Self {
        let picked =
            |from: &Extents| axes.iter().filter_map(|&axis| from.get(axis).copied()).collect();
        let field = Self {
            dims: self
                .dims
                .as_ref()
                .map(|dims| axes.iter().filter_map(|&axis| dims.get(axis).cloned()).collect()),
            halo: self
                .halo
                .as_ref()
                .map(|halo| axes.iter().filter_map(|&axis| halo.get(axis).copied()).collect()),
            aligned_index: self.aligned_index.as_ref().map(picked),
            alignment: self.alignment,
            origin: None,
            order: self.order.as_ref().map(picked),
        };
        let by_axis = self.origin_by_axis(permuted.len());
        let origin = by_axis.and_then(|by_axis| field.in_order(picked(&by_axis), permuted));
        Self { origin, ..field }
    }

    /// The origin with one entry per axis, in the order of the axes.
    fn origin_by_axis(&self, ndim: usize) -> Option<Extents> {
        let mut by_axis = Extents::from_elem(0, ndim);
        for (&at, &axis) in self.origin.as_ref()?.iter().zip(&self.axes_in_order(ndim)) {
            *by_axis.get_mut(axis)? = at;
        }
        Some(by_axis)
    }

    /// The other way round; `None` where it lies outside `shape`.
    fn in_order(&self, by_axis: Extents, shape: &[i64]) -> Option<Extents> {
        let axes = self.axes_in_order(shape.len());
        let origin: Extents = axes.iter().filter_map(|&axis| by_axis.get(axis).copied()).collect();
        check_origin(&origin, &axes, shape).is_ok().then_some(origin)
    }

    fn selected_origin(&self, steps: &[Step], shape: &[i64]) -> Option<Extents> {
        let by_axis = self.origin_by_axis(shape.len())?;
        let mut moved = Extents::new();
        for step in steps {
            match *step {
                Step::At { .. } => {}
                Step::Slice { axis, start, step: 1, .. } => {
                    moved.push(by_axis.get(axis)?.saturating_sub(start));
                }
                _ => return None,
            }
        }
        Some(moved)
    }

    /// Where the aligned element is in a view that still has whole rows around it.
    fn selected_index(&self, steps: &[Step], shape: &[i64], selected: &[i64]) -> Option<Extents> {
        if self.alignment <= 1 {
            return None;
        }
        let index = self.aligned_index(shape.len());
        let mut moved = Extents::new();
        for step in steps {
            match *step {
                Step::Slice { axis, start, step: 1, .. } => {
                    moved.push(index.get(axis)?.saturating_sub(start));
                }
                _ => return None,
            }
        }
        check_index(&moved, selected).is_ok().then_some(moved)
    }
}

/// For each name of `target` the axis of `own` that has it, or `None` where `own` has none and is to
/// be repeated. `None` as a whole: the two speak of different things, and go by position.
///
/// # Errors
/// [`Error::Argument`] where they speak of the same things, and `own` of one that `target` lacks.
pub fn align_by_name(own: &Dims, target: &Dims) -> Result<Option<Axes>> {
    if own.iter().all(|dim| target.contains(dim)) {
        let axis_of = |dim| own.iter().position(|one| one == dim);
        return Ok(Some(target.iter().map(axis_of).collect()));
    }
    if are_unrelated(own, target) {
        return Ok(None);
    }
    Err(Error::Argument(format!(
        "dims: expected names among {}, got {}; rename them, or pass to_numpy() to go by position",
        show_dims(target),
        show_dims(own)
    )))
}

/// As [`align_by_name`] for an array in a key, which stands for the dimensions `covered` of those
/// with the names `dims`: the order of its axes in which they have the names covered.
///
/// # Errors
/// [`Error::Argument`] where its names are other ones, but speak of the same things as `dims`.
#[cfg(feature = "python")]
pub(crate) fn align_key(own: &Dims, covered: &[Dim], dims: &Dims) -> Result<Option<Order>> {
    let axis_of = |dim| own.iter().position(|one| one == dim);
    match covered.iter().map(axis_of).collect::<Option<Order>>() {
        Some(axes) if own.len() == covered.len() => Ok(Some(axes)),
        _ if own.is_empty() || are_unrelated(own, dims) => Ok(None),
        _ => Err(Error::Argument(format!(
            "key: expected an array with the dims {}, which it stands for, got {}; pass to_numpy() to go by position",
            show_dims(covered),
            show_dims(own)
        ))),
    }
}

/// Whether names speak of different things, so that only the position can tell what belongs
/// together.
#[must_use]
pub(crate) fn are_unrelated(own: &Dims, target: &Dims) -> bool {
    let gt4py = |dims: &Dims| dims.iter().all(Dim::is_gt4py);
    let strangers = !own.iter().any(|dim| target.contains(dim));
    strangers && !(gt4py(own) && gt4py(target))
}

/// Axes in the order in which they are wanted.
#[cfg(feature = "python")]
pub(crate) type Order = SmallVec<[usize; 4]>;

/// Where each dimension comes from; `None`: from nowhere.
pub type Axes = SmallVec<[Option<usize>; 4]>;

/// What is said of each axis, for those that are left; `None` where a new one has nothing said of it.
fn left_over<T: Clone, C: FromIterator<T>>(of: &[T], steps: &[Step]) -> Option<C> {
    let one = |step: &Step| match *step {
        Step::At { .. } => None,
        Step::Slice { axis, .. } => Some(of.get(axis).cloned()),
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
                // One point has no steps; that it was asked for backwards may still be said.
                let step = if length <= 1 && step != -1 { 1 } else { step };
                kept.push(left_of(width, extent, start, step, length)?);
            }
        }
    }
    Some(kept)
}

/// What is left of a halo in `length` points from `start` on; `None`: nobody can tell.
fn left_of(
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

    use super::*;
    use crate::layout::{Item, steps};

    const SHAPE: [i64; 3] = [10, 8, 4];

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
        let layout = crate::layout::Layout::compact(SHAPE.as_slice().into(), 8).unwrap();
        let shape = layout.select(&steps).unwrap().0;
        let field = field().select(&steps, &SHAPE, shape.shape());
        field.check(shape.shape()).unwrap();
        field
    }

    #[test]
    fn a_slice_keeps_what_is_left_of_the_halo() {
        let halo = |start, stop| selected(&[slice(start, stop, 1)]).halo.unwrap().to_vec();
        assert_eq!(halo(1, 9)[0], (2, 1));
        assert_eq!(halo(4, 6)[0], (0, 0));
        assert_eq!(halo(0, 2)[0], (2, 0), "all of it lies in the lower halo");
        assert_eq!(halo(9, 10)[0], (0, 1));
        assert_eq!(halo(5, 5)[0], (0, 0));
    }

    #[test]
    fn a_dimension_that_runs_backwards_has_its_halo_mirrored() {
        let back = Item::Slice { start: None, stop: None, step: Some(-1) };
        assert_eq!(selected(&[back]).halo.unwrap()[0], (2, 3));
    }

    #[test]
    fn thinning_out_a_dimension_with_a_halo_makes_it_unknown_and_one_without_does_not() {
        assert_eq!(selected(&[slice(0, 10, 2)]).halo, None);
        assert!(selected(&[Item::Ellipsis, slice(0, 4, 2)]).halo.is_some());
    }

    #[test]
    fn an_integer_drops_a_name_and_a_new_axis_all_of_them() {
        let field = selected(&[Item::At(5)]);
        assert_eq!(field.dims, Some(smallvec![Dim::I, Dim::K]));
        assert_eq!((field.halo.unwrap().len(), field.origin), (2, Some(smallvec![1, 0])));
        assert_eq!(selected(&[Item::NewAxis]).dims, None);
    }

    #[test]
    fn names_are_matched_where_one_side_has_them_all() {
        let dims =
            |text: &str| text.chars().map(|c| Dim::from_name(&c.to_string())).collect::<Dims>();
        let axes = |own, target| {
            align_by_name(&dims(own), &dims(target)).map(|axes| axes.map(|axes| axes.to_vec()))
        };
        assert_eq!(axes("KI", "IJK"), Ok(Some(vec![Some(1), None, Some(0)])));
        assert_eq!(axes("xy", "IJK"), Ok(None));
        assert!(axes("yz", "xy").is_err(), "y has a place, z has none");
        assert!(axes("IJ", "IK").unwrap_err().to_string().contains("among ('I', 'K')"));
    }

    #[test]
    fn an_origin_moves_with_a_slice_and_stays_with_its_name() {
        assert_eq!(selected(&[slice(2, 10, 1)]).origin, Some(smallvec![1, 1, 0]));
        assert_eq!(selected(&[slice(4, 10, 1)]).origin, None, "it lies before the view");
        let moved = field().permute(&[2, 0, 1], &[4, 10, 8]);
        assert_eq!(moved.origin, Some(smallvec![1, 3, 0]), "I, J, K as before");
        assert_eq!(moved.halo, Some(smallvec![(0, 0), (3, 2), (1, 1)]));
    }
}

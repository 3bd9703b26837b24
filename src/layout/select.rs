//! Basic indexing with NumPy's rules: keys of integers, slices, new axes and an ellipsis. Pure.

use std::ops::Range;

use smallvec::SmallVec;

use super::geometry::{Layout, MAX_NDIM};
use super::order::Extents;
use crate::error::{Error, Result};

/// One entry of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// One index, negative from the end. Drops the dimension.
    At(i64),
    /// `start:stop:step` as in Python. A step of 0 is refused.
    Slice {
        /// First index. `None` means the first element in the direction of the step.
        start: Option<i64>,
        /// First index that is left out. `None` means none: up to the other end.
        stop: Option<i64>,
        /// Distance between indices. `None` means 1.
        step: Option<i64>,
    },
    /// A new dimension of extent 1.
    NewAxis,
    /// All remaining dimensions, whole.
    Ellipsis,
}

impl From<Range<i64>> for Item {
    fn from(range: Range<i64>) -> Self {
        Self::Slice { start: Some(range.start), stop: Some(range.end), step: None }
    }
}

/// Selection along one dimension, in the order of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Drops `axis` and keeps its element `at`.
    At { axis: usize, at: i64 },
    /// Keeps `length` elements of `axis`, starting at `start`, each `step` after the one before.
    Slice { axis: usize, start: i64, step: i64, length: i64 },
    /// A new dimension of extent 1.
    New,
}

/// Resolves a key against `shape`.
///
/// # Errors
/// [`Error::Index`] for too many entries, two ellipses, or an index outside its dimension;
/// [`Error::Argument`] for a step of 0.
pub(crate) fn steps(key: &[Item], shape: &[i64]) -> Result<SmallVec<[Step; 6]>> {
    let taking = key.iter().filter(|item| matches!(item, Item::At(_) | Item::Slice { .. })).count();
    let open = shape.len().checked_sub(taking).ok_or_else(|| {
        Error::Index(format!(
            "key: expected at most {} indices for shape {shape:?}, got {taking}",
            shape.len()
        ))
    })?;
    let ellipses = key.iter().filter(|item| **item == Item::Ellipsis).count();
    if ellipses > 1 {
        return Err(Error::Index(format!(
            "key: expected at most one ellipsis ('...'), got {ellipses}"
        )));
    }
    let (mut axes, mut found) = (shape.iter().copied().enumerate(), SmallVec::new());
    let whole = |(axis, length)| Step::Slice { axis, start: 0, step: 1, length };
    for item in key {
        match *item {
            Item::NewAxis => found.push(Step::New),
            Item::Ellipsis => found.extend(axes.by_ref().take(open).map(whole)),
            Item::At(at) => found.extend(axes.next().map(|axis| index(axis, at)).transpose()?),
            Item::Slice { start, stop, step } => {
                found.extend(axes.next().map(|axis| slice(axis, start, stop, step)).transpose()?);
            }
        }
    }
    found.extend(axes.map(whole)); // without an ellipsis, the remaining dimensions are whole
    let ndim = found.iter().filter(|step| !matches!(step, Step::At { .. })).count();
    if ndim > MAX_NDIM {
        return Err(Error::Index(format!(
            "key: expected a result of at most {MAX_NDIM} dimensions, got {ndim}"
        )));
    }
    Ok(found)
}

fn index((axis, extent): (usize, i64), at: i64) -> Result<Step> {
    let counted = if at < 0 { at.saturating_add(extent) } else { at };
    if (0..extent).contains(&counted) {
        return Ok(Step::At { axis, at: counted });
    }
    Err(Error::Index(format!(
        "index {at} is out of bounds for axis {axis} with extent {extent}: expected at least \
         -{extent} and less than {extent}"
    )))
}

/// Resolves a slice as Python does (`PySlice_AdjustIndices`): indices outside are clipped.
fn slice(
    (axis, extent): (usize, i64),
    start: Option<i64>,
    stop: Option<i64>,
    step: Option<i64>,
) -> Result<Step> {
    let step = step.unwrap_or(1).max(-i64::MAX);
    if step == 0 {
        return Err(Error::Argument("slice step: expected a number other than 0, got 0".into()));
    }
    let (low, high) = if step > 0 { (0, extent) } else { (-1, extent.saturating_sub(1)) };
    let bounded = |at: i64| {
        let counted = if at < 0 { at.saturating_add(extent) } else { at };
        counted.clamp(low, high)
    };
    let (from, to) = if step > 0 { (low, high) } else { (high, low) };
    let (start, stop) = (start.map_or(from, bounded), stop.map_or(to, bounded));
    let distance = if step > 0 { stop.saturating_sub(start) } else { start.saturating_sub(stop) };
    let length = match distance {
        ..=0 => 0,
        far => {
            far.saturating_sub(1).checked_div(step.saturating_abs()).unwrap_or(0).saturating_add(1)
        }
    };
    Ok(Step::Slice { axis, start: if length == 0 { 0 } else { start }, step, length })
}

impl Layout {
    /// Selects elements with `steps`, which belong to this layout's shape. Also returns the
    /// distance in bytes from the old first element to the new one.
    pub(crate) fn select(&self, steps: &[Step]) -> Result<(Self, isize)> {
        let (mut shape, mut strides, mut moved) = (Extents::new(), Extents::new(), 0_i64);
        for step in steps {
            let (axis, at) = match *step {
                Step::At { axis, at } => (axis, at),
                Step::Slice { axis, start, step, length } => {
                    shape.push(length);
                    strides.push(self.stride(axis).wrapping_mul(step)); // as NumPy, for one element
                    (axis, start)
                }
                Step::New => {
                    shape.push(1);
                    strides.push(0);
                    continue;
                }
            };
            moved = moved.saturating_add(self.stride(axis).saturating_mul(at));
        }
        let item = i64::try_from(self.itemsize()).unwrap_or(i64::MAX);
        let selected = Self::new(shape, strides, self.itemsize())?;
        let moved = if selected.size() == 0 { 0 } else { moved.saturating_mul(item) };
        let distance = isize::try_from(moved);
        let distance = distance.map_err(|_| self.too_large("a distance"))?;
        Ok((selected, distance))
    }

    /// Keeps `length` elements of `axis`, starting at `start`. Also returns the distance in bytes
    /// from the old first element to the new one.
    ///
    /// # Errors
    /// [`Error::Argument`] if the range leaves the axis.
    pub fn narrow(&self, axis: usize, start: i64, length: i64) -> Result<(Self, isize)> {
        let inside = |&extent: &i64| {
            start >= 0 && length >= 0 && start.checked_add(length).is_some_and(|end| end <= extent)
        };
        if !self.shape().get(axis).is_some_and(inside) {
            return Err(Error::Argument(format!(
                "axis {axis}: expected a range inside shape {:?}, got {length} elements from \
                 {start} on",
                self.shape()
            )));
        }
        let steps = self.shape().iter().enumerate().map(|(at, &extent)| {
            let (start, length) = if at == axis { (start, length) } else { (0, extent) };
            Step::Slice { axis: at, start, step: 1, length }
        });
        self.select(&steps.collect::<SmallVec<[Step; 6]>>())
    }

    /// Reorders the dimensions: dimension `d` of the result is `axes[d]` of this layout.
    ///
    /// # Errors
    /// [`Error::Argument`] unless `axes` is a permutation of `0..ndim`.
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        if axes.len() != self.ndim() {
            return Err(self.no_permutation(axes.iter().copied()));
        }
        self.align(&axes.iter().copied().map(Some).collect::<SmallVec<[_; 6]>>())
    }

    fn no_permutation(&self, got: impl Iterator<Item = usize>) -> Error {
        let (all, got): (Vec<_>, Vec<_>) = ((0..self.ndim()).collect(), got.collect());
        Error::Argument(format!("axes: expected a permutation of {all:?}, got {got:?}"))
    }

    /// Broadcasts to `shape` as a NumPy assignment does: adds dimensions in front, repeats
    /// elements along dimensions of extent 1, and drops surplus leading dimensions of extent 1.
    ///
    /// # Errors
    /// [`Error::Argument`] if another extent differs from that of `shape`.
    pub fn broadcast_to(&self, shape: &[i64]) -> Result<Self> {
        let refuse = || {
            Error::Argument(format!(
                "shape: expected one that broadcasts to {shape:?}, got {:?}",
                self.shape()
            ))
        };
        let (added, excess) =
            (shape.len().saturating_sub(self.ndim()), self.ndim().saturating_sub(shape.len()));
        if self.shape().iter().take(excess).any(|&extent| extent != 1) {
            return Err(refuse());
        }
        let mut strides = Extents::from_elem(0, added);
        for ((extent, stride), &wanted) in self.axes().skip(excess).zip(shape.iter().skip(added)) {
            match extent {
                _ if extent == wanted => strides.push(stride),
                1 => strides.push(0),
                _ => return Err(refuse()),
            }
        }
        Self::new(shape.into(), strides, self.itemsize())
    }

    /// Reorders the dimensions as `axes` says; each `None` adds a dimension of extent 1.
    ///
    /// # Errors
    /// [`Error::Argument`] unless `axes` names every dimension of this layout exactly once. One of
    /// extent 1 may be left out, and is dropped.
    pub fn align(&self, axes: &[Option<usize>]) -> Result<Self> {
        let times = |axis: usize| axes.iter().filter(|one| **one == Some(axis)).count();
        let once = |(axis, &extent): (usize, &i64)| match times(axis) {
            0 => extent == 1,
            count => count == 1,
        };
        let known = axes.iter().flatten().all(|&axis| axis < self.ndim());
        if !known || !self.shape().iter().enumerate().all(once) {
            return Err(self.no_permutation(axes.iter().copied().flatten()));
        }
        let pick = |from: &[i64], new| {
            axes.iter()
                .map(|axis| axis.and_then(|axis| from.get(axis).copied()).unwrap_or(new))
                .collect()
        };
        Self::new(pick(self.shape(), 1), pick(self.strides(), 0), self.itemsize())
    }

    fn stride(&self, axis: usize) -> i64 {
        self.strides().get(axis).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Item = Item::Slice { start: None, stop: None, step: None };

    fn every(step: i64) -> Item {
        Item::Slice { start: None, stop: None, step: Some(step) }
    }

    fn selected(key: &[Item], shape: &[i64]) -> (Vec<i64>, Vec<i64>, isize) {
        let layout = Layout::compact(shape.into(), 8).unwrap();
        let (layout, moved) = layout.select(&steps(key, shape).unwrap()).unwrap();
        (layout.shape().to_vec(), layout.strides().to_vec(), moved)
    }

    #[test]
    fn an_index_drops_its_dimension_and_moves_the_start() {
        assert_eq!(selected(&[Item::At(-1), Item::At(1)], &[2, 3, 4]), (vec![4], vec![1], 16 * 8));
    }

    #[test]
    fn an_ellipsis_stands_for_all_remaining_dimensions_even_for_none() {
        assert_eq!(selected(&[Item::Ellipsis, Item::At(3)], &[2, 3, 4]).0, [2, 3]);
        assert_eq!(selected(&[ALL, Item::Ellipsis, ALL, ALL], &[2, 3, 4]).0, [2, 3, 4]);
    }

    #[test]
    fn a_negative_step_starts_at_the_end() {
        assert_eq!(selected(&[every(-2)], &[7]), (vec![4], vec![-2], 48));
    }

    #[test]
    fn a_new_axis_has_extent_1() {
        assert_eq!(selected(&[Item::NewAxis, Item::Ellipsis, Item::NewAxis], &[3]).0, [1, 3, 1]);
    }

    #[test]
    fn align_needs_every_dimension_exactly_once_and_drops_extents_of_1() {
        let layout = Layout::compact([2, 3].as_slice().into(), 8).unwrap();
        let aligned = layout.align(&[Some(1), None, Some(0)]).unwrap();
        assert_eq!(
            (aligned.shape(), aligned.strides()),
            ([3, 1, 2].as_slice(), [1, 0, 3].as_slice())
        );
        for axes in [&[Some(0), Some(0)][..], &[Some(0)], &[Some(0), Some(2)]] {
            assert!(layout.align(axes).is_err(), "{axes:?}");
        }
        let layout = Layout::compact([2, 1].as_slice().into(), 8).unwrap();
        assert_eq!(layout.align(&[Some(0)]).unwrap().shape(), [2]);
        assert!(layout.permute(&[0]).is_err() && layout.align(&[Some(1)]).is_err());
    }

    #[test]
    fn broadcasting_repeats_elements_and_refuses_other_extents() {
        let layout = Layout::compact([1, 1, 3].as_slice().into(), 8).unwrap();
        assert_eq!(layout.broadcast_to(&[4, 3]).unwrap().strides(), [0, 1]);
        assert!(layout.broadcast_to(&[4, 2]).is_err() && layout.broadcast_to(&[]).is_err());
    }

    #[test]
    fn extreme_slices_are_clipped_and_do_not_overflow() {
        let far = |start, stop, step| Item::Slice { start, stop, step };
        for (item, length) in [
            (far(Some(i64::MIN), Some(i64::MAX), Some(1)), 5),
            (far(Some(i64::MAX), Some(i64::MIN), Some(-1)), 5),
            (far(None, None, Some(i64::MIN)), 1),
            (far(None, None, Some(i64::MAX)), 1),
            (far(Some(3), Some(1), None), 0),
        ] {
            assert_eq!(selected(&[item], &[5]).0, [length], "{item:?}");
        }
    }

    #[test]
    fn keys_outside_the_shape_are_refused() {
        let refused = |key: &[Item]| steps(key, &[3]).unwrap_err();
        assert!(matches!(refused(&[Item::At(3)]), Error::Index(_)));
        assert!(matches!(refused(&[Item::At(-4)]), Error::Index(_)));
        assert!(matches!(refused(&[ALL, ALL]), Error::Index(_)));
        assert!(matches!(refused(&[Item::Ellipsis, Item::Ellipsis]), Error::Index(_)));
        assert!(matches!(refused(&[every(0)]), Error::Argument(_)));
    }
}

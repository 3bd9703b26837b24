//! Basic indexing, as NumPy has it: which elements a key of integers, slices, new axes and an
//! ellipsis selects. Pure; nothing is touched.

use smallvec::SmallVec;

use super::{Extents, Layout, MAX_NDIM};
use crate::error::{Error, Result};

/// One entry of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// One index, negative from the end; the dimension goes.
    At(i64),
    /// `start:stop:step` as in Python; a step of 0 is refused.
    Slice {
        /// First index; `None`: the end that the step comes from.
        start: Option<i64>,
        /// First index that is left out; `None`: the other end.
        stop: Option<i64>,
        /// `None`: 1.
        step: Option<i64>,
    },
    /// A new dimension of extent 1.
    NewAxis,
    /// As many whole dimensions as are left.
    Ellipsis,
}

/// What becomes of a dimension, in the order of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// `axis` goes; the element at `at` stays.
    At { axis: usize, at: i64 },
    /// `length` elements of `axis` from `start` on, each `step` after the one before.
    Slice { axis: usize, start: i64, step: i64, length: i64 },
    /// A new dimension of extent 1.
    New,
}

/// What a key selects of `shape`.
///
/// # Errors
/// [`Error::Index`] for too many entries, two ellipses, or an index outside its dimension;
/// [`Error::Argument`] for a step of 0.
pub(crate) fn steps(key: &[Item], shape: &[i64]) -> Result<SmallVec<[Step; 6]>> {
    let taking = key.iter().filter(|item| matches!(item, Item::At(_) | Item::Slice { .. })).count();
    let open = shape.len().checked_sub(taking).ok_or_else(|| too_many(taking, shape))?;
    if key.iter().filter(|item| **item == Item::Ellipsis).count() > 1 {
        return Err(Error::Index("key: expected at most one ellipsis ('...'), got several".into()));
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
    found.extend(axes.map(whole)); // without an ellipsis the rest is whole
    let ndim = found.iter().filter(|step| !matches!(step, Step::At { .. })).count();
    if ndim > MAX_NDIM {
        return Err(Error::Index(format!(
            "key: expected a result of at most {MAX_NDIM} dimensions, got {ndim}"
        )));
    }
    Ok(found)
}

fn too_many(taking: usize, shape: &[i64]) -> Error {
    Error::Index(format!(
        "key: expected at most {} indices for shape {shape:?}, got {taking}",
        shape.len()
    ))
}

fn index((axis, extent): (usize, i64), at: i64) -> Result<Step> {
    let counted = if at < 0 { at.saturating_add(extent) } else { at };
    if (0..extent).contains(&counted) {
        return Ok(Step::At { axis, at: counted });
    }
    Err(Error::Index(format!(
        "index {at} is out of bounds for axis {axis} with extent {extent}: expected at least -{extent} and less than {extent}"
    )))
}

/// Python's rule for slices (`PySlice_AdjustIndices`): what lies outside is cut off.
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
    /// The elements that `steps` select, and the distance of the first of them from the old one, in
    /// bytes. `steps` are for this layout's shape.
    pub(crate) fn select(&self, steps: &[Step]) -> Result<(Self, isize)> {
        let (mut shape, mut strides, mut moved) = (Extents::new(), Extents::new(), 0_i64);
        for step in steps {
            let (axis, at) = match *step {
                Step::At { axis, at } => (axis, at),
                Step::Slice { axis, start, step, length } => {
                    shape.push(length);
                    strides.push(self.stride(axis).saturating_mul(step));
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
        let item = i64::try_from(self.0.itemsize).unwrap_or(i64::MAX);
        let selected = Self::new(shape, strides, self.0.itemsize)?;
        let moved = if selected.size() == 0 { 0 } else { moved.saturating_mul(item) };
        let distance = isize::try_from(moved);
        let distance = distance.map_err(|_| self.too_large("a distance"))?; // no element is so far
        Ok((selected, distance))
    }

    /// The same elements for every index of `shape`, as NumPy assigns: dimensions are added in
    /// front, those of extent 1 repeat their element, and those of extent 1 in front may be too many.
    ///
    /// # Errors
    /// [`Error::Argument`] where another extent is not that of `shape`.
    pub fn broadcast_to(&self, shape: &[i64]) -> Result<Self> {
        let refuse = || {
            Error::Argument(format!(
                "shape: expected one that broadcasts to {shape:?}, got {:?}",
                self.shape()
            ))
        };
        let (added, excess) =
            (shape.len().saturating_sub(self.ndim()), self.ndim().saturating_sub(shape.len()));
        if self.0.shape.iter().take(excess).any(|&extent| extent != 1) {
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
        Self::new(shape.into(), strides, self.0.itemsize)
    }

    /// The dimensions that `axes` name, and new ones of extent 1 where they name none.
    ///
    /// # Errors
    /// [`Error::Argument`] where they do not name every dimension of this layout once.
    pub fn align(&self, axes: &[Option<usize>]) -> Result<Self> {
        let named: SmallVec<[usize; 6]> = axes.iter().copied().flatten().collect();
        self.permute(&named)?; // or it is no permutation
        let of = |from: &Extents, new| {
            axes.iter()
                .map(|axis| axis.and_then(|axis| from.get(axis).copied()).unwrap_or(new))
                .collect()
        };
        Self::new(of(&self.0.shape, 1), of(&self.0.strides, 0), self.0.itemsize)
    }

    fn stride(&self, axis: usize) -> i64 {
        self.0.strides.get(axis).copied().unwrap_or(0)
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
    fn an_ellipsis_stands_for_what_is_left_also_for_nothing() {
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
    fn aligning_names_every_dimension_once() {
        let layout = Layout::compact([2, 3].as_slice().into(), 8).unwrap();
        let aligned = layout.align(&[Some(1), None, Some(0)]).unwrap();
        assert_eq!(
            (aligned.shape(), aligned.strides()),
            ([3, 1, 2].as_slice(), [1, 0, 3].as_slice())
        );
        for axes in [&[Some(0), Some(0)][..], &[Some(0)], &[Some(0), Some(2)]] {
            assert!(layout.align(axes).is_err(), "{axes:?}");
        }
    }

    #[test]
    fn broadcasting_repeats_elements_and_refuses_other_extents() {
        let layout = Layout::compact([1, 1, 3].as_slice().into(), 8).unwrap();
        assert_eq!(layout.broadcast_to(&[4, 3]).unwrap().strides(), [0, 1]);
        assert!(layout.broadcast_to(&[4, 2]).is_err() && layout.broadcast_to(&[]).is_err());
    }

    #[test]
    fn extreme_slices_are_cut_and_do_not_overflow() {
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
    fn what_lies_outside_is_refused() {
        let refused = |key: &[Item]| steps(key, &[3]).unwrap_err();
        assert!(matches!(refused(&[Item::At(3)]), Error::Index(_)));
        assert!(matches!(refused(&[Item::At(-4)]), Error::Index(_)));
        assert!(matches!(refused(&[ALL, ALL]), Error::Index(_)));
        assert!(matches!(refused(&[Item::Ellipsis, Item::Ellipsis]), Error::Index(_)));
        assert!(matches!(refused(&[every(0)]), Error::Argument(_)));
    }
}

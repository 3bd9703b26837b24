//! [`HaloBoxes`]: what is sent and received in each direction, what needs no halo.

use std::iter::{repeat, zip};
use std::ops::Range;

use smallvec::SmallVec;

use super::ends::{Divided, Ends, check_distinct};
use crate::error::{Error, Result};
use crate::field::{Field, HaloWidth};

/// Indices of a part of a field: a half-open range for each axis, in the field's own order.
pub type IndexBox = SmallVec<[Range<i64>; 4]>;

/// The boxes of a field for each direction in which it has a neighbour.
///
/// A direction has one number for each divided dimension: -1 towards the neighbour below, 1 towards
/// the one above, 0 for the domain along that dimension. Missing numbers are 0. Along dimensions that
/// are not divided, boxes have all points.
///
/// The box that is sent in a direction has the extents of the box that the neighbour there receives
/// from the opposite direction.
///
/// # Example
///
/// Periodic copies within one field. Between processes, a message goes from each box to be sent to
/// the box of the neighbour.
///
/// ```
/// use dlfield::{CopyBatch, Divided, HaloBoxes, Item, Storage};
///
/// let field = Storage::builder([6, 4]).dims(["I", "K"]).halo([(1, 1), (0, 0)]).full(1.0_f64)?;
/// let boxes = HaloBoxes::new(field.shape(), &field.field(), &[Divided::whole_halo("I")])?;
///
/// let (mut sources, mut targets) = (Vec::new(), Vec::new());
/// for direction in HaloBoxes::directions(1) {
///     let opposite: Vec<i8> = direction.iter().map(|step| -step).collect();
///     let (Some(send), Some(receive)) = (boxes.send(&direction)?, boxes.receive(&opposite)) else {
///         continue; // the width is 0 there
///     };
///     sources.push(field.select(&send.into_iter().map(Item::from).collect::<Vec<_>>())?);
///     targets.push(field.select(&receive.into_iter().map(Item::from).collect::<Vec<_>>())?);
/// }
/// CopyBatch::new(&sources, &targets)?.run()?;
/// assert_eq!(boxes.receive(&[-1]).unwrap().as_slice(), [0..1, 0..4]);
/// # Ok::<(), dlfield::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HaloBoxes {
    /// The points between the halos, along each axis.
    domain: IndexBox,
    /// All points, along each axis.
    whole: IndexBox,
    /// For each divided dimension.
    ends: SmallVec<[Ends; 4]>,
}

impl HaloBoxes {
    /// Finds the ends of the domain of a field along each divided dimension that it has.
    ///
    /// # Errors
    /// [`Error::Argument`] for a field without names or with an unknown halo, for labels that do not
    /// fit `shape`, for a dimension that is divided twice, and for a width beyond the halo.
    pub fn new(shape: &[i64], field: &Field, divided: &[Divided]) -> Result<Self> {
        field.check(shape)?;
        let dims = field.dims.as_deref().ok_or_else(|| {
            Error::Argument(
                "dims: expected a field with names, got one without; name its dimensions".into(),
            )
        })?;
        let halo = field.halo.as_deref().ok_or_else(|| {
            Error::Argument(
                "halo: expected a known halo, got a view whose halo is unknown; set its halo"
                    .into(),
            )
        })?;
        check_distinct(divided)?;
        let ends = divided.iter().map(|one| Ends::new(one, dims, halo));
        let domain = |(&extent, &(low, high)): (&i64, &HaloWidth)| low..extent.saturating_sub(high);
        Ok(Self {
            domain: zip(shape, halo).map(domain).collect(),
            whole: shape.iter().map(|&extent| 0..extent).collect(),
            ends: ends.collect::<Result<_>>()?,
        })
    }

    /// Every direction of a grid with `divided` dimensions but that of all zeros. The opposite of
    /// the first is the last, and so on.
    #[must_use]
    pub fn directions(divided: usize) -> Vec<Vec<i8>> {
        let longer =
            |shorter: &Vec<i8>| [-1, 0, 1].map(|step| [shorter.as_slice(), &[step]].concat());
        let mut all = vec![vec![]];
        for _ in 0..divided {
            all = all.iter().flat_map(longer).collect();
        }
        all.retain(|direction| direction.iter().any(|&step| step != 0));
        all
    }

    /// The points that the neighbour in a direction needs; `None` if there are none.
    ///
    /// # Errors
    /// [`Error::Argument`] if the domain has fewer points than the neighbour needs.
    pub fn send(&self, direction: &[i8]) -> Result<Option<IndexBox>> {
        for (ends, step) in self.steps(direction) {
            if let Some(domain) = ends.axis.and_then(|axis| self.domain.get(axis)) {
                ends.check(domain, step)?;
            }
        }
        Ok(self.boxed(direction, Ends::send))
    }

    /// The points of the halo that the neighbour in a direction fills; `None` if there are none.
    #[must_use]
    pub fn receive(&self, direction: &[i8]) -> Option<IndexBox> {
        self.boxed(direction, Ends::receive)
    }

    /// The points of the domain that a stencil can compute without a halo, if it reaches as far
    /// below and above along each divided dimension as `reach` says.
    #[must_use]
    pub fn interior(&self, reach: &[(i64, i64)]) -> IndexBox {
        let mut interior = self.domain.clone();
        for (axis, (low, high)) in self.reached(reach) {
            if let Some(range) = interior.get_mut(axis) {
                let start = range.start.saturating_add(low.max(0)).min(range.end);
                *range = start..range.end.saturating_sub(high.max(0)).max(start);
            }
        }
        interior
    }

    /// The points of the domain that are not in [`HaloBoxes::interior`], in boxes without overlap.
    /// Empty ones are left out.
    #[must_use]
    pub fn edges(&self, reach: &[(i64, i64)]) -> Vec<IndexBox> {
        let (interior, mut rest, mut edges) = (self.interior(reach), self.domain.clone(), vec![]);
        for (axis, _) in self.reached(reach) {
            let (Some(inner), Some(outer)) = (interior.get(axis), self.domain.get(axis)) else {
                continue;
            };
            for range in [outer.start..inner.start, inner.end..outer.end] {
                edges.push(with_range(&rest, axis, range));
            }
            rest = with_range(&rest, axis, inner.clone());
        }
        edges.retain(has_points);
        edges
    }

    /// Points below and above the domain that neighbours fill, for each divided dimension; `None`
    /// if the field lacks it.
    pub fn widths(&self) -> impl Iterator<Item = Option<(i64, i64)>> {
        self.ends.iter().map(|ends| ends.axis.map(|_| ends.width))
    }

    fn steps(&self, direction: &[i8]) -> impl Iterator<Item = (&Ends, i8)> {
        zip(&self.ends, direction.iter().copied().chain(repeat(0)))
    }

    fn reached(&self, reach: &[HaloWidth]) -> impl Iterator<Item = (usize, HaloWidth)> {
        zip(&self.ends, reach).filter_map(|(ends, &reach)| Some((ends.axis?, reach)))
    }

    fn boxed(
        &self,
        direction: &[i8],
        part: fn(&Ends, &Range<i64>, i8) -> Range<i64>,
    ) -> Option<IndexBox> {
        let mut result = self.whole.clone();
        for (ends, step) in self.steps(direction) {
            match ends.axis {
                Some(axis) => *result.get_mut(axis)? = part(ends, self.domain.get(axis)?, step),
                None if step != 0 => return None,
                None => {}
            }
        }
        has_points(&result).then_some(result)
    }
}

fn with_range(all: &IndexBox, axis: usize, range: Range<i64>) -> IndexBox {
    let ranges = all.iter().enumerate();
    ranges.map(|(at, old)| if at == axis { range.clone() } else { old.clone() }).collect()
}

fn has_points(all: &IndexBox) -> bool {
    all.iter().all(|range| !range.is_empty())
}

//! Deciding a copy: the fewest loops over the longest runs of bytes.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::layout::Layout;

/// One loop: how often, and how many bytes source and destination move each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Loop {
    pub(super) count: usize,
    pub(super) source: isize,
    pub(super) target: isize,
}

/// Nested loops, outermost first, around a move of `run` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CopyPlan {
    pub(super) loops: SmallVec<[Loop; 6]>,
    pub(super) run: usize,
}

/// Plans the copy of every element of `source` to the same index of `target`.
///
/// # Errors
/// [`Error::Argument`] where shapes or item sizes differ.
pub(super) fn plan(source: &Layout, target: &Layout) -> Result<CopyPlan> {
    if source.shape() != target.shape() || source.itemsize() != target.itemsize() {
        return Err(Error::Argument(format!(
            "copy: expected the same shape and item size, got {:?} of {} bytes into {:?} of {} bytes",
            source.shape(),
            source.itemsize(),
            target.shape(),
            target.itemsize()
        )));
    }
    let mut loops = merge(sorted_loops(source, target));
    let mut run = source.itemsize();
    let item = isize::try_from(run).ok();
    if let Some(inner) = loops
        .last()
        .copied()
        .filter(|inner| Some(inner.source) == item && inner.source == inner.target)
    {
        run = run.saturating_mul(inner.count); // at most nbytes, which Layout checked
        loops.pop();
    }
    Ok(CopyPlan { loops, run })
}

/// Without dimensions of extent 1; the target's smallest stride comes last, to be written in order.
fn sorted_loops(source: &Layout, target: &Layout) -> SmallVec<[Loop; 6]> {
    let (from, to) = (source.byte_strides(), target.byte_strides());
    let all = source.shape().iter().zip(from.iter().zip(to.iter()));
    let mut loops: SmallVec<[Loop; 6]> = all
        .filter(|(extent, _)| **extent != 1)
        .filter_map(|(&extent, (&source, &target))| {
            Some(Loop {
                count: usize::try_from(extent).ok()?,
                source: isize::try_from(source).ok()?,
                target: isize::try_from(target).ok()?,
            })
        })
        .collect();
    loops.sort_by_key(|one| {
        std::cmp::Reverse((one.target.unsigned_abs(), one.source.unsigned_abs()))
    });
    loops
}

/// Joins neighbours that step through memory like one longer dimension, on both sides.
fn merge(loops: SmallVec<[Loop; 6]>) -> SmallVec<[Loop; 6]> {
    let mut merged: SmallVec<[Loop; 6]> = SmallVec::new();
    for inner in loops {
        let spans = |step: isize| {
            isize::try_from(inner.count).ok().and_then(|count| step.checked_mul(count))
        };
        match merged.last_mut() {
            Some(outer)
                if Some(outer.source) == spans(inner.source)
                    && Some(outer.target) == spans(inner.target) =>
            {
                *outer = Loop { count: outer.count.saturating_mul(inner.count), ..inner };
            }
            _ => merged.push(inner),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    fn compact(shape: &[i64]) -> Layout {
        Layout::compact(shape.into(), 8).unwrap()
    }

    #[test]
    fn equal_compact_layouts_are_one_run() {
        let plan = plan(&compact(&[4, 1, 6]), &compact(&[4, 1, 6])).unwrap();
        assert_eq!(plan, CopyPlan { loops: smallvec![], run: 4 * 6 * 8 });
    }

    #[test]
    fn padded_rows_are_a_run_each() {
        let padded = Layout::new(smallvec![3, 4, 5], smallvec![32, 8, 1], 8).unwrap();
        let plan = plan(&padded, &compact(&[3, 4, 5])).unwrap();
        assert_eq!(plan.run, 40);
        assert_eq!(plan.loops.as_slice(), [Loop { count: 12, source: 64, target: 40 }]);
    }

    #[test]
    fn a_transposition_writes_in_the_order_of_the_target() {
        let plan = plan(&compact(&[3, 4]).permute(&[1, 0]).unwrap(), &compact(&[4, 3])).unwrap();
        assert_eq!(plan.run, 8);
        assert_eq!(plan.loops.last(), Some(&Loop { count: 3, source: 32, target: 8 }));
    }

    #[test]
    fn other_shapes_are_refused() {
        assert!(plan(&compact(&[3]), &compact(&[4])).is_err());
    }
}

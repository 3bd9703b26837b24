//! Plans a copy: the fewest loops over the longest runs of bytes.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::layout::Layout;

/// One loop: its count, and the distances in bytes that source and target move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Loop {
    pub(super) count: usize,
    pub(super) source: isize,
    pub(super) target: isize,
}

/// Nested loops, outermost first.
pub(super) type Loops = SmallVec<[Loop; 6]>;

/// Nested loops around a move of `run` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CopyPlan {
    pub(super) loops: Loops,
    pub(super) run: usize,
}

/// Plans the copy of every element of `source` to the same index of `target`.
///
/// # Errors
/// [`Error::Argument`] if shapes or item sizes differ.
pub(super) fn plan(source: &Layout, target: &Layout) -> Result<CopyPlan> {
    if source.shape() != target.shape() || source.itemsize() != target.itemsize() {
        return Err(Error::Argument(format!(
            "copy: expected the same shape and item size, got {:?} of {} bytes into {:?} of {} \
             bytes",
            source.shape(),
            source.itemsize(),
            target.shape(),
            target.itemsize()
        )));
    }
    let mut loops = merge(sorted_loops(source, target));
    let mut run = source.itemsize();
    let item = isize::try_from(run).ok();
    let joins = |inner: &Loop| Some(inner.source) == item && inner.source == inner.target;
    if let Some(inner) = loops.last().copied().filter(joins) {
        run = run.saturating_mul(inner.count); // at most nbytes, which Layout checked
        loops.pop();
    }
    Ok(CopyPlan { loops, run })
}

/// Loops of all dimensions but those of extent 1. The target's smallest stride comes last, so that
/// it is written in order.
fn sorted_loops(source: &Layout, target: &Layout) -> Loops {
    let (from, to) = (source.byte_strides(), target.byte_strides());
    let all = source.shape().iter().zip(from.iter().zip(to.iter()));
    let mut loops: Loops = all
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

/// Joins neighbouring loops that step through both sides like one longer dimension.
fn merge(loops: Loops) -> Loops {
    let mut merged = Loops::new();
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
    fn each_padded_row_is_a_run() {
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
    fn different_shapes_are_refused() {
        assert!(plan(&compact(&[3]), &compact(&[4])).is_err());
    }
}

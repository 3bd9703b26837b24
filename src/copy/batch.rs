//! Many copies on the host at once: planned once, carried out many times.

use std::ops::Range;

use super::host::{Prepared, prepare};
use crate::error::Result;
use crate::managed::Managed;
use crate::threads::share;

/// Copies between fields on the host, divided into tasks. The fields outlive it.
pub(crate) struct HostBatch {
    copies: Vec<Prepared>,
    bytes: usize,
}

impl HostBatch {
    /// Plans the copies of every element of each source to the same index of its target.
    ///
    /// # Errors
    /// [`crate::Error::Argument`] if shapes or item sizes differ.
    pub(crate) fn new<'a>(
        pairs: impl IntoIterator<Item = (&'a Managed, &'a Managed)>,
    ) -> Result<Self> {
        let plans = pairs.into_iter().filter_map(|(from, to)| prepare(from, to).transpose());
        Ok(Self::of(plans.collect::<Result<_>>()?))
    }

    fn of(copies: Vec<Prepared>) -> Self {
        Self { bytes: copies.iter().map(Prepared::bytes).sum(), copies }
    }

    /// Makes the copies. Threads share them by bytes, if there are as many as for one large copy.
    ///
    /// # Safety
    /// Sources and targets are alive, memory of the host, and of one type in pairs. No target
    /// shares a byte with a source or another target. During the copy, nothing else reads or writes
    /// the elements of targets, or writes those of sources.
    pub(crate) unsafe fn run(&self) {
        share(self.bytes, self.bytes, |bytes| {
            let mut start = 0;
            for copy in &self.copies {
                let tasks = tasks_in(&bytes, start, copy);
                if !tasks.is_empty() {
                    // SAFETY: the tasks reach exactly the elements of one pair (prepare), which
                    // the caller guarantees; parts of `share` are disjoint, and so are their tasks.
                    unsafe { copy.carry_out(tasks) };
                }
                start += copy.bytes();
            }
        });
    }
}

/// Tasks of a copy that begins at byte `start` of a batch, in proportion to its share of `bytes`.
fn tasks_in(bytes: &Range<usize>, start: usize, copy: &Prepared) -> Range<usize> {
    let task_at = |byte: usize| {
        let inside = byte.saturating_sub(start).min(copy.bytes()) as u128;
        let task = copy.count() as u128 * inside / copy.bytes() as u128; // at most the count
        usize::try_from(task).unwrap_or(usize::MAX)
    };
    task_at(bytes.start)..task_at(bytes.end)
}

/// Finds two fields that share a byte, at least one of which has `true` beside it: their numbers.
pub(crate) fn first_overlap(fields: &[(&Managed, bool)]) -> Option<(usize, usize)> {
    let place = |(number, (memory, is_target)): (usize, &(&Managed, bool))| {
        let span = memory.layout().span();
        let first = memory.position().wrapping_add_signed(span.low);
        (first..first.wrapping_add(span.len()), number, *is_target)
    };
    let mut places: Vec<_> = fields.iter().enumerate().map(place).collect();
    places.sort_by_key(|(bytes, number, _)| (bytes.start, *number));
    for (at, (bytes, number, is_target)) in places.iter().enumerate() {
        let near = places.iter().skip(at + 1).take_while(|(next, ..)| next.start < bytes.end);
        for (_, other, other_is_target) in near {
            let meets = |&(memory, _): &(&Managed, bool)| {
                fields.get(*number).is_some_and(|(one, _)| one.may_overlap(memory))
            };
            if (*is_target || *other_is_target) && fields.get(*other).is_some_and(meets) {
                return Some((*number.min(other), *number.max(other)));
            }
        }
    }
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::num::NonZero;

    use super::super::host::tests::{Case, ITEMS, Placed, Random, random_case};
    use super::*;
    use crate::alloc::{Fill, allocate, plan};
    use crate::dtype::DType;
    use crate::threads::set_num_threads;

    fn check(cases: impl IntoIterator<Item = Case>) {
        let placed: Vec<Placed> = cases.into_iter().map(Placed::new).collect();
        let batch = HostBatch::of(placed.iter().filter_map(Placed::prepared).collect());
        // SAFETY: each case has memory of its own, which only this test accesses.
        unsafe { batch.run() };
        placed.iter().for_each(Placed::check);
    }

    #[test]
    fn many_copies_arrive_and_nothing_else_is_read_or_written() {
        let mut random = Random(20_261_123);
        for _ in 0..20 {
            let count = random.below(12);
            check((0..count).map(|_| {
                let item = random.pick(&ITEMS);
                random_case(&mut random, item)
            }));
        }
    }

    #[test]
    fn three_threads_share_copies_of_unequal_size() {
        set_num_threads(NonZero::new(3).unwrap());
        let rows = Case::new(8, &[500, 1000], &[1001, 1], &[1003, 1]);
        let planes = Case::new(4, &[600, 700], &[700, 1], &[1, 600]);
        let narrow = Case::new(8, &[70_000, 3], &[7, 1], &[3, 1]);
        let small = Case::new(1, &[1], &[1], &[1]);
        check([small.clone(), rows, small.clone(), planes, narrow, small]);
    }

    #[test]
    fn every_task_is_in_one_part_for_any_number_of_parts() {
        let cases = [Case::new(8, &[300, 3], &[7, 1], &[3, 1]), Case::new(1, &[5], &[1], &[1])];
        let placed = cases.map(Placed::new);
        let copies: Vec<Prepared> = placed.iter().filter_map(Placed::prepared).collect();
        let bytes: usize = copies.iter().map(Prepared::bytes).sum();
        for parts in [1, 2, 3, 7, 100, bytes, bytes + 1] {
            let mut start = 0;
            for copy in &copies {
                let part = |n| bytes * n / parts..bytes * (n + 1) / parts;
                let tasks = (0..parts).flat_map(|n| tasks_in(&part(n), start, copy));
                assert!(tasks.eq(0..copy.count()), "{parts} parts");
                start += copy.bytes();
            }
        }
    }

    #[test]
    fn an_overlap_is_found_exactly_if_a_pair_overlaps_of_which_one_is_a_target() {
        let mut random = Random(77);
        let plan = plan(&[9, 10], DType::Float64, &[0, 1], 1, &[]).unwrap();
        let blocks = [(); 2].map(|()| allocate(&plan, Fill::Zeros).unwrap());
        let mut found = 0;
        for _ in 0..300 {
            let part = |random: &mut Random| {
                let mut part = blocks[random.below(2)].clone();
                for (axis, extent) in [(0, 9), (1, 10)] {
                    let from = random.below(extent);
                    let length = random.below(6).min(extent - from);
                    let [from, length] = [from, length].map(|one| i64::try_from(one).unwrap());
                    part = part.narrow(axis, from, length).unwrap();
                }
                (part, random.below(2) == 0)
            };
            let parts: Vec<_> = (0..5).map(|_| part(&mut random)).collect();
            let fields: Vec<_> = parts.iter().map(|(part, target)| (part, *target)).collect();
            let meets = |a: usize, b: usize| {
                (parts[a].1 || parts[b].1) && parts[a].0.may_overlap(&parts[b].0)
            };
            let any = (0..5).any(|a| (a + 1..5).any(|b| meets(a, b)));
            let overlap = first_overlap(&fields);
            assert_eq!(overlap.is_some(), any);
            assert!(overlap.is_none_or(|(a, b)| a < b && meets(a, b)));
            found += usize::from(any);
        }
        assert!((50..250).contains(&found), "both answers are tried: {found}");
    }
}

//! Nested loops as one sequence of tasks, for several threads.
#![forbid(unsafe_code)]

use std::ops::Range;

use smallvec::SmallVec;

use super::super::plan::Loop;

/// The iterations of nested loops, numbered. The innermost loop counts fastest.
#[derive(Debug, Default)]
pub(super) struct Tasks(SmallVec<[Loop; 8]>);

/// One iteration: the index of each loop, and the offsets in bytes of both sides.
#[derive(Debug, Clone)]
pub(super) struct Task {
    index: SmallVec<[usize; 8]>,
    pub(super) source: isize,
    pub(super) target: isize,
}

impl Task {
    pub(super) fn first(&self) -> usize {
        self.index.first().copied().unwrap_or(0)
    }

    pub(super) fn last(&self) -> usize {
        self.index.last().copied().unwrap_or(0)
    }

    pub(super) fn last_but_one(&self) -> usize {
        self.index.iter().rev().nth(1).copied().unwrap_or(0)
    }
}

impl Tasks {
    pub(super) fn count(&self) -> usize {
        self.0.iter().map(|one| one.count).product()
    }

    /// Usual distance of the source from one task to the next.
    pub(super) fn source_step(&self) -> isize {
        self.0.iter().rev().find(|one| one.count > 1).map_or(0, |innermost| innermost.source)
    }

    /// Calls `each` for a range of tasks.
    pub(super) fn visit(&self, tasks: Range<usize>, mut each: impl FnMut(&Task)) {
        let mut task = self.at(tasks.start);
        for _ in tasks {
            each(&task);
            self.advance(&mut task);
        }
    }

    fn at(&self, number: usize) -> Task {
        let mut rest = number;
        let mut task = Task { index: SmallVec::new(), source: 0, target: 0 };
        for one in self.0.iter().rev() {
            let index = rest % one.count.max(1);
            rest /= one.count.max(1);
            task.index.insert(0, index);
            task.source += one.source * index.cast_signed();
            task.target += one.target * index.cast_signed();
        }
        task
    }

    fn advance(&self, task: &mut Task) {
        for (one, index) in self.0.iter().zip(&mut task.index).rev() {
            *index += 1;
            task.source += one.source;
            task.target += one.target;
            if *index < one.count {
                return;
            }
            task.source -= one.source * index.cast_signed();
            task.target -= one.target * index.cast_signed();
            *index = 0;
        }
    }
}

impl FromIterator<Loop> for Tasks {
    fn from_iter<T: IntoIterator<Item = Loop>>(loops: T) -> Self {
        Self(loops.into_iter().collect())
    }
}

/// Divides a loop into blocks of `by`; the last may be shorter.
pub(super) fn blocks(one: Loop, by: usize) -> Loop {
    let step = by.cast_signed();
    Loop { count: one.count.div_ceil(by), source: one.source * step, target: one.target * step }
}

/// Length of block `number`.
pub(super) fn block(one: Loop, by: usize, number: usize) -> usize {
    by.min(one.count.saturating_sub(number * by))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPS: [Loop; 2] =
        [Loop { count: 3, source: 100, target: -10 }, Loop { count: 4, source: 1, target: 1000 }];

    fn visited(tasks: &Tasks, range: Range<usize>) -> Vec<(isize, isize)> {
        let mut seen = Vec::new();
        tasks.visit(range, |task| seen.push((task.source, task.target)));
        seen
    }

    #[test]
    fn a_walk_in_two_parts_is_the_whole_walk() {
        let tasks: Tasks = LOOPS.into_iter().collect();
        let whole = visited(&tasks, 0..12);
        let expected = (0..12).map(|n| (n / 4 * 100 + n % 4, n % 4 * 1000 - n / 4 * 10));
        assert_eq!(whole, expected.collect::<Vec<_>>());
        for cut in 0..=12 {
            assert_eq!([visited(&tasks, 0..cut), visited(&tasks, cut..12)].concat(), whole);
        }
    }

    #[test]
    fn without_loops_there_is_one_task() {
        assert_eq!(Tasks::default().count(), 1);
        assert_eq!(visited(&Tasks::default(), 0..1), [(0, 0)]);
    }

    #[test]
    fn the_last_block_is_the_remainder() {
        let one = Loop { count: 10, source: 8, target: 16 };
        assert_eq!(blocks(one, 4), Loop { count: 3, source: 32, target: 64 });
        assert_eq!([0, 1, 2].map(|number| block(one, 4, number)), [4, 4, 2]);
    }
}

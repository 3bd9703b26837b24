//! Divides each way of a copy into tasks, and carries them out.

use std::ops::Range;

use super::kernels::{Kernels, Level, kernels};
use super::past_caches::{Lines, ROWS};
use super::transpose::{LINE, Plane};
use super::walk::{Task, Tasks, block, blocks};
use super::way::{Planes, Way};

use super::super::plan::Loop;
use super::registers;
use super::runs::copy_runs;

/// Bytes per task of a single long run.
pub(super) const PIECE: usize = 64 << 10;

/// Runs per task.
pub(super) const RUNS: usize = 64;

/// Number of streams of the source, for neighbouring runs of the target that lie apart there.
const STREAMS: usize = 4;

/// Length in bytes from which a run has enough whole lines to go past the caches.
const SHORTEST_STREAM: usize = 4 * LINE;

/// Bytes of each row of the target that are written at once. Neighbouring lines go to memory
/// together, and the source is read along as few streams as these have items.
pub(super) const BAND: usize = 2 * LINE;

/// Bytes of each row of the source that a task of a band reads and prefetches.
pub(super) const STRETCH: usize = 1 << 10;

/// Start of a copy, its total number of bytes, and the registers to use.
#[derive(Clone, Copy)]
pub(super) struct Copying {
    pub(super) source: *const u8,
    pub(super) target: *mut u8,
    pub(super) bytes: usize,
    pub(super) level: Level,
}

// SAFETY: two addresses. Access to them is unsafe, and the callers of those methods guarantee that
// it is exclusive to this copy, on any thread.
unsafe impl Send for Copying {}
// SAFETY: as for Send.
unsafe impl Sync for Copying {}

/// A copy in tasks, which any threads may carry out in any order.
pub(in crate::copy) struct Prepared {
    copying: Copying,
    tasks: Tasks,
    each: Each,
}

/// What one task does.
enum Each {
    /// Copies one block of the loop `one`, of at most `by` runs, with the number `which(task)`.
    Runs { one: Loop, by: usize, which: fn(&Task) -> usize, run: usize, lines: Lines },
    /// Copies a piece of a single run.
    Piece { run: usize, lines: Lines },
    /// Transposes a stretch of a band of the target's rows, past the caches.
    Band { planes: Planes, kernel: unsafe fn(Plane) },
    /// Transposes a group of the target's rows. On the way past the caches, rows go through a
    /// buffer that stays in the cache.
    Rows { planes: Planes, kernels: Kernels, lines: Lines },
}

impl Copying {
    /// The copy from an offset in bytes on.
    fn at(self, task: &Task) -> Self {
        let source = self.source.wrapping_offset(task.source);
        Self { source, target: self.target.wrapping_offset(task.target), ..self }
    }

    /// Divides a copy into tasks.
    pub(super) fn prepare(self, way: Way, past_caches: bool) -> Prepared {
        match way {
            Way::Runs { loops, run } => match loops.split_last() {
                None => self.one_run(run, past_caches),
                Some((inner, outer)) => self.runs(outer, *inner, run, past_caches),
            },
            Way::Planes(planes) => self.planes(planes, past_caches),
        }
    }

    fn one_run(self, run: usize, past_caches: bool) -> Prepared {
        let lines = Lines::new(self.level, past_caches);
        let pieces = blocks(Loop { count: run, source: 1, target: 1 }, PIECE);
        Prepared {
            copying: self,
            tasks: Tasks::from_iter([pieces]),
            each: Each::Piece { run, lines },
        }
    }

    fn runs(self, loops: &[Loop], inner: Loop, run: usize, past_caches: bool) -> Prepared {
        let lines = Lines::new(self.level, past_caches && run >= SHORTEST_STREAM);
        let near = loops.iter().copied().min_by_key(|one| one.target.unsigned_abs());
        let is_nearer = |near: &Loop| near.target.unsigned_abs() < inner.target.unsigned_abs();
        let (one, by, which): (_, _, fn(&Task) -> usize);
        let tasks: Tasks = match near.filter(|near| past_caches && is_nearer(near)) {
            Some(near) => {
                (one, by, which) = (near, STREAMS, Task::first);
                let others = loops.iter().copied().filter(|one| *one != near).chain([inner]);
                [blocks(near, STREAMS)].into_iter().chain(others).collect()
            }
            None => {
                (one, by, which) = (inner, RUNS, Task::last);
                loops.iter().copied().chain([blocks(inner, RUNS)]).collect()
            }
        };
        Prepared { copying: self, tasks, each: Each::Runs { one, by, which, run, lines } }
    }

    fn planes(self, planes: Planes, past_caches: bool) -> Prepared {
        let Planes { item, read, written, ref others } = planes;
        let Some(kernels) = kernels(self.level, item) else {
            let loops: Vec<Loop> = others.iter().copied().chain([read]).collect();
            return self.runs(&loops, written, item, past_caches);
        };
        let lined = |step: isize| step.unsigned_abs().is_multiple_of(LINE);
        let in_lines = self.target.addr().is_multiple_of(LINE)
            && lined(read.target)
            && others.iter().all(|one| lined(one.target));
        let others = others.iter().copied();
        if let Some(kernel) = kernels.transpose_past_caches.filter(|_| past_caches && in_lines) {
            let loops = [blocks(written, BAND / item)].into_iter().chain(others);
            let tasks = loops.chain([blocks(read, STRETCH / item)]).collect();
            return Prepared { copying: self, tasks, each: Each::Band { planes, kernel } };
        }
        let (tasks, lines) =
            (others.chain([blocks(read, ROWS)]).collect(), Lines::new(self.level, past_caches));
        Prepared { copying: self, tasks, each: Each::Rows { planes, kernels, lines } }
    }

    /// The plane of `written` by `read` items from here on.
    fn plane(self, planes: &Planes, (written, read): (usize, usize), ahead: isize) -> Plane {
        let (source_step, target_step) = (planes.written.source, planes.read.target);
        let Self { source, target, .. } = self;
        Plane { source, source_step, target, target_step, written, read, ahead }
    }
}

impl Prepared {
    /// Number of bytes to copy.
    pub(in crate::copy) fn bytes(&self) -> usize {
        self.copying.bytes
    }

    /// Number of tasks.
    pub(in crate::copy) fn count(&self) -> usize {
        self.tasks.count()
    }

    /// Carries out some tasks, and makes what they wrote visible to other threads.
    ///
    /// # Safety
    /// Every position that the copy reaches can be read and written, and nothing else accesses
    /// those of these tasks. No byte is both read and written.
    pub(in crate::copy) unsafe fn carry_out(&self, tasks: Range<usize>) {
        let at = |task: &Task| self.copying.at(task);
        match &self.each {
            &Each::Piece { run, lines } => {
                self.tasks.visit(tasks, |task| {
                    let (at, bytes) = (at(task), PIECE.min(run - task.source.unsigned_abs()));
                    // SAFETY: a piece of the run, which the caller guarantees.
                    unsafe { lines.copy(at.source, at.target, bytes) };
                });
                lines.done();
            }
            &Each::Runs { one, by, which, run, lines } => {
                self.tasks.visit(tasks, |task| {
                    let (at, some) = (at(task), Loop { count: block(one, by, which(task)), ..one });
                    // SAFETY: the tasks cover the runs, which the caller guarantees.
                    unsafe { copy_runs(at.source, at.target, some, run, lines) };
                });
                lines.done();
            }
            // SAFETY: the caller guarantees these tasks.
            Each::Band { planes, kernel } => unsafe { self.bands(planes, *kernel, tasks) },
            Each::Rows { planes, kernels, lines } => {
                // SAFETY: the caller guarantees these tasks.
                unsafe { self.rows(planes, *kernels, *lines, tasks) }
            }
        }
    }

    /// Transposes bands of the target's rows.
    ///
    /// # Safety
    /// As [`Self::carry_out`], and as `kernel` requires.
    unsafe fn bands(&self, planes: &Planes, kernel: unsafe fn(Plane), tasks: Range<usize>) {
        let &Planes { item, read, written, .. } = planes;
        let (wide, long, ahead) = (BAND / item, STRETCH / item, self.tasks.source_step());
        self.tasks.visit(tasks, |task| {
            let items = (block(written, wide, task.first()), block(read, long, task.last()));
            let plane = self.copying.at(task).plane(planes, items, ahead);
            // SAFETY: a part of the planes, which the caller guarantees; bands are whole lines.
            unsafe { kernel(plane) };
        });
        registers::fence();
    }

    /// Transposes groups of the target's rows.
    ///
    /// # Safety
    /// As [`Self::carry_out`].
    unsafe fn rows(&self, planes: &Planes, kernels: Kernels, lines: Lines, tasks: Range<usize>) {
        let (ahead, mut buffer) = (self.tasks.source_step(), lines.buffer());
        self.tasks.visit(tasks, |task| {
            let items = (planes.written.count, block(planes.read, ROWS, task.last()));
            let plane = self.copying.at(task).plane(planes, items, ahead);
            // SAFETY: a part of the planes, which the caller guarantees.
            unsafe { lines.transpose(plane, planes.item, kernels, &mut buffer) };
        });
        lines.done();
    }
}

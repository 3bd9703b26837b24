//! Carries out each way of a copy, shared over threads.

use super::kernels::{Kernels, Level, kernels};
use super::past_caches::{Lines, ROWS};
use super::transpose::{LINE, Plane};
use super::walk::{Task, Tasks, block, blocks};
use super::way::{Planes, Way};

use super::super::plan::Loop;
use super::registers;
use crate::threads::share;

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

impl Copying {
    /// The copy from an offset in bytes on.
    fn at(self, source: isize, target: isize) -> Self {
        let source = self.source.wrapping_offset(source);
        Self { source, target: self.target.wrapping_offset(target), ..self }
    }

    /// Carries out a copy.
    ///
    /// # Safety
    /// Every position that `way` reaches can be read and written, and nothing else accesses it. No
    /// byte is both read and written.
    pub(super) unsafe fn go(self, way: Way, past_caches: bool) {
        match way {
            Way::Runs { loops, run } => match loops.split_last() {
                // SAFETY: `way` reaches one run; the caller guarantees its positions.
                None => unsafe { self.one_run(run, past_caches) },
                // SAFETY: `way` reaches these runs; the caller guarantees their positions.
                Some((inner, outer)) => unsafe { self.runs(outer, *inner, run, past_caches) },
            },
            // SAFETY: `way` reaches these planes; the caller guarantees their positions.
            Way::Planes(planes) => unsafe { self.planes(&planes, past_caches) },
        }
    }

    /// Copies one run.
    ///
    /// # Safety
    /// As [`Self::go`].
    unsafe fn one_run(self, run: usize, past_caches: bool) {
        let pieces = run.div_ceil(PIECE);
        let lines = Lines::new(self.level, past_caches);
        share(pieces, self.bytes, |range| {
            let from = range.start * PIECE;
            let bytes = run.min(range.end * PIECE) - from;
            let at = self.at(from.cast_signed(), from.cast_signed());
            // SAFETY: a part of the run that `share` gives to this thread only.
            unsafe { lines.copy(at.source, at.target, bytes) };
            lines.done();
        });
    }

    /// Copies runs in nested loops.
    ///
    /// # Safety
    /// As [`Self::go`].
    unsafe fn runs(self, loops: &[Loop], inner: Loop, run: usize, past_caches: bool) {
        let lines = Lines::new(self.level, past_caches && run >= SHORTEST_STREAM);
        let near = loops.iter().copied().min_by_key(|one| one.target.unsigned_abs());
        let is_nearer = |near: &Loop| near.target.unsigned_abs() < inner.target.unsigned_abs();
        // Each task does one block of the loop `one`, with the number `which(task)`.
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
        share(tasks.count(), self.bytes, |range| {
            tasks.visit(range, |task| {
                let at = self.at(task.source, task.target);
                let some = Loop { count: block(one, by, which(task)), ..one };
                // SAFETY: the tasks cover the runs once, which the caller guarantees, and `share`
                // gives this one to this thread only.
                unsafe { at.some_runs(some, run, lines) };
            });
            lines.done();
        });
    }

    /// Copies the runs of one loop.
    ///
    /// # Safety
    /// As [`Self::go`].
    unsafe fn some_runs(self, loops: Loop, run: usize, lines: Lines) {
        // A move of a known size is an instruction, one of unknown size a call.
        macro_rules! sized {
            ($($width:literal),*) => {
                match run {
                    // SAFETY: the caller guarantees these runs.
                    $($width => return unsafe { self.items::<$width>(loops) },)*
                    _ => {}
                }
            };
        }
        sized!(1, 2, 4, 8, 16);
        let mut at = self;
        for _ in 0..loops.count {
            let next = at.at(loops.source, loops.target);
            lines.prefetch_ends(next.target, run);
            // SAFETY: one of the runs, which the caller guarantees.
            unsafe { lines.copy(at.source, at.target, run) };
            at = next;
        }
    }

    /// Copies the items of one loop, of `W` bytes each.
    ///
    /// # Safety
    /// As [`Self::go`].
    unsafe fn items<const W: usize>(self, loops: Loop) {
        let mut at = self;
        for _ in 0..loops.count {
            // SAFETY: one of the items, which the caller guarantees; bytes need no alignment.
            unsafe { at.source.copy_to_nonoverlapping(at.target, W) };
            at = at.at(loops.source, loops.target);
        }
    }

    /// Transposes planes.
    ///
    /// # Safety
    /// As [`Self::go`].
    unsafe fn planes(self, planes: &Planes, past_caches: bool) {
        let Some(kernels) = kernels(self.level, planes.item) else {
            let loops: Vec<Loop> = planes.others.iter().copied().chain([planes.read]).collect();
            // SAFETY: the loops cover the same items, which the caller guarantees.
            return unsafe { self.runs(&loops, planes.written, planes.item, past_caches) };
        };
        let lined = |step: isize| step.unsigned_abs().is_multiple_of(LINE);
        let in_lines = self.target.addr().is_multiple_of(LINE)
            && lined(planes.read.target)
            && planes.others.iter().all(|one| lined(one.target));
        match kernels.transpose_past_caches {
            // SAFETY: the caller guarantees the planes; each row of the target starts a line.
            Some(kernel) if past_caches && in_lines => unsafe { self.bands(planes, kernel) },
            // SAFETY: the caller guarantees the planes.
            _ => unsafe { self.rows(planes, kernels, past_caches) },
        }
    }

    /// The plane of `written` by `read` items from here on.
    fn plane(self, planes: &Planes, (written, read): (usize, usize), ahead: isize) -> Plane {
        let (source_step, target_step) = (planes.written.source, planes.read.target);
        let Self { source, target, .. } = self;
        Plane { source, source_step, target, target_step, written, read, ahead }
    }

    /// Transposes one band of the target's rows after the other.
    ///
    /// # Safety
    /// As [`Self::go`], and as `kernel` requires.
    unsafe fn bands(self, planes: &Planes, kernel: unsafe fn(Plane)) {
        let &Planes { item, read, written, ref others } = planes;
        let (wide, long) = (BAND / item, STRETCH / item);
        let loops = [blocks(written, wide)].into_iter().chain(others.iter().copied());
        let tasks: Tasks = loops.chain([blocks(read, long)]).collect();
        let ahead = tasks.source_step();
        share(tasks.count(), self.bytes, |range| {
            tasks.visit(range, |task| {
                let items = (block(written, wide, task.first()), block(read, long, task.last()));
                let plane = self.at(task.source, task.target).plane(planes, items, ahead);
                // SAFETY: a part of the planes that `share` gives to this thread only; bands are
                // whole lines.
                unsafe { kernel(plane) };
            });
            registers::fence();
        });
    }

    /// Transposes a group of the target's rows after the other. On the way past the caches, rows go
    /// through a buffer that stays in the cache.
    ///
    /// # Safety
    /// As [`Self::go`].
    unsafe fn rows(self, planes: &Planes, kernels: Kernels, past_caches: bool) {
        let (read, written) = (planes.read, planes.written);
        let tasks: Tasks = planes.others.iter().copied().chain([blocks(read, ROWS)]).collect();
        let (lines, ahead) = (Lines::new(self.level, past_caches), tasks.source_step());
        share(tasks.count(), self.bytes, |range| {
            let mut buffer = lines.buffer();
            tasks.visit(range, |task| {
                let items = (written.count, block(read, ROWS, task.last()));
                let plane = self.at(task.source, task.target).plane(planes, items, ahead);
                // SAFETY: a part of the planes that `share` gives to this thread only.
                unsafe { lines.transpose(plane, planes.item, kernels, &mut buffer) };
            });
            lines.done();
        });
    }
}

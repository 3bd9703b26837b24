//! Doing a copy between two fields in host memory.
//!
//! ```text
//! way: runs or planes ──▶ walk: loops as tasks, shared by threads ──▶ kernels: lines in registers
//! ```
//!
//! What a copy costs is the memory it moves, so that everything here is about the order of it: sources
//! are read along few long streams and asked for ahead of time, and targets that no cache holds are
//! written in whole lines past the caches, which spares reading them first.

mod way;
mod walk;
mod registers;
mod transpose;
mod kernels;
mod past_caches;

use kernels::{Kernels, Level, kernels};
use past_caches::{Lines, ROWS, goes_past};
use transpose::{LINE, Plane};
use walk::{Task, Tasks, block, blocks};
use way::{Planes, Way, way};

use super::plan::{Loop, plan};
use crate::error::Result;
use crate::managed::Managed;
use crate::threads::share;

/// Bytes that one task of a single long run moves.
const PIECE: usize = 64 << 10;

/// Runs that one task moves.
const RUNS: usize = 64;

/// Streams along which the source is read where runs that are neighbours in the target are none there.
const STREAMS: usize = 4;

/// Shorter runs have too few whole lines to go past the caches.
const SHORTEST_STREAM: usize = 4 * LINE;

/// Lines of each row of the target that are written in one go: neighbours go to memory together, and the
/// source is read along as few streams as there are items in them.
const BAND: usize = 2 * LINE;

/// Bytes of each row of the source that a task of a band reads, and asks for ahead.
const STRETCH: usize = 1 << 10;

/// Copies every element of `source` to the same index of `target`.
///
/// # Errors
/// [`crate::error::Error::Argument`] where shapes differ.
///
/// # Safety
/// Both are host memory, of one type, and share no byte. Nobody else reads or writes the elements of
/// `target`, or writes those of `source`, meanwhile.
pub(super) unsafe fn copy(source: &Managed, target: &Managed) -> Result<()> {
    let plan = plan(source.layout(), target.layout())?;
    let bytes = source.layout().nbytes();
    if bytes > 0 {
        let level = Level::best();
        let copy = Copying { source: source.data(), target: target.data(), bytes, level };
        // SAFETY: the plan steps over exactly the elements of both layouts, which lie in memory that
        // Managed vouches for; the caller excludes other accesses.
        unsafe { copy.go(way(plan), goes_past(bytes)) };
    }
    Ok(())
}

/// Finds out what does not change while the process runs, so that no copy has to.
#[cfg(feature = "python")]
pub(super) fn settle() {
    goes_past(0);
}

/// Where a copy starts, how many bytes it moves, with what.
#[derive(Clone, Copy)]
struct Copying {
    source: *const u8,
    target: *mut u8,
    bytes: usize,
    level: Level,
}

// SAFETY: two addresses; what may be done there, and that it may be done by other threads, is the promise
// of who calls the unsafe methods.
unsafe impl Send for Copying {}
// SAFETY: as above.
unsafe impl Sync for Copying {}

impl Copying {
    fn at(self, source: isize, target: isize) -> Self {
        let source = self.source.wrapping_offset(source);
        Self { source, target: self.target.wrapping_offset(target), ..self }
    }

    /// # Safety
    /// Every position that `way` reaches can be read and written by this process alone, and no byte that
    /// is read is written.
    unsafe fn go(self, way: Way, past_caches: bool) {
        match way {
            Way::Runs { loops, run } => match loops.split_last() {
                // SAFETY: the caller's promise.
                None => unsafe { self.one_run(run, past_caches) },
                // SAFETY: the caller's promise.
                Some((inner, outer)) => unsafe { self.runs(outer, *inner, run, past_caches) },
            },
            // SAFETY: the caller's promise.
            Way::Planes(planes) => unsafe { self.planes(&planes, past_caches) },
        }
    }

    /// # Safety
    /// As for [`Self::go`].
    unsafe fn one_run(self, run: usize, past_caches: bool) {
        let pieces = run.div_ceil(PIECE);
        let lines = Lines::of(self.level, past_caches);
        share(pieces, self.bytes, |range| {
            let from = range.start * PIECE;
            let bytes = run.min(range.end * PIECE) - from;
            let at = self.at(from.cast_signed(), from.cast_signed());
            // SAFETY: a part of the run that is this thread's alone.
            unsafe { lines.copy(at.source, at.target, bytes) };
            lines.done();
        });
    }

    /// # Safety
    /// As for [`Self::go`].
    unsafe fn runs(self, loops: &[Loop], inner: Loop, run: usize, past_caches: bool) {
        let lines = Lines::of(self.level, past_caches && run >= SHORTEST_STREAM);
        let near = loops.iter().copied().min_by_key(|one| one.target.unsigned_abs());
        match near
            .filter(|near| past_caches && near.target.unsigned_abs() < inner.target.unsigned_abs())
        {
            Some(near) => {
                let others = loops.iter().copied().filter(|one| *one != near).chain([inner]);
                let tasks: Tasks = [blocks(near, STREAMS)].into_iter().chain(others).collect();
                // SAFETY: the caller's promise.
                unsafe { self.blocks_of_runs(&tasks, near, STREAMS, Task::first, run, lines) };
            }
            None => {
                let tasks: Tasks = loops.iter().copied().chain([blocks(inner, RUNS)]).collect();
                // SAFETY: the caller's promise.
                unsafe { self.blocks_of_runs(&tasks, inner, RUNS, Task::last, run, lines) };
            }
        }
    }

    /// Runs of blocks of one loop, of which a task has the number that `which` tells.
    ///
    /// # Safety
    /// As for [`Self::go`].
    unsafe fn blocks_of_runs(
        self,
        tasks: &Tasks,
        one: Loop,
        by: usize,
        which: fn(&Task) -> usize,
        run: usize,
        lines: Lines,
    ) {
        share(tasks.count(), self.bytes, |range| {
            tasks.visit(range, |task| {
                let at = self.at(task.source, task.target);
                let some = Loop { count: block(one, by, which(task)), ..one };
                // SAFETY: the runs of this task, which are this thread's alone.
                unsafe { at.some_runs(some, run, lines) };
            });
            lines.done();
        });
    }

    /// # Safety
    /// As for [`Self::go`].
    unsafe fn some_runs(self, loops: Loop, run: usize, lines: Lines) {
        // A move of a known size is an instruction where one of unknown size is a call.
        match run {
            // SAFETY: the caller's promise, here and below.
            1 => unsafe { self.items::<1>(loops) },
            // SAFETY: as above.
            2 => unsafe { self.items::<2>(loops) },
            // SAFETY: as above.
            4 => unsafe { self.items::<4>(loops) },
            // SAFETY: as above.
            8 => unsafe { self.items::<8>(loops) },
            // SAFETY: as above.
            16 => unsafe { self.items::<16>(loops) },
            _ => {
                let mut at = self;
                for _ in 0..loops.count {
                    let next = at.at(loops.source, loops.target);
                    lines.prefetch_ends(next.target, run);
                    // SAFETY: as above.
                    unsafe { lines.copy(at.source, at.target, run) };
                    at = next;
                }
            }
        }
    }

    /// # Safety
    /// As for [`Self::go`].
    unsafe fn items<const W: usize>(self, loops: Loop) {
        let mut at = self;
        for _ in 0..loops.count {
            // SAFETY: the caller's promise; bytes need no alignment.
            unsafe { at.source.copy_to_nonoverlapping(at.target, W) };
            at = at.at(loops.source, loops.target);
        }
    }

    /// # Safety
    /// As for [`Self::go`].
    unsafe fn planes(self, planes: &Planes, past_caches: bool) {
        let Some(kernels) = kernels(self.level, planes.item) else {
            let loops: Vec<Loop> = planes.others.iter().copied().chain([planes.read]).collect();
            // SAFETY: the caller's promise: the same items, one by one.
            return unsafe { self.runs(&loops, planes.written, planes.item, past_caches) };
        };
        let lined = |step: isize| step.unsigned_abs().is_multiple_of(LINE);
        let in_lines = self.target.addr().is_multiple_of(LINE)
            && lined(planes.read.target)
            && planes.others.iter().all(|one| lined(one.target));
        match kernels.transpose_past_caches {
            // SAFETY: the caller's promise; each row of the target starts with a line.
            Some(kernel) if past_caches && in_lines => unsafe { self.bands(planes, kernel) },
            // SAFETY: the caller's promise.
            _ => unsafe { self.rows(planes, kernels, past_caches) },
        }
    }

    /// So many items along the dimension that is written, and along that which is read, from here on.
    fn plane(self, planes: &Planes, (written, read): (usize, usize), ahead: isize) -> Plane {
        let (source_step, target_step) = (planes.written.source, planes.read.target);
        let Self { source, target, .. } = self;
        Plane { source, source_step, target, target_step, written, read, ahead }
    }

    /// A band of the target's rows after the other, all the rest of the source within each.
    ///
    /// # Safety
    /// As for [`Self::go`]; what `kernel` needs.
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
                // SAFETY: a part of the planes that is this thread's alone; bands are whole lines.
                unsafe { kernel(plane) };
            });
            registers::fence();
        });
    }

    /// Some rows of the target after the other. Past the caches they go by a buffer that stays there.
    ///
    /// # Safety
    /// As for [`Self::go`].
    unsafe fn rows(self, planes: &Planes, kernels: Kernels, past_caches: bool) {
        let (read, written) = (planes.read, planes.written);
        let tasks: Tasks = planes.others.iter().copied().chain([blocks(read, ROWS)]).collect();
        let (lines, ahead) = (Lines::of(self.level, past_caches), tasks.source_step());
        share(tasks.count(), self.bytes, |range| {
            let mut buffer = lines.buffer();
            tasks.visit(range, |task| {
                let items = (written.count, block(read, ROWS, task.last()));
                let plane = self.at(task.source, task.target).plane(planes, items, ahead);
                // SAFETY: a part of the planes that is this thread's alone.
                unsafe { lines.transpose(plane, planes.item, kernels, &mut buffer) };
            });
            lines.done();
        });
    }
}

#[cfg(test)]
mod tests;

//! Divides each way of a copy into tasks, and carries them out.

use std::ops::Range;

use super::buffer::{Block, Buffer};
use super::kernels::{Kernels, Level, kernels};
use super::past_caches::Lines;
use super::stream::{AHEAD, Rows};
use super::transpose::{LINE, Plane};
use super::walk::{Task, Tasks, block, blocks};
use super::way::{Planes, Way};

use super::super::plan::Loop;
use super::registers;
use super::runs::{copy_runs, next_read};

/// Bytes per task of a single long run.
pub(super) const PIECE: usize = 64 << 10;

/// Runs per task.
pub(super) const RUNS: usize = 64;

/// Number of streams of the source, for neighbouring runs of the target that lie apart there.
const STREAMS: usize = 4;

/// Length in bytes from which a run has enough whole lines to go past the caches.
const SHORTEST_STREAM: usize = 4 * LINE;

/// Bytes of each row of the target that are written at once. Neighbouring lines go to memory
/// together, and the source is read along as few rows as these have items.
pub(super) const BAND: usize = 2 * LINE;

/// Bytes of each row of the target that pass through a buffer before others are read, if rows are
/// whole lines.
pub(super) const WIDE: usize = 4 * LINE;

/// The same if rows start anywhere: each end of a band is a line that is read before it is written.
pub(super) const WIDEST: usize = 4 << 10;

/// Bytes of each row of the source that a task reads and prefetches.
pub(super) const STRETCH: usize = 1 << 10;

/// Number of rows of the target that pass through a buffer together, if items are long: about as
/// many as fit into the first cache.
pub(super) const ROWS: usize = 96;

/// The same for items of 1 and 2 bytes. The second cache is slower, but the source would be read
/// in stretches of a line or two otherwise.
const NARROW_ROWS: usize = 512;

/// Number of rows of the target that are written together through the caches.
const CACHED_ROWS: usize = 16;

/// Largest side of a square in registers, in items.
const SIDE: usize = 16;

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
    Runs { one: Loop, by: usize, which: fn(&Task) -> usize, run: usize, lines: (Lines, isize) },
    /// Copies a piece of a single run.
    Piece { run: usize, lines: Lines },
    /// Transposes a block of the planes.
    Block { size: Size, method: Method },
}

/// Largest extents of a block, and the loops that it divides.
#[derive(Debug, Clone, Copy)]
struct Size {
    item: usize,
    read: Loop,
    written: Loop,
    /// Items of each row of the target.
    wide: usize,
    /// Rows of the target in each plane.
    rows: usize,
    /// Planes, along the loop `across`.
    planes: usize,
    across: Loop,
}

/// Method of transposing a block.
#[derive(Clone, Copy)]
enum Method {
    /// Through the caches.
    Cached(unsafe fn(Plane)),
    /// Past the caches, straight from registers that are lines.
    Lines(unsafe fn(Plane)),
    /// Past the caches, through a buffer.
    Buffered(Kernels, unsafe fn(Rows)),
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
        let step = if by == STREAMS { tasks.source_step() } else { one.source };
        let lines = (lines, next_read(run, step));
        Prepared { copying: self, tasks, each: Each::Runs { one, by, which, run, lines } }
    }

    fn planes(self, planes: Planes, past_caches: bool) -> Prepared {
        let Planes { item, read, written, others } = planes;
        let Some(kernels) = kernels(self.level, item) else {
            let loops: Vec<Loop> = others.iter().copied().chain([read]).collect();
            return self.runs(&loops, written, item, past_caches);
        };
        let lined = |step: isize| step.unsigned_abs().is_multiple_of(LINE);
        let in_lines = self.target.addr().is_multiple_of(LINE)
            && lined(read.target)
            && others.iter().all(|one| lined(one.target));
        let past_caches = past_caches && written.count * item >= SHORTEST_STREAM;
        let (method, wide, rows) = self.method(kernels, item, past_caches, in_lines);
        let (rows, most) = (evenly(read.count, read.count.div_ceil(rows), SIDE), rows);
        let mut outer = others;
        let across = outer.pop().unwrap_or(Loop { count: 1, source: 0, target: 0 });
        let (wide, planes) = match method {
            Method::Lines(_) => (wide, 1),
            Method::Cached(_) => (written.count.max(1), 1),
            Method::Buffered(..) => {
                (evenly(written.count, written.count / wide, LINE / item), (most / rows).max(1))
            }
        };
        let size = Size { item, read, written, wide, rows, planes, across };
        let inner = [blocks(across, planes), blocks(read, rows)];
        let tasks = [blocks(written, wide)].into_iter().chain(outer).chain(inner).collect();
        Prepared { copying: self, tasks, each: Each::Block { size, method } }
    }

    /// The method for planes of `item` bytes each, with the largest width and height of a block.
    fn method(
        self,
        kernels: Kernels,
        item: usize,
        past_caches: bool,
        in_lines: bool,
    ) -> (Method, usize, usize) {
        let stretch = STRETCH / item;
        if let Some(kernel) = kernels.transpose_past_caches.filter(|_| past_caches && in_lines) {
            return (Method::Lines(kernel), BAND / item, stretch);
        }
        let flush = super::kernels::kernels(self.level, 8).and_then(|widest| widest.flush);
        if let Some(flush) = flush.filter(|_| past_caches) {
            let wide = if in_lines { WIDE } else { WIDEST };
            let rows = if item > 2 { ROWS } else { NARROW_ROWS };
            return (Method::Buffered(kernels, flush), wide / item, stretch.min(rows));
        }
        (Method::Cached(kernels.transpose), usize::MAX, CACHED_ROWS)
    }

    /// The plane of `written` by `read` items from here on.
    fn plane(self, size: Size, (written, read): (usize, usize), ahead: isize) -> Plane {
        let (source_step, target_step) = (size.written.source, size.read.target);
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
                    unsafe { lines.copy(at.source, at.target, bytes, AHEAD.cast_signed()) };
                });
                lines.done();
            }
            &Each::Runs { one, by, which, run, lines: (lines, next) } => {
                self.tasks.visit(tasks, |task| {
                    let (at, some) = (at(task), Loop { count: block(one, by, which(task)), ..one });
                    // SAFETY: the tasks cover the runs, which the caller guarantees.
                    unsafe { copy_runs(at.source, at.target, some, run, (lines, next)) };
                });
                lines.done();
            }
            // SAFETY: the caller guarantees these tasks.
            Each::Block { size, method } => unsafe {
                self.transpose(*size, *method, tasks);
            },
        }
    }

    /// Transposes blocks.
    ///
    /// # Safety
    /// As [`Self::carry_out`], and as the kernels of `method` require.
    unsafe fn transpose(&self, size: Size, method: Method, tasks: Range<usize>) {
        let Size { item, read, written, wide, rows, across, .. } = size;
        let ahead = self.tasks.source_step();
        let is_buffered = matches!(method, Method::Buffered(..));
        let mut buffer = Buffer::new(if is_buffered { rows } else { 0 }, size.planes);
        self.tasks.visit(tasks, |task| {
            let items = (block(written, wide, task.first()), block(read, rows, task.last()));
            let first = self.copying.at(task).plane(size, items, ahead);
            match method {
                // SAFETY: a part of the planes, which the caller guarantees; `planes` chose `Lines`
                // for rows that start lines.
                Method::Cached(kernel) | Method::Lines(kernel) => unsafe { kernel(first) },
                Method::Buffered(kernels, flush) => {
                    let planes = block(across, size.planes, task.last_but_one());
                    let (source_apart, target_apart) = (across.source, across.target);
                    let block = Block { first, planes, source_apart, target_apart };
                    // SAFETY: a part of the planes, not more of them than in the buffer.
                    unsafe { buffer.transpose(block, item, kernels, flush) };
                }
            }
        });
        if !matches!(method, Method::Cached(_)) {
            registers::fence();
        }
    }
}

/// Length of `parts` equal parts of `count`, rounded up to a multiple of `unit`.
fn evenly(count: usize, parts: usize, unit: usize) -> usize {
    count.div_ceil(parts.max(1)).next_multiple_of(unit).max(unit)
}

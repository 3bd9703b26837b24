//! Transposes planes through a buffer, which collects whole lines of the target.
//!
//! Rows of the target may start anywhere in a line, and squares may be narrower than a line. The
//! source is read along few rows at once, the lines of a row of the target are written together.

use std::mem::MaybeUninit;

use super::kernels::Kernels;
use super::stream::{Rows, prefetch_ends};
use super::transpose::{LINE, Plane};

/// Bytes of a row of the target that are collected: a few lines, which go to memory together.
pub(super) const PIECE: usize = 4 * LINE;

/// Bytes up to which the remainder of a row is not divided.
const LONGEST: usize = PIECE + LINE;

/// Bytes from one row of the buffer to the next, rounded down to lines: an odd number of them, so
/// that rows do not compete for the same cache sets. A row begins and ends anywhere in a line.
const PITCH: usize = LONGEST + 2 * LINE;

/// Number of rows of the source that are read together: fewer than processors can prefetch.
const TOGETHER: usize = 16;

/// Equal planes, which are transposed together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) first: Plane,
    pub(super) planes: usize,
    /// Bytes from one plane to the next.
    pub(super) source_apart: isize,
    pub(super) target_apart: isize,
}

impl Block {
    fn plane(&self, number: usize) -> Plane {
        let number = number.cast_signed();
        let source = self.first.source.wrapping_offset(self.source_apart * number);
        let target = self.first.target.wrapping_offset(self.target_apart * number);
        Plane { source, target, ..self.first }
    }

    /// Bytes from one row of the buffer to the next. Rows are at the same offset in a line there as
    /// in the target.
    fn buffer_step(&self) -> isize {
        PITCH.cast_signed() + self.first.target_step.rem_euclid(LINE.cast_signed())
    }
}

/// Pieces of rows of a target on their way there.
pub(super) struct Buffer(Vec<MaybeUninit<[u8; LINE]>>);

impl Buffer {
    /// A buffer for pieces of `rows` rows of `planes` planes.
    pub(super) fn new(rows: usize, planes: usize) -> Self {
        Self(vec![MaybeUninit::uninit(); lines_of(rows) * planes + 1])
    }

    /// Transposes planes; `flush` writes their rows.
    ///
    /// # Safety
    /// As [`Kernels::transpose`] and [`Kernels::flush`], for every plane. The planes have at most
    /// as many rows as the buffer.
    pub(super) unsafe fn transpose(
        &mut self,
        block: Block,
        item: usize,
        kernels: Kernels,
        flush: unsafe fn(Rows),
    ) {
        let (written, buffer_step) = (block.first.written, block.buffer_step());
        let mut from = 0;
        while from < written {
            let count = take(written - from, PIECE / item, LONGEST / item);
            let (starts, ends) = (from == 0, from + count == written);
            let first = block.first.part(from, count, item);
            let ahead = first.ahead - first.source_step * from.cast_signed();
            let piece = Block { first: Plane { ahead, ..first }, ..block };
            for number in 0..block.planes {
                prefetch_rows(piece.plane(number), count * item, starts, ends);
            }
            // SAFETY: a part of the planes, which the caller guarantees.
            unsafe { self.fill(piece, item, kernels, ends) };
            for number in 0..block.planes {
                let Plane { target, target_step, read, .. } = piece.plane(number);
                let (buffer, bytes) = (self.place(&piece, number), count * item);
                let rows = Rows {
                    buffer,
                    buffer_step,
                    target,
                    target_step,
                    count: read,
                    bytes,
                    starts,
                    ends,
                };
                // SAFETY: the caller guarantees the target; the piece has just been written to the
                // buffer, whose rows are at the same place for every piece.
                unsafe { flush(rows) };
            }
            from += count;
        }
    }

    /// Transposes a piece of each plane into the buffer, some rows of the source at a time. They
    /// prefetch the rows that are read after them.
    ///
    /// # Safety
    /// As [`Self::transpose`].
    unsafe fn fill(&mut self, piece: Block, item: usize, kernels: Kernels, ends: bool) {
        let (written, step) = (piece.first.written, piece.first.source_step);
        let mut from = 0;
        while from < written {
            let count = take(written - from, TOGETHER, 2 * TOGETHER - 1);
            let ahead = if ends && from + count == written {
                piece.first.ahead - step * from.cast_signed()
            } else {
                step * count.cast_signed()
            };
            for number in 0..piece.planes {
                let (target, target_step) = (self.place(&piece, number), piece.buffer_step());
                let buffered = Plane { target, target_step, ahead, ..piece.plane(number) };
                // SAFETY: a part of the plane, which the caller guarantees, and of its rows in the
                // buffer.
                unsafe { (kernels.transpose)(buffered.part(from, count, item)) };
            }
            from += count;
        }
    }

    /// The first row of a plane in the buffer.
    fn place(&mut self, block: &Block, number: usize) -> *mut u8 {
        let lines: *mut MaybeUninit<[u8; LINE]> = self.0.as_mut_ptr();
        let lines: *mut u8 = lines.cast();
        let start = lines.addr().wrapping_neg() % LINE + number * lines_of(block.first.read) * LINE;
        lines.wrapping_add(start + block.plane(number).target.addr() % LINE)
    }
}

/// Number of lines for `rows` rows: each has its distance to the next, of less than a line more than
/// [`PITCH`], and the last its place in a line.
fn lines_of(rows: usize) -> usize {
    rows * (PITCH / LINE + 1)
}

/// Length of the first part of `count`: `usual`, or all of it if that is at most `most`.
fn take(count: usize, usual: usize, most: usize) -> usize {
    if count <= most { count } else { usual }
}

/// Prefetches the lines that rows of `bytes` bytes fill only in part.
fn prefetch_rows(plane: Plane, bytes: usize, starts: bool, ends: bool) {
    if starts || ends {
        for row in 0..plane.read {
            let begin = plane.target_row(row);
            prefetch_ends(starts.then_some(begin), ends.then_some(begin.wrapping_add(bytes)));
        }
    }
}

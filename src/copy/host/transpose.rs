//! Transposes planes of items square by square, in registers.
//!
//! The functions are generic over the register and the width of an item. They are inlined into
//! those of `kernels`, which are compiled for processors with these registers.

use super::registers::{Register, prefetch};

/// Bytes of a cache line, the unit of a store past the caches.
pub(super) const LINE: usize = 64;

/// A plane of items: each row of the target has `written` adjacent items, each row of the source
/// `read` of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plane {
    pub(super) source: *const u8,
    /// Bytes from one row of the source to the next. The rows of the target run in this direction.
    pub(super) source_step: isize,
    pub(super) target: *mut u8,
    /// Bytes from one row of the target to the next.
    pub(super) target_step: isize,
    pub(super) written: usize,
    pub(super) read: usize,
    /// Bytes from a row of the source to the one that is read after this plane.
    pub(super) ahead: isize,
}

impl Plane {
    /// The part of `count` rows of the source from row `from` on, for items of `width` bytes.
    pub(super) fn part(self, from: usize, count: usize, width: usize) -> Self {
        let along = from.cast_signed();
        let source = self.source.wrapping_offset(self.source_step * along);
        let target = self.target.wrapping_offset(width.cast_signed() * along);
        Self { source, target, written: count, ..self }
    }

    #[inline(always)]
    fn source_row(&self, number: usize) -> *const u8 {
        self.source.wrapping_offset(self.source_step * number.cast_signed())
    }

    #[inline(always)]
    pub(super) fn target_row(&self, number: usize) -> *mut u8 {
        self.target.wrapping_offset(self.target_step * number.cast_signed())
    }

    /// Leaves out the first items of each side.
    #[inline(always)]
    fn from<const W: usize>(self, written: usize, read: usize) -> Self {
        let width = W.cast_signed();
        let (along, across) = (written.cast_signed(), read.cast_signed());
        let source = self.source.wrapping_offset(self.source_step * along + width * across);
        let target = self.target.wrapping_offset(self.target_step * across + width * along);
        Self { source, target, written: self.written - written, read: self.read - read, ..self }
    }
}

/// Transposes a plane square by square. Squares at the ends overlap their neighbours; with
/// `STREAM`, the others go past the caches.
///
/// # Safety
/// All items of the plane can be read and written, and no item is both read and written. The
/// processor has registers `R`, each of which holds `N` items of `W` bytes. With `STREAM`, a
/// register is a line, and every row of the target starts a line.
#[inline(always)]
pub(super) unsafe fn transpose<R: Register, const W: usize, const N: usize, const STREAM: bool>(
    plane: Plane,
) {
    const { assert!(N * W == R::BYTES, "a row of a square is a register") };
    if plane.written < N || plane.read < N {
        // SAFETY: the caller guarantees all items.
        return unsafe { one_by_one::<W>(plane) };
    }
    // Cached stores come first: streamed lines must not be touched again before a fence.
    let (whole, last) = (plane.written / N * N, plane.written - N);
    if !plane.read.is_multiple_of(N) {
        for written in (0..whole).step_by(N).chain((whole < plane.written).then_some(last)) {
            // SAFETY: the plane has `N` by `N` items from here on.
            unsafe { square::<R, W, N, false>(plane.from::<W>(written, plane.read - N)) };
        }
    }
    if whole < plane.written {
        for read in (0..plane.read / N * N).step_by(N) {
            // SAFETY: the plane has `N` by `N` items from here on.
            unsafe { square::<R, W, N, false>(plane.from::<W>(last, read)) };
        }
    }
    let mut read = 0;
    while read + N <= plane.read {
        for written in (0..whole).step_by(N) {
            // SAFETY: the plane has `N` by `N` items from here on, and starts lines with STREAM.
            unsafe { square::<R, W, N, STREAM>(plane.from::<W>(written, read)) };
        }
        read += N;
    }
}

/// Transposes `N` by `N` items in registers, one for each row of the source.
///
/// # Safety
/// As [`transpose`], for a plane of at least `N` by `N` items.
#[inline(always)]
unsafe fn square<R: Register, const W: usize, const N: usize, const STREAM: bool>(plane: Plane) {
    // SAFETY: the first row of the square has `N` items, which fill a register.
    let mut rows = [unsafe { R::load(plane.source) }; N];
    let mut number = 1;
    while number < N {
        // SAFETY: each row of the square has `N` items, which fill a register.
        rows[number] = unsafe { R::load(plane.source_row(number)) };
        number += 1;
    }
    let mut number = 0;
    while number < N {
        prefetch(plane.source_row(number).wrapping_offset(plane.ahead));
        number += 1;
    }
    // SAFETY: the caller guarantees that the processor has the registers.
    unsafe { transpose_registers::<R, W, N>(&mut rows) };
    let mut number = 0;
    while number < N {
        let row = plane.target_row(number);
        if STREAM {
            // SAFETY: the caller guarantees that the row is a whole line.
            unsafe { rows[number].stream(row) };
        } else {
            // SAFETY: each row of the target has `N` items, which fill a register.
            unsafe { rows[number].store(row) };
        }
        number += 1;
    }
}

/// Swaps item `i` of row `j` with item `j` of row `i`: within lanes first, then whole lanes.
///
/// # Safety
/// The processor has the registers.
#[inline(always)]
unsafe fn transpose_registers<R: Register, const W: usize, const N: usize>(rows: &mut [R; N]) {
    let per_lane = 16 / W;
    let mut first = 0;
    while first < N && per_lane > 1 {
        let mut stage = 1;
        while stage < per_lane {
            let before = *rows;
            let mut pair = 0;
            while pair < per_lane / 2 {
                let (one, other) = (before[first + pair], before[first + pair + per_lane / 2]);
                // SAFETY: the caller guarantees the registers; an item has at most 8 bytes here.
                let (low, high) = unsafe { one.zip::<W>(other) };
                (rows[first + 2 * pair], rows[first + 2 * pair + 1]) = (low, high);
                pair += 1;
            }
            stage *= 2;
        }
        first += per_lane;
    }
    let mut number = 0;
    while number < per_lane {
        // SAFETY: the caller guarantees the registers; there is a group of rows for each lane.
        unsafe { R::exchange_lanes(rows, number, per_lane) };
        number += 1;
    }
}

/// Transposes a plane item by item.
///
/// # Safety
/// As [`transpose`].
unsafe fn one_by_one<const W: usize>(plane: Plane) {
    for read in 0..plane.read {
        for written in 0..plane.written {
            let at = plane.from::<W>(written, read);
            // SAFETY: the caller guarantees every item; bytes need no alignment.
            unsafe { at.source.copy_to_nonoverlapping(at.target, W) };
        }
    }
}

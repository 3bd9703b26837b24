//! Transposes planes of items square by square, in registers.
//!
//! The functions are generic over the register and the width of an item. They are inlined into
//! those of `kernels`, which are compiled for processors with these registers.

use super::registers::{Register, prefetch, prefetch_to_write};

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
    /// Divides the plane into pieces of at most `items` items of each row of the target.
    pub(super) fn pieces(self, items: usize, width: usize) -> impl Iterator<Item = Self> {
        (0..self.written).step_by(items).map(move |from| {
            let along = from.cast_signed();
            let source = self.source.wrapping_offset(self.source_step * along);
            let target = self.target.wrapping_offset(width.cast_signed() * along);
            Self { source, target, written: items.min(self.written - from), ..self }
        })
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

/// Copies a run past the caches: whole lines of the target are streamed, its ends are not.
///
/// # Safety
/// `bytes` bytes can be read and written, and the two do not overlap. The processor has registers
/// `R`. This thread calls `registers::fence` before other threads read.
#[inline(always)]
pub(super) unsafe fn stream<R: Register>(source: *const u8, target: *mut u8, bytes: usize) {
    let head = (target.addr().wrapping_neg() % LINE).min(bytes);
    // SAFETY: the first `head` bytes of both.
    unsafe { part(source, target, head) };
    let mut at = head;
    while at + LINE <= bytes {
        for piece in (at..at + LINE).step_by(R::BYTES) {
            // SAFETY: a register inside the run.
            let items = unsafe { R::load(source.wrapping_add(piece)) };
            // SAFETY: the same piece of the target, whose lines start after `head` bytes.
            unsafe { items.stream(target.wrapping_add(piece)) };
        }
        at += LINE;
    }
    // SAFETY: the remaining bytes of both.
    unsafe { part(source.wrapping_add(at), target.wrapping_add(at), bytes - at) };
}

/// Prefetches the lines that a run fills only in part.
#[inline(always)]
pub(super) fn prefetch_ends(target: *const u8, bytes: usize) {
    let end = target.wrapping_add(bytes);
    if !target.addr().is_multiple_of(LINE) {
        prefetch_to_write(target);
    }
    if !end.addr().is_multiple_of(LINE) {
        prefetch_to_write(end);
    }
}

/// Copies less than a line in pieces of known sizes, which is cheaper than a call.
///
/// # Safety
/// `bytes` bytes can be read and written, and the two do not overlap.
#[inline(always)]
unsafe fn part(source: *const u8, target: *mut u8, bytes: usize) {
    let mut at = 0;
    macro_rules! piece {
        ($size:literal) => {
            if bytes & $size != 0 {
                let (source, target) = (source.wrapping_add(at), target.wrapping_add(at));
                // SAFETY: the sizes of all pieces add up to `bytes`.
                unsafe { source.copy_to_nonoverlapping(target, $size) };
                at += $size;
            }
        };
    }
    piece!(1);
    piece!(2);
    piece!(4);
    piece!(8);
    piece!(16);
    piece!(32);
    debug_assert_eq!(at, bytes % LINE);
}

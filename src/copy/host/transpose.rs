//! Changing the places of items in a plane, square by square, in registers.
//!
//! The functions are generic over the register and the width of an item, and inlined into those of
//! `kernels`, which are compiled for the processors that have the registers.

use super::registers::{Register, prefetch, prefetch_to_write};

/// Bytes of a cache line, which a store past the caches fills at once.
pub(super) const LINE: usize = 64;

/// A plane of items: `written` of them lie side by side in each row of the target, `read` of them in
/// each row of the source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plane {
    pub(super) source: *const u8,
    /// Bytes from one row of the source to the next, which is along the rows of the target.
    pub(super) source_step: isize,
    pub(super) target: *mut u8,
    /// Bytes from one row of the target to the next.
    pub(super) target_step: isize,
    pub(super) written: usize,
    pub(super) read: usize,
    /// Bytes from a row of the source to the one that will be read after this plane.
    pub(super) ahead: isize,
}

impl Plane {
    /// The plane in pieces of at most so many items of each row of the target.
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

    /// The plane without the first items of each side.
    #[inline(always)]
    fn from<const W: usize>(self, written: usize, read: usize) -> Self {
        let width = W.cast_signed();
        let (along, across) = (written.cast_signed(), read.cast_signed());
        let source = self.source.wrapping_offset(self.source_step * along + width * across);
        let target = self.target.wrapping_offset(self.target_step * across + width * along);
        Self { source, target, written: self.written - written, read: self.read - read, ..self }
    }
}

/// Copies a plane, square by square; those at the ends overlap their neighbours. With `STREAM` the others go past
/// the caches.
///
/// # Safety
/// All items of the plane can be read and written, and no item that is read is written; the processor
/// has registers `R`, of which one holds `N` items of `W` bytes. With `STREAM` a register is a line, and
/// every row of the target starts with one.
#[inline(always)]
pub(super) unsafe fn transpose<R: Register, const W: usize, const N: usize, const STREAM: bool>(
    plane: Plane,
) {
    const { assert!(N * W == R::BYTES, "a row of a square is a register") };
    if plane.written < N || plane.read < N {
        // SAFETY: the caller's promise.
        return unsafe { one_by_one::<W>(plane) };
    }
    // What is to go past the caches comes after what does not: it must not be touched again before a fence.
    let (whole, last) = (plane.written / N * N, plane.written - N);
    if !plane.read.is_multiple_of(N) {
        for written in (0..whole).step_by(N).chain((whole < plane.written).then_some(last)) {
            // SAFETY: `N` items from there on on both sides are of the plane.
            unsafe { square::<R, W, N, false>(plane.from::<W>(written, plane.read - N)) };
        }
    }
    if whole < plane.written {
        for read in (0..plane.read / N * N).step_by(N) {
            // SAFETY: as above.
            unsafe { square::<R, W, N, false>(plane.from::<W>(last, read)) };
        }
    }
    let mut read = 0;
    while read + N <= plane.read {
        for written in (0..whole).step_by(N) {
            // SAFETY: as above.
            unsafe { square::<R, W, N, STREAM>(plane.from::<W>(written, read)) };
        }
        read += N;
    }
}

/// Copies `N` x `N` items through registers: each row of the source is one.
///
/// # Safety
/// As for [`transpose`], for so many items.
#[inline(always)]
unsafe fn square<R: Register, const W: usize, const N: usize, const STREAM: bool>(plane: Plane) {
    // SAFETY: the first row.
    let mut rows = [unsafe { R::load(plane.source) }; N];
    let mut number = 1;
    while number < N {
        // SAFETY: `N` items of a row of the plane are a register.
        rows[number] = unsafe { R::load(plane.source_row(number)) };
        number += 1;
    }
    let mut number = 0;
    while number < N {
        prefetch(plane.source_row(number).wrapping_offset(plane.ahead));
        number += 1;
    }
    // SAFETY: the processor has the registers.
    unsafe { turn::<R, W, N>(&mut rows) };
    let mut number = 0;
    while number < N {
        let row = plane.target_row(number);
        if STREAM {
            // SAFETY: a whole line of the target, by the caller's promise.
            unsafe { rows[number].stream(row) };
        } else {
            // SAFETY: `N` items of a row of the plane are a register.
            unsafe { rows[number].store(row) };
        }
        number += 1;
    }
}

/// Makes item `i` of row `j` item `j` of row `i`: first among the rows of one lane, then the lanes.
///
/// # Safety
/// The processor has the registers.
#[inline(always)]
unsafe fn turn<R: Register, const W: usize, const N: usize>(rows: &mut [R; N]) {
    let of_lane = 16 / W;
    let mut first = 0;
    while first < N && of_lane > 1 {
        let mut stage = 1;
        while stage < of_lane {
            let before = *rows;
            let mut pair = 0;
            while pair < of_lane / 2 {
                let (one, other) = (before[first + pair], before[first + pair + of_lane / 2]);
                // SAFETY: the processor has the registers; an item is of 1, 2, 4 or 8 bytes here.
                let (low, high) = unsafe { one.zip::<W>(other) };
                (rows[first + 2 * pair], rows[first + 2 * pair + 1]) = (low, high);
                pair += 1;
            }
            stage *= 2;
        }
        first += of_lane;
    }
    let mut number = 0;
    while number < of_lane {
        // SAFETY: the processor has the registers; there are as many groups of `of_lane` rows as lanes.
        unsafe { R::exchange_lanes(rows, number, of_lane) };
        number += 1;
    }
}

/// Copies a plane item by item.
///
/// # Safety
/// As for [`transpose`].
unsafe fn one_by_one<const W: usize>(plane: Plane) {
    for read in 0..plane.read {
        for written in 0..plane.written {
            let at = plane.from::<W>(written, read);
            // SAFETY: one item of the plane; bytes need no alignment.
            unsafe { at.source.copy_to_nonoverlapping(at.target, W) };
        }
    }
}

/// Copies `bytes` bytes past the caches: whole lines of the target, its ends as usual.
///
/// # Safety
/// So many bytes can be read and written, and none that is read is written; the processor has registers
/// `R`. Before other threads read, `registers::fence` has to be called.
#[inline(always)]
pub(super) unsafe fn stream<R: Register>(source: *const u8, target: *mut u8, bytes: usize) {
    let head = (target.addr().wrapping_neg() % LINE).min(bytes);
    // SAFETY: the first bytes of both.
    unsafe { part(source, target, head) };
    let mut at = head;
    while at + LINE <= bytes {
        for piece in (at..at + LINE).step_by(R::BYTES) {
            // SAFETY: a piece of a line of the run.
            let items = unsafe { R::load(source.wrapping_add(piece)) };
            // SAFETY: the same piece of the target, whose lines begin after `head` bytes.
            unsafe { items.stream(target.wrapping_add(piece)) };
        }
        at += LINE;
    }
    // SAFETY: the last bytes of both.
    unsafe { part(source.wrapping_add(at), target.wrapping_add(at), bytes - at) };
}

/// Asks for the lines that a run fills only in part.
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

/// Copies less than a line, in pieces of known sizes: a call for so little costs more.
///
/// # Safety
/// So many bytes can be read and written.
#[inline(always)]
unsafe fn part(source: *const u8, target: *mut u8, bytes: usize) {
    let mut at = 0;
    macro_rules! piece {
        ($size:literal) => {
            if bytes & $size != 0 {
                let (source, target) = (source.wrapping_add(at), target.wrapping_add(at));
                // SAFETY: the sizes of the pieces add up to `bytes`.
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

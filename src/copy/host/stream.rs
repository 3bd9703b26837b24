//! Writes rows of a target past the caches, in whole lines.
//!
//! As in `transpose`, the functions are generic over the register and inlined into those of
//! `kernels`.

use std::mem::MaybeUninit;

use super::registers::{Register, prefetch, prefetch_to_write};
use super::transpose::LINE;

/// Bytes by which a run is prefetched. The processor's own prefetching starts anew in each page.
pub(super) const AHEAD: usize = 2 << 10;

/// Bytes that are prefetched and written together.
const TOGETHER: usize = 4 * LINE;

/// Copies a run past the caches: whole lines of the target are streamed, its ends are not. Each line
/// prefetches the one [`AHEAD`] bytes later; near the end of the run, the one `next` bytes later.
///
/// # Safety
/// `bytes` bytes can be read and written, and the two do not overlap. The processor has registers
/// `R`. This thread calls `registers::fence` before other threads read.
#[inline(always)]
pub(super) unsafe fn stream<R: Register>(
    source: *const u8,
    target: *mut u8,
    bytes: usize,
    next: isize,
) {
    let head = (target.addr().wrapping_neg() % LINE).min(bytes);
    // SAFETY: the first `head` bytes of both.
    unsafe { part(source, target, head) };
    let mut at = head;
    while at + LINE <= bytes {
        let some = TOGETHER.min((bytes - at) / LINE * LINE);
        let ahead = if at + AHEAD < bytes { AHEAD.cast_signed() } else { next };
        for line in (at..at + some).step_by(LINE) {
            prefetch(source.wrapping_add(line).wrapping_offset(ahead));
        }
        // SAFETY: whole lines inside the run, which start `head` bytes after the target.
        unsafe { lines::<R>(source.wrapping_add(at), target.wrapping_add(at), some) };
        at += some;
    }
    // SAFETY: the remaining bytes of both.
    unsafe { part(source.wrapping_add(at), target.wrapping_add(at), bytes - at) };
}

/// Copies whole lines past the caches.
///
/// # Safety
/// As [`stream`]; `bytes` is a multiple of a line, and `target` starts a line.
#[inline(always)]
unsafe fn lines<R: Register>(source: *const u8, target: *mut u8, bytes: usize) {
    let mut at = 0;
    while at < bytes {
        let mut piece = at;
        while piece < at + LINE {
            // SAFETY: a register inside the lines.
            let items = unsafe { R::load(source.wrapping_add(piece)) };
            // SAFETY: the same piece of the target, which starts a line.
            unsafe { items.stream(target.wrapping_add(piece)) };
            piece += R::BYTES;
        }
        at += LINE;
    }
}

/// Pieces of rows in a buffer, and their places in a target. Both are at the same offset in a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    pub(super) buffer: *mut u8,
    pub(super) buffer_step: isize,
    pub(super) target: *mut u8,
    pub(super) target_step: isize,
    pub(super) count: usize,
    /// Bytes of each piece, at least a line unless it is the last of its row.
    pub(super) bytes: usize,
    /// True if rows start here. Otherwise, the buffer has their last incomplete line.
    pub(super) starts: bool,
    /// True if rows end here. Otherwise, an incomplete line waits in the buffer for the next piece,
    /// whose place there must be the same.
    pub(super) ends: bool,
}

/// Moves pieces of rows from a buffer to the target: whole lines past the caches, ends of rows not.
///
/// # Safety
/// The pieces can be written in the target, and the lines that they touch in the buffer. Nothing
/// else accesses either. The processor has registers `R`. This thread calls `registers::fence`
/// before other threads read.
#[inline(always)]
pub(super) unsafe fn flush<R: Register>(rows: Rows) {
    let Rows { mut buffer, mut target, bytes, .. } = rows;
    for _ in 0..rows.count {
        let inside = target.addr() % LINE;
        let first = buffer.wrapping_sub(inside); // starts a line, as in the target
        let line = target.wrapping_sub(inside);
        let end = inside + bytes;
        let mut at = 0;
        if rows.starts && inside > 0 {
            at = LINE;
            // SAFETY: bytes of the piece in its first line.
            unsafe { part(buffer, target, LINE.min(end) - inside) };
        }
        let whole = (end / LINE * LINE).max(at);
        // SAFETY: whole lines of the row, which begin at `line` and end with the piece.
        unsafe { lines::<R>(first.wrapping_add(at), line.wrapping_add(at), whole - at) };
        if whole < end && rows.ends {
            // SAFETY: bytes of the piece in its last line.
            unsafe { part(first.wrapping_add(whole), line.wrapping_add(whole), end - whole) };
        } else if whole < end {
            let incomplete: *const MaybeUninit<[u8; LINE]> = first.wrapping_add(whole).cast();
            // SAFETY: the piece touches this line of the buffer; any bytes are a value.
            let incomplete = unsafe { incomplete.read() };
            // SAFETY: the first line of the piece in the buffer.
            unsafe { first.cast::<MaybeUninit<[u8; LINE]>>().write(incomplete) };
        }
        buffer = buffer.wrapping_offset(rows.buffer_step);
        target = target.wrapping_offset(rows.target_step);
    }
}

/// Prefetches the first and the last line of a run if it fills them only in part.
#[inline(always)]
pub(super) fn prefetch_ends(begin: Option<*mut u8>, end: Option<*mut u8>) {
    for at in [begin, end].into_iter().flatten() {
        if !at.addr().is_multiple_of(LINE) {
            prefetch_to_write(at);
        }
    }
}

/// Copies less than a line: its first and its last bytes, which may overlap. A call takes longer, as
/// do more branches on the length, which no processor predicts.
///
/// # Safety
/// `bytes` bytes can be read and written, and the two do not overlap.
#[inline(always)]
unsafe fn part(source: *const u8, target: *mut u8, bytes: usize) {
    debug_assert!(bytes < LINE, "less than a line");
    macro_rules! ends {
        ($size:literal) => {{
            let last = bytes - $size;
            // SAFETY: the first bytes of both.
            unsafe { source.copy_to_nonoverlapping(target, $size) };
            let (source, target) = (source.wrapping_add(last), target.wrapping_add(last));
            // SAFETY: the last bytes of both.
            unsafe { source.copy_to_nonoverlapping(target, $size) };
        }};
    }
    match bytes {
        0 => {}
        1 => ends!(1),
        2..4 => ends!(2),
        4..8 => ends!(4),
        8..16 => ends!(8),
        16..32 => ends!(16),
        _ => ends!(32),
    }
}

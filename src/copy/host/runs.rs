//! Copies the runs of one loop.

use super::super::plan::Loop;
use super::past_caches::Lines;
use super::registers::{prefetch, prefetch_to_write};
use super::stream::AHEAD as BYTES_AHEAD;
use super::transpose::LINE;

/// Number of runs by which lines are prefetched, since the processor itself follows no steps from
/// one page to another. For items of up to 8 bytes prefetching takes longer than it saves.
const AHEAD: isize = 16;

/// Copies runs of `run` bytes; [`next_read`] gives `next`. Short ones are moved by instructions, since a call for each of them
/// takes longer than the bytes.
///
/// # Safety
/// Every run of the loop can be read and written, and nothing else accesses it. No byte is both
/// read and written. This thread calls [`Lines::done`] before others read the target.
pub(super) unsafe fn copy_runs(
    mut source: *const u8,
    mut target: *mut u8,
    loops: Loop,
    run: usize,
    (lines, next): (Lines, isize),
) {
    macro_rules! short {
        ($($lengths:pat => $width:literal),*) => {
            match run {
                // SAFETY: the caller guarantees these runs, which have the lengths of `ends`.
                $($lengths => return unsafe { ends::<$width>(source, target, loops, run) },)*
                _ => {}
            }
        };
    }
    short!(1 => 1, 2..=3 => 2, 4..=7 => 4, 8..=15 => 8, 16..=31 => 16, 32..=64 => 32);
    for _ in 0..loops.count {
        let following = target.wrapping_offset(loops.target);
        lines.prefetch_ends(following, run);
        // SAFETY: one of the runs, which the caller guarantees.
        unsafe { lines.copy(source, target, run, next) };
        (source, target) = (source.wrapping_offset(loops.source), following);
    }
}

/// Distance in bytes from the end of a run of `run` bytes to what is read a little later, if the
/// following runs are `step` bytes apart.
pub(super) fn next_read(run: usize, step: isize) -> isize {
    if run > BYTES_AHEAD {
        return step.wrapping_sub((run - BYTES_AHEAD).cast_signed());
    }
    step.wrapping_mul(BYTES_AHEAD.div_ceil(run.max(1)).cast_signed())
}

/// Copies runs of `W` to `2 * W` bytes: the first and the last `W` bytes of each. Moves of a size
/// that is known when compiled are instructions.
///
/// # Safety
/// As [`copy_runs`].
unsafe fn ends<const W: usize>(
    mut source: *const u8,
    mut target: *mut u8,
    loops: Loop,
    run: usize,
) {
    let last = run - W;
    let worth_it = run > 8 && loops.count > AHEAD.unsigned_abs();
    let is_far = |step: isize| worth_it && step.unsigned_abs() >= LINE;
    let (from_far, to_far) = (is_far(loops.source), is_far(loops.target));
    for _ in 0..loops.count {
        if from_far {
            prefetch(source.wrapping_offset(loops.source * AHEAD));
        }
        if to_far {
            prefetch_to_write(target.wrapping_offset(loops.target * AHEAD));
        }
        // SAFETY: the first bytes of a run, which the caller guarantees; bytes need no alignment.
        unsafe { source.copy_to_nonoverlapping(target, W) };
        if last > 0 {
            let (source, target) = (source.wrapping_add(last), target.wrapping_add(last));
            // SAFETY: the last bytes of the same run.
            unsafe { source.copy_to_nonoverlapping(target, W) };
        }
        source = source.wrapping_offset(loops.source);
        target = target.wrapping_offset(loops.target);
    }
}

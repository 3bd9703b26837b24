//! Plans a copy in which a device takes part: moves by the driver, or a kernel.
#![forbid(unsafe_code)]

use std::ffi::CStr;
use std::iter;

use super::plan::{CopyPlan, Loop, Loops};
use crate::cuda::{Arguments, MAX_WALKS, Walk};

/// Largest pitch of a row that every driver accepts, in bytes.
const MAX_PITCH: usize = (1 << 31) - 1;

/// Row length in bytes below which a kernel or a detour is cheaper than the copy engine.
const SHORT_ROW: usize = 64;

/// Number of short rows up to which the copy engine is cheaper than a launch.
const FEW_ROWS: usize = 16;

/// A copy by the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moves {
    /// Loops around one move, outermost first.
    pub(super) loops: Loops,
    pub(super) one: Move,
}

/// One move: bytes, or planes of rows. Rows alone are one plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    Linear { bytes: usize },
    Planes { width: usize, rows: Pitch, planes: usize, apart: (usize, usize) },
}

/// Number of rows, and bytes from one row to the next in source and target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pitch {
    pub(super) count: usize,
    pub(super) source: usize,
    pub(super) target: usize,
}

/// Plans a copy by the driver. `None` unless rows follow each other on both sides.
pub(super) fn moves(plan: &CopyPlan) -> Option<Moves> {
    let mut loops = plan.loops.clone();
    let Some(inner) = loops.pop() else {
        return Some(Moves { loops, one: Move::Linear { bytes: plan.run } });
    };
    let rows = pitch(inner, plan.run)?;
    let (planes, apart) = match loops.last().and_then(|&outer| apart(outer, rows)) {
        Some(planes) => {
            loops.pop();
            planes
        }
        None => (1, (rows.count, rows.count)),
    };
    Some(Moves { loops, one: Move::Planes { width: plan.run, rows, planes, apart } })
}

impl Moves {
    /// True if the driver is the fastest way, with at most `most` calls.
    pub(super) fn are_worth_it(&self, most: usize) -> bool {
        let calls = self.loops.iter().fold(1_usize, |calls, one| calls.saturating_mul(one.count));
        let (width, rows) = match self.one {
            Move::Linear { .. } => (SHORT_ROW, 1),
            Move::Planes { width, rows, planes, .. } => (width, rows.count.saturating_mul(planes)),
        };
        let few = rows.saturating_mul(calls) <= FEW_ROWS;
        (width >= SHORT_ROW || few) && calls <= most
    }
}

fn pitch(rows: Loop, width: usize) -> Option<Pitch> {
    let fits =
        |step: isize| usize::try_from(step).ok().filter(|step| (width..=MAX_PITCH).contains(step));
    Some(Pitch { count: rows.count, source: fits(rows.source)?, target: fits(rows.target)? })
}

/// Number of planes, and rows from one plane to the next. `None` unless these are whole numbers
/// on both sides and planes do not overlap.
fn apart(planes: Loop, rows: Pitch) -> Option<(usize, (usize, usize))> {
    let whole = |step: isize, pitch: usize| {
        let step = usize::try_from(step).ok()?;
        let apart = step.checked_div(pitch)?;
        (step % pitch == 0 && apart >= rows.count).then_some(apart)
    };
    let apart = (whole(planes.source, rows.source)?, whole(planes.target, rows.target)?);
    Some((planes.count, apart))
}

/// A launch of one of dlfield's kernels, inside loops on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Launch {
    pub(super) loops: Loops,
    pub(super) name: &'static CStr,
    /// Blocks, and threads of a block.
    pub(super) size: (u32, [u32; 2]),
    /// Arguments without addresses.
    pub(super) arguments: Arguments,
}

/// Copying and transposing kernels for words of 1, 2, 4, 8 and 16 bytes.
const KERNELS: [(&CStr, &CStr); 5] = [
    (c"dlfield_copy_1", c"dlfield_transpose_1"),
    (c"dlfield_copy_2", c"dlfield_transpose_2"),
    (c"dlfield_copy_4", c"dlfield_transpose_4"),
    (c"dlfield_copy_8", c"dlfield_transpose_8"),
    (c"dlfield_copy_16", c"dlfield_transpose_16"),
];

/// Words that a block transposes at once: in the order of the target, and in that of the source
/// (`struct Tile` in the CUDA code).
const fn tile(word: usize) -> [usize; 2] {
    if word < 4 { [128, 64] } else { [512 / word, 32] }
}

/// Extent below which a dimension is not tiled.
const SHORT: usize = 8;

/// True for rows that a kernel copies faster than the driver (docs/gpu.md): not byte by byte, nor so
/// many words that a kernel counts in 64 bits.
pub(super) fn suits_a_kernel(plan: &CopyPlan, addresses: [usize; 2]) -> bool {
    let word = word(plan, addresses);
    let count = |words: usize, one: &Loop| words.saturating_mul(one.count);
    word >= 4 && plan.loops.iter().fold(plan.run / word, count) < 1 << 31
}

/// Plans a launch for a copy between two addresses, of which only the alignment counts.
pub(super) fn launch(plan: &CopyPlan, addresses: [usize; 2]) -> Launch {
    let word = word(plan, addresses);
    let mut loops = plan.loops.clone();
    if plan.run > word {
        let step = isize::try_from(word).unwrap_or(1);
        loops.push(Loop { count: plan.run / word, source: step, target: step });
    }
    let tiled = tiled(&mut loops, word);
    let (loops, walks) = split(loops, if tiled { 2 } else { 0 });
    let mut arguments = Arguments { dims: number(walks.len()), ..Arguments::default() };
    for (slot, walk) in arguments.walks.iter_mut().zip(&walks) {
        *slot = Walk {
            count: number(walk.count),
            source: walk.source as i64,
            target: walk.target as i64,
        };
    }
    let (copy, transposition) =
        KERNELS.get(word.trailing_zeros() as usize).copied().unwrap_or(KERNELS[0]);
    let name = if tiled { transposition } else { copy };
    let size =
        if tiled { (tiles(&walks, word), [32, 8]) } else { (blocks(&walks, word), [256, 1]) };
    Launch { loops, name, size, arguments }
}

/// Widest word that divides every address, step and run.
fn word(plan: &CopyPlan, addresses: [usize; 2]) -> usize {
    let steps = plan.loops.iter().flat_map(|one| [one.source, one.target]).map(isize::unsigned_abs);
    let bits = steps.chain(addresses).fold(plan.run, |bits, one| bits | one);
    1 << bits.trailing_zeros().min(4)
}

/// Moves the loop that reads the source in order next to the last, which writes the target in
/// order. Returns false if there are no two such loops.
fn tiled(loops: &mut Loops, word: usize) -> bool {
    let step = isize::try_from(word).unwrap_or(0);
    let Some((last, others)) = loops.split_last() else {
        return false;
    };
    let in_order = |one: &Loop| one.source == step && one.count >= SHORT;
    let written = last.target == step && last.source != step && last.count >= SHORT;
    let Some(at) = others.iter().position(in_order).filter(|_| written) else {
        return false;
    };
    let (read, place) = (loops.remove(at), loops.len().saturating_sub(1));
    loops.insert(place, read);
    true
}

/// Divides loops between the host and a kernel. If there are more than a kernel can walk, the host
/// gets the shortest, but none of the last `kept`.
fn split(loops: Loops, kept: usize) -> (Loops, Loops) {
    let (mut host, mut walks) = (Loops::new(), loops);
    while walks.len() > MAX_WALKS {
        let choice =
            walks.iter().rev().skip(kept).rev().enumerate().min_by_key(|(_, one)| one.count);
        let Some((at, _)) = choice else { break };
        host.push(walks.remove(at));
    }
    (host, walks)
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Largest number of blocks of a launch. Blocks loop until all work is done.
const MAX_GRID: usize = (1 << 31) - 1;

fn grid(blocks: usize, most: usize) -> u32 {
    u32::try_from(blocks.clamp(1, most)).unwrap_or(1)
}

/// Number of blocks: one for each tile, which is faster than fewer that loop.
fn tiles(walks: &[Loop], word: usize) -> u32 {
    let sides = tile(word).into_iter().chain(iter::repeat(1));
    let counts = walks.iter().rev().zip(sides).map(|(walk, side)| walk.count.div_ceil(side));
    grid(counts.fold(1, usize::saturating_mul), MAX_GRID)
}

/// Number of blocks. Each thread copies several elements, more if they are narrow.
fn blocks(walks: &[Loop], word: usize) -> u32 {
    let at_once = 256 * (16 / word).clamp(1, 4);
    let elements = walks.iter().fold(1, |all: usize, walk| all.saturating_mul(walk.count));
    // 4096 blocks fill the largest devices several times.
    grid(elements.div_ceil(at_once), 4096)
}

#[cfg(test)]
mod tests {
    use super::super::plan::plan;
    use super::*;
    use crate::layout::Layout;

    fn layout(shape: &[i64], strides: &[i64]) -> Layout {
        Layout::new(shape.into(), strides.into(), 8).unwrap()
    }

    #[test]
    fn equal_layouts_are_one_linear_move() {
        let field = layout(&[3, 4, 5], &[20, 5, 1]);
        let moves = moves(&plan(&field, &field).unwrap()).unwrap();
        assert_eq!(moves.one, Move::Linear { bytes: 480 });
        assert!(moves.loops.is_empty());
    }

    #[test]
    fn padded_rows_are_rows_and_an_inner_block_is_planes() {
        let (dense, padded) = (layout(&[6, 5], &[5, 1]), layout(&[6, 5], &[8, 1]));
        let rows = Pitch { count: 6, source: 64, target: 40 };
        let moved = moves(&plan(&padded, &dense).unwrap()).unwrap();
        assert_eq!(moved.one, Move::Planes { width: 40, rows, planes: 1, apart: (6, 6) });
        let (block, dense) = (layout(&[2, 6, 5], &[80, 8, 1]), layout(&[2, 6, 5], &[30, 5, 1]));
        let moved = moves(&plan(&block, &dense).unwrap()).unwrap();
        assert_eq!(moved.one, Move::Planes { width: 40, rows, planes: 2, apart: (10, 6) });
    }

    #[test]
    fn planes_at_a_fractional_number_of_rows_are_loops_of_rows() {
        let (block, dense) = (layout(&[2, 6, 5], &[83, 8, 1]), layout(&[2, 6, 5], &[30, 5, 1]));
        let moved = moves(&plan(&block, &dense).unwrap()).unwrap();
        assert!(matches!(moved.one, Move::Planes { planes: 1, .. }));
        assert_eq!(moved.loops.len(), 1);
    }

    #[test]
    fn reversed_and_repeated_rows_are_not_moves_of_the_driver() {
        let dense = layout(&[6, 5], &[5, 1]);
        for strides in [[-5, 1], [0, 1], [5, -1]] {
            assert_eq!(
                moves(&plan(&layout(&[6, 5], &strides), &dense).unwrap()),
                None,
                "{strides:?}"
            );
        }
    }

    #[test]
    fn a_change_of_the_fastest_dimension_is_tiled_at_any_distance() {
        let (c, f) = (layout(&[64, 9, 33], &[297, 33, 1]), layout(&[64, 9, 33], &[1, 64, 576]));
        let launch = launch(&plan(&c, &f).unwrap(), [256, 512]);
        assert_eq!(launch.name, c"dlfield_transpose_8");
        assert_eq!(launch.arguments.dims, 3);
        let [outer, read, written, ..] = launch.arguments.walks;
        assert_eq!((outer.count, read.source, written.target), (9, 8, 8));
        assert_eq!(launch.size.0, 9 * 2, "a tile has 64 words of 8 bytes, and 32 rows");
    }

    #[test]
    fn the_word_divides_the_least_aligned_address() {
        let field = layout(&[6, 5], &[5, 1]);
        let reversed = layout(&[6, 5], &[-5, 1]);
        let plan = plan(&reversed, &field).unwrap();
        assert_eq!(launch(&plan, [256, 512]).name, c"dlfield_copy_8");
        assert_eq!(launch(&plan, [256, 516]).name, c"dlfield_copy_4");
        assert_eq!(launch(&plan, [257, 512]).name, c"dlfield_copy_1");
    }

    #[test]
    fn rows_of_bytes_and_very_many_words_are_left_to_the_driver() {
        let suits = |pitch: i64, item: usize, start: usize, rows: i64| {
            let shape = [rows, 480];
            let side = Layout::new(shape.as_slice().into(), [pitch, 1].as_slice().into(), item);
            let dense = Layout::compact(shape.as_slice().into(), item).unwrap();
            suits_a_kernel(&plan(&side.unwrap(), &dense).unwrap(), [start, 512])
        };
        assert!(suits(500, 8, 256, 1000));
        assert!(suits(500, 1, 256, 1000), "words of 4 bytes");
        assert!(!suits(501, 1, 256, 1000));
        assert!(!suits(500, 1, 257, 1000));
        assert!(!suits(500, 8, 256, 1 << 30));
    }

    #[test]
    fn the_host_runs_the_loops_beyond_a_kernel_s_maximum() {
        let shape = [2_i64; 10];
        let strides: Vec<i64> = (0..10).map(|axis| 3_i64.pow(axis)).collect();
        let apart = layout(&shape, &strides);
        let dense = Layout::compact(shape.as_slice().into(), 8).unwrap();
        let launch = launch(&plan(&apart, &dense).unwrap(), [0, 0]);
        assert_eq!(launch.loops.len() + usize::try_from(launch.arguments.dims).unwrap(), 10);
        assert_eq!(launch.arguments.walks.len(), MAX_WALKS);
    }
}

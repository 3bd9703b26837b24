//! Compares copies of every kind with a loop over the elements: all items arrive, and nothing else
//! is read or written.
#![cfg(unix)] // guard pages

mod guarded;
mod random;
mod case;

pub(in crate::copy) use case::{Case, Placed};

use std::iter;
use std::num::NonZero;

use super::copying::{BAND, PIECE, ROWS, RUNS, STRETCH, WIDE, WIDEST};
use super::kernels::Level;
use super::transpose::LINE;
use super::way::Way;
use crate::threads::set_num_threads;
pub(in crate::copy) use random::Random;
use random::{random_shape, random_strides};

pub(in crate::copy) const ITEMS: [usize; 5] = [1, 2, 4, 8, 16];

fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap()
}

// ── random layouts ──

pub(in crate::copy) fn random_case(random: &mut Random, item: usize) -> Case {
    let shape = random_shape(random);
    let mut from = random_strides(random, &shape, item);
    for stride in &mut from {
        if random.one_in(16) {
            *stride = 0; // repeats an element
        }
    }
    let to = random_strides(random, &shape, item);
    let target_shift = random.pick(&[0, 0, 0, item, LINE - item, 1, 7]);
    Case::new(item, &shape, &from, &to).shifted(random.pick(&[0, 0, 1, 5]), target_shift)
}

#[test]
fn every_layout_arrives_in_every_other() {
    let mut random = Random(20_260_701);
    for item in ITEMS {
        for _ in 0..100 {
            random_case(&mut random, item).check();
        }
    }
}

// ── planes ──

/// Two planes, contiguous along the last dimension in the source and along the second in the
/// target, with `pitch` items from one row of the target to the next.
fn planes(item: usize, written: usize, read: usize, pitch: usize) -> Case {
    let (written, read, pitch) = (signed(written), signed(read), signed(pitch));
    let case =
        Case::new(item, &[2, written, read], &[written * read, read, 1], &[read * pitch, 1, pitch]);
    assert!(written == 1 || read == 1 || matches!(case.way(), Way::Planes(_)), "{case:?}");
    case
}

/// Extents around the sides of squares.
const SHORT: [usize; 9] = [1, 2, 3, 5, 8, 15, 16, 17, 33];

/// Extents of both sides: all pairs of short ones, and one side around whole bands and stretches.
fn pairs(item: usize) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for one in SHORT {
        pairs.extend(SHORT.map(|other| (one, other)));
    }
    for block in [BAND / item, WIDE / item, STRETCH / item] {
        for one in [block - 1, block, block + 1, 2 * block + 3] {
            pairs.extend([(3, one), (one, 3), (19, one), (one, 19)]);
        }
    }
    pairs.extend([(BAND / item + 5, STRETCH / item + 5)]);
    pairs
}

#[test]
fn planes_of_all_extents_arrive_if_every_row_starts_a_line() {
    for item in ITEMS {
        for (written, read) in pairs(item) {
            planes(item, written, read, written.next_multiple_of(LINE / item)).check();
        }
    }
}

#[test]
fn planes_of_all_extents_arrive_if_rows_start_anywhere() {
    for item in ITEMS {
        for (written, read) in pairs(item) {
            planes(item, written, read, written + 3).shifted(1, item).check();
        }
    }
}

#[test]
fn rows_of_several_bands_arrive_from_any_place_in_a_line() {
    for item in ITEMS {
        let band = WIDEST / item;
        for written in [band - 1, band + 1, 2 * band + 5] {
            for shift in [0, 1, LINE - 1] {
                planes(item, written, 3, written + 1).shifted(0, shift * item).check();
            }
        }
    }
}

#[test]
fn more_rows_than_fit_into_a_buffer_arrive() {
    for item in ITEMS {
        let (line, rows) = (LINE / item, ROWS.min(STRETCH / item));
        for read in [rows - 1, rows + 1, 3 * rows + 2] {
            planes(item, 4 * line + 1, read, 5 * line).check();
            planes(item, 4 * line + 1, read, 4 * line + 1).shifted(0, item).check();
        }
    }
}

#[test]
fn planes_that_share_a_buffer_arrive_with_each_row_in_its_place() {
    for item in ITEMS {
        let lines = [4 * LINE / item + 3, 5 * LINE / item].map(signed);
        let written = lines[0];
        for (count, read) in [(2, 17), (7, 16), (33, 5), (70, 3)] {
            let from = [read * written, read, 1];
            for row in lines {
                let by_plane = [row * read, 1, row];
                let by_row = [row, 1, row * count];
                for to in [by_plane, by_row, [row * read + 1, 1, row]] {
                    Case::new(item, &[count, written, read], &from, &to).check();
                }
            }
        }
    }
}

#[test]
fn planes_of_unaligned_items_arrive() {
    for item in ITEMS {
        let rows = 200_usize.next_multiple_of(LINE / item);
        planes(item, 200, 37, rows).shifted(3, 1).check();
    }
}

#[test]
fn planes_arrive_if_only_the_first_row_starts_a_line() {
    for item in ITEMS {
        planes(item, 3 * BAND / item, 40, 3 * BAND / item + 1).check();
    }
}

#[test]
fn planes_arrive_if_only_the_first_plane_starts_a_line() {
    for item in ITEMS {
        let pitch = signed(96_usize.next_multiple_of(LINE / item));
        Case::new(item, &[3, 96, 40], &[96 * 40, 40, 1], &[40 * pitch + 1, 1, pitch]).check();
    }
}

#[test]
fn planes_with_reversed_rows_on_either_side_arrive() {
    for item in ITEMS {
        let pitch = signed(96_usize.next_multiple_of(LINE / item));
        let compact = [96 * 40, 40, 1];
        for to in [[40 * pitch, 1, -pitch], [-40 * pitch, 1, pitch]] {
            Case::new(item, &[3, 96, 40], &compact, &to).check();
        }
        for from in [[96 * 40, -40, 1], [-96 * 40, 40, 1]] {
            Case::new(item, &[3, 96, 40], &from, &[40 * pitch, 1, pitch]).check();
        }
    }
}

#[test]
fn a_repeated_row_arrives_everywhere() {
    for item in ITEMS {
        let pitch = signed(70_usize.next_multiple_of(LINE / item));
        Case::new(item, &[3, 70, 45], &[45, 0, 1], &[45 * pitch, 1, pitch]).check();
        Case::new(item, &[3, 70, 45], &[0, 45, 1], &[45 * pitch, 1, pitch]).check();
    }
}

#[test]
fn pairs_of_adjacent_items_are_transposed_as_one() {
    for item in [1, 2, 4, 8] {
        let case = Case::new(item, &[50, 70, 2], &[140, 2, 1], &[2, 100, 1]);
        assert!(matches!(case.way(), Way::Planes(planes) if planes.item == 2 * item));
        case.check();
    }
}

// ── runs ──

#[test]
fn a_run_of_any_length_arrives_at_any_offset_in_a_line() {
    let mut random = Random(7);
    for bytes in (1..=260).chain([511, 512, 513, 1000]) {
        let to = random.below(LINE);
        Case::new(1, &[bytes], &[1], &[1]).shifted(random.below(9), to).check();
        Case::new(1, &[bytes], &[1], &[1]).check();
    }
}

#[test]
fn a_run_of_several_pieces_arrives_whole() {
    for bytes in [PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 77] {
        let run = Case::new(1, &[signed(bytes)], &[1], &[1]);
        for case in [run.clone(), run.clone().shifted(1, 0), run.shifted(0, 33)] {
            case.check();
        }
    }
}

#[test]
fn padded_rows_of_any_length_arrive_and_padding_is_untouched() {
    for bytes in [3, 24, 31, 40, 64, 250, 255, 256, 257, 320, 1000] {
        for rows in [1, 2, signed(RUNS) - 1, signed(RUNS), signed(RUNS) + 1] {
            for (from, to) in [(0, 0), (0, 5), (9, 64), (64, 0)] {
                let case = Case::new(1, &[rows, bytes], &[bytes + from, 1], &[bytes + to, 1]);
                case.shifted(0, 11).check();
            }
        }
    }
}

#[test]
fn items_apart_on_both_sides_arrive_and_gaps_are_untouched() {
    for item in ITEMS {
        Case::new(item, &[3, 130], &[400, 3], &[270, 2]).shifted(1, 1).check();
        Case::new(item, &[130, 3], &[3, 500], &[2, 270]).check();
    }
}

#[test]
fn items_that_do_not_divide_a_register_arrive() {
    for item in [3, 24, 40, 250] {
        Case::new(item, &[9, 30, 11], &[330, 11, 1], &[1, 9, 270]).check();
    }
}

// ── shapes ──

#[test]
fn the_interior_of_a_field_arrives_and_its_halo_is_untouched() {
    for item in ITEMS {
        let to_pitch = signed(46_usize.next_multiple_of(LINE / item));
        for shift in [0, 3 * item] {
            let rows =
                Case::new(item, &[10, 12, 40], &[46 * 20, 46, 1], &[18 * to_pitch, to_pitch, 1]);
            rows.shifted(0, shift).check();
            let planes =
                Case::new(item, &[40, 12, 33], &[39 * 18, 39, 1], &[1, to_pitch, 18 * to_pitch]);
            planes.shifted(0, shift).check();
        }
    }
}

#[test]
fn without_elements_nothing_is_written() {
    for shape in [[0, 20, 30], [20, 0, 30], [20, 30, 0], [0, 0, 0]] {
        for to in [[600, 30, 1], [1, 20, 600], [30, 1, 600]] {
            Case::new(8, &shape, &[600, 30, 1], &to).check();
        }
    }
}

#[test]
fn the_stride_of_a_dimension_of_extent_1_does_not_matter() {
    for item in ITEMS {
        Case::new(item, &[1, 20, 1, 70], &[-99, 70, 1 << 40, 1], &[1, 1, 1, 20]).check();
    }
}

#[test]
fn a_single_element_arrives() {
    for item in ITEMS {
        Case::new(item, &[], &[], &[]).shifted(1, 1).check();
    }
}

#[test]
fn a_line_that_is_reversed_on_either_side_arrives() {
    for item in ITEMS {
        for (from, to) in [(-1, 1), (1, -1), (-1, -1), (-2, 3), (0, 1)] {
            Case::new(item, &[555], &[from], &[to]).check();
        }
    }
}

// ── threads ──

/// Bytes that justify three threads.
const LARGE: i64 = 7 << 20;

fn check_with_three_threads(case: &Case) {
    set_num_threads(NonZero::new(3).unwrap());
    case.check_levels(iter::once(Level::best()));
}

#[test]
fn three_threads_copy_one_run() {
    check_with_three_threads(&Case::new(16, &[LARGE / 16 - 3], &[1], &[1]).shifted(0, 5));
}

#[test]
fn three_threads_copy_rows() {
    check_with_three_threads(&Case::new(16, &[LARGE / 16 / 50, 50], &[57, 1], &[52, 1]));
}

#[test]
fn three_threads_copy_bands_of_planes() {
    check_with_three_threads(&planes(16, 404, 550, 404));
}

#[test]
fn three_threads_copy_rows_of_planes() {
    check_with_three_threads(&planes(16, 405, 550, 405));
}

#[test]
fn more_threads_than_tasks_copy_all() {
    set_num_threads(NonZero::new(64).unwrap());
    planes(16, 4, 60_000, 4).check_levels(iter::once(Level::best()));
}

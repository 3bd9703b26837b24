//! Whether a copy goes past the caches: learnt from the copies that were made before. Neither how
//! large the last cache is nor how fast the two ways are is known beforehand: on a virtual machine
//! that cache is shared by others.
#![forbid(unsafe_code)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::past_caches::last_cache;
use super::way::Way;

/// Environment variable that fixes the choice: "past" or "through", or "learn".
pub(crate) const VARIABLE: &str = "DLFIELD_COPIES";

/// Copies of fewer bytes go through the caches.
const SMALLEST: usize = 2 << 20;

/// Sizes are told apart by their octave, from [`SMALLEST`] on; the last one has all larger copies.
const OCTAVES: usize = 12;

/// Number of copies by each way whose times are kept. The shortest counts: others may have been
/// held up by what else ran.
const RECENT: usize = 3;

/// The slower way is tried again from time to time, as often as this, in copies: what else runs on
/// the machine changes.
const AGAIN: u32 = 1021;

/// Kinds of copies, which are learnt separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Whole,
    Rows,
    Planes,
}

const KINDS: [Kind; 3] = [Kind::Whole, Kind::Rows, Kind::Planes];

impl Kind {
    fn of(way: &Way) -> Self {
        match way {
            Way::Runs { loops, .. } if loops.is_empty() => Self::Whole,
            Way::Runs { .. } => Self::Rows,
            Way::Planes(_) => Self::Planes,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Rows => "rows",
            Self::Planes => "planes",
        }
    }

    /// The way before anything is known: past the caches if the target would not stay in the last
    /// one, beside its source, for its next reader.
    fn usually_past(self, bytes: usize) -> bool {
        let half = (last_cache() / 2).max(SMALLEST);
        bytes >= if self == Self::Planes { half.min(16 << 20) } else { half }
    }
}

/// Times of the copies of one kind and octave. Threads write them without waiting for each other: a
/// lost time is not missed.
struct Lesson {
    copies: AtomicU32,
    /// Number of times by each way: through the caches, and past them.
    known: [AtomicU32; 2],
    /// Their last times, in femtoseconds for each byte.
    times: [[AtomicU32; RECENT]; 2],
}

static LESSONS: [[Lesson; OCTAVES]; KINDS.len()] =
    [const { [const { Lesson::new() }; OCTAVES] }; KINDS.len()];

impl Lesson {
    const fn new() -> Self {
        Self {
            copies: AtomicU32::new(0),
            known: [const { AtomicU32::new(0) }; 2],
            times: [const { [const { AtomicU32::new(0) }; RECENT] }; 2],
        }
    }

    /// The shortest of the last times by a way.
    fn time(&self, past: bool) -> Option<u32> {
        let way = usize::from(past);
        let known = self.known[way].load(Ordering::Relaxed) as usize;
        let times = self.times[way].iter().take(known);
        times.map(|time| time.load(Ordering::Relaxed)).min()
    }

    /// The faster way, as far as it is known.
    fn prefers_past(&self, usually: bool) -> bool {
        match (self.time(false), self.time(true)) {
            (Some(through), Some(past)) => past < through,
            _ => usually,
        }
    }

    /// The way of the copy with this number.
    fn way(&self, number: u32, usually: bool) -> bool {
        // Each way three times; a program that alternates between two copies tries both with each.
        const FIRST: [bool; 2 * RECENT] = [true, false, false, true, true, false];
        match FIRST.get(number as usize) {
            Some(first) => usually == *first,
            None => {
                let again = number.is_power_of_two() || number.is_multiple_of(AGAIN);
                self.prefers_past(usually) != again
            }
        }
    }

    fn note(&self, past: bool, time: Duration, bytes: usize) {
        let femtoseconds = time.as_nanos() * 1_000_000 / bytes.max(1) as u128;
        let way = usize::from(past);
        let at = self.known[way].fetch_add(1, Ordering::Relaxed) as usize % RECENT;
        let time = u32::try_from(femtoseconds).unwrap_or(u32::MAX);
        self.times[way][at].store(time, Ordering::Relaxed);
    }
}

fn octave(bytes: usize) -> usize {
    ((bytes / SMALLEST).max(1).ilog2() as usize).min(OCTAVES - 1)
}

/// A copy that is timed.
pub(super) struct Timed {
    lesson: &'static Lesson,
    pub(super) past_caches: bool,
    bytes: usize,
    start: Instant,
}

impl Timed {
    /// Chooses the way of a copy that begins now; `None` if it goes without asking.
    pub(super) fn begin(bytes: usize, way: &Way) -> Option<Self> {
        if bytes < SMALLEST || fixed().is_some() {
            return None;
        }
        let kind = Kind::of(way);
        let lesson = &LESSONS[kind as usize][octave(bytes)];
        let number = lesson.copies.fetch_add(1, Ordering::Relaxed);
        let past_caches = lesson.way(number, kind.usually_past(bytes));
        Some(Self { lesson, past_caches, bytes, start: Instant::now() })
    }

    /// Notes how long it took.
    pub(super) fn end(self) {
        self.lesson.note(self.past_caches, self.start.elapsed(), self.bytes);
    }
}

/// True if copies of this size and kind go past the caches as far as is known.
pub(super) fn goes_past(bytes: usize, way: &Way) -> bool {
    let kind = Kind::of(way);
    let known = || LESSONS[kind as usize][octave(bytes)].prefers_past(kind.usually_past(bytes));
    bytes >= SMALLEST && fixed().unwrap_or_else(known)
}

/// The choice of the environment: true for "past", false for "through".
pub(crate) fn fixed() -> Option<bool> {
    static CHOSEN: OnceLock<Option<bool>> = OnceLock::new();
    let chosen = || std::env::var(VARIABLE).ok().and_then(|text| read(&text)).flatten();
    *CHOSEN.get_or_init(chosen)
}

/// Parses the variable: `Some(None)` is to learn.
pub(crate) fn read(text: &str) -> Option<Option<bool>> {
    match text.trim().to_ascii_lowercase().as_str() {
        "learn" => Some(None),
        "past" => Some(Some(true)),
        "through" => Some(Some(false)),
        _ => None,
    }
}

/// Results of the copies of one kind and octave.
pub(crate) struct Learnt {
    /// "whole" for one run of bytes, "rows", or "planes" that are transposed.
    pub(crate) kind: &'static str,
    /// The smallest copies of the octave.
    pub(crate) bytes: usize,
    pub(crate) copies: u32,
    /// Bytes copied in a second, through the caches and past them.
    pub(crate) speeds: [Option<f64>; 2],
    pub(crate) past_caches: bool,
}

/// All that is known.
pub(crate) fn learnt() -> Vec<Learnt> {
    let mut found = Vec::new();
    for (kind, lessons) in KINDS.iter().zip(&LESSONS) {
        for (octave, lesson) in lessons.iter().enumerate() {
            let copies = lesson.copies.load(Ordering::Relaxed);
            if copies > 0 {
                let bytes = SMALLEST << octave;
                let speed = |past| lesson.time(past).map(|time| 1e15 / f64::from(time.max(1)));
                let speeds = [speed(false), speed(true)];
                let past_caches = lesson.prefers_past(kind.usually_past(bytes));
                found.push(Learnt { kind: kind.name(), bytes, copies, speeds, past_caches });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ways of a number of copies that take so many microseconds through the caches and past them.
    fn ways(lesson: &Lesson, copies: u32, through: u64, past: u64, usually: bool) -> Vec<bool> {
        let begin = lesson.copies.fetch_add(copies, Ordering::Relaxed);
        let way = |number| {
            let way = lesson.way(number, usually);
            let time = if way { past } else { through };
            lesson.note(way, Duration::from_micros(time), 1 << 22);
            way
        };
        (begin..begin + copies).map(way).collect()
    }

    #[test]
    fn each_way_is_tried_three_times_and_then_the_faster_one_is_taken() {
        for usually in [false, true] {
            let lesson = Lesson::new();
            let first = ways(&lesson, 6, 900, 400, usually);
            assert_eq!(first.iter().filter(|past| **past).count(), 3);
            assert_eq!(first[0], usually);
            assert!(ways(&lesson, 2, 900, 400, usually).iter().all(|past| *past));
        }
    }

    #[test]
    fn two_copies_by_turns_are_each_tried_both_ways() {
        let first = ways(&Lesson::new(), 6, 500, 500, true);
        for offset in 0..2 {
            let ways: Vec<bool> = first.iter().copied().skip(offset).step_by(2).collect();
            assert!(ways.contains(&true) && ways.contains(&false), "{ways:?}");
        }
    }

    #[test]
    fn a_choice_that_others_have_spoilt_is_made_anew() {
        let lesson = Lesson::new();
        ways(&lesson, 6, 100, 4000, true); // another program was at work
        let later = ways(&lesson, 2000, 900, 400, true);
        assert!(later.iter().rev().take(900).filter(|past| !**past).count() <= 1);
    }

    #[test]
    fn the_slower_way_is_hardly_ever_taken_later() {
        let lesson = Lesson::new();
        let all = ways(&lesson, 10_000, 900, 400, false);
        assert!(all.iter().filter(|past| !**past).count() < 30);
    }

    #[test]
    fn sizes_have_an_octave_each() {
        assert_eq!((octave(1), octave(2 << 20), octave((4 << 20) - 1)), (0, 0, 0));
        assert_eq!((octave(4 << 20), octave(usize::MAX)), (1, OCTAVES - 1));
    }

    #[test]
    fn the_environment_may_fix_the_way() {
        assert_eq!((read("past"), read(" Through ")), (Some(Some(true)), Some(Some(false))));
        assert_eq!((read("learn"), read("480 MB")), (Some(None), None));
    }
}

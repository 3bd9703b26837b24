//! Whether a copy goes past the caches: learnt from the copies that were made before. Neither how
//! large the last cache is nor how fast the two ways are is known beforehand: on a virtual machine
//! that cache is shared by others.
#![forbid(unsafe_code)]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::past_caches::last_cache;
use super::way::Way;
use crate::threads::num_threads;

/// Environment variable that fixes the choice: "past" or "through", or "learn".
pub(crate) const VARIABLE: &str = "DLFIELD_COPIES";

/// Copies of fewer bytes go through the caches.
const SMALLEST: usize = 2 << 20;

/// Number of pairs of layouts of which something is known, in sets: a pair may stand anywhere in the
/// set that its number chooses, and a new one displaces that of the fewest copies.
const SETS: usize = 64;
const IN_SET: usize = 4;

/// Number of copies by each way whose times are kept. The shortest counts: others may have been
/// held up by what else ran.
const RECENT: usize = 3;

/// The slower way is tried again from time to time, as often as this, in copies: what else runs on
/// the machine changes.
const AGAIN: u32 = 1021;

/// Kinds of copies.
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

/// A copy between two layouts, of which something may be known. Copies of one kind and size are told
/// apart: rows of one target start lines, those of another share lines with their neighbours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    kind: Kind,
    bytes: usize,
    /// A hash of both layouts and the number of threads, which is not 0. Small copies need none.
    pair: u64,
}

impl Asked {
    /// A copy of `bytes` bytes, whose target begins `in_line` bytes after the start of a line.
    pub(super) fn of(way: &Way, bytes: usize, in_line: usize) -> Self {
        let hash = || {
            let mut hasher = DefaultHasher::new();
            (way, in_line, num_threads()).hash(&mut hasher);
            hasher.finish().max(1)
        };
        Self { kind: Kind::of(way), bytes, pair: if bytes < SMALLEST { 0 } else { hash() } }
    }

    fn usually_past(self) -> bool {
        self.kind.usually_past(self.bytes)
    }

    /// The set where its lesson stands.
    fn set(self) -> &'static Set {
        let [low, ..] = self.pair.to_le_bytes();
        &LESSONS[usize::from(low) % SETS]
    }

    fn find(self, set: &Set) -> Option<&Lesson> {
        set.iter().find(|one| one.pair.load(Ordering::Relaxed) == self.pair)
    }

    /// Its lesson, which is begun if there is none.
    fn find_or_begin(self, set: &Set) -> &Lesson {
        self.find(set).unwrap_or_else(|| {
            let fewest = set.iter().min_by_key(|one| one.copies.load(Ordering::Relaxed));
            let lesson = fewest.unwrap_or(&set[0]);
            lesson.begin(self);
            lesson
        })
    }
}

/// Times of the copies between two layouts. Threads write them without waiting for each other: a lost
/// time is not missed, and what a displaced pair leaves behind is soon forgotten.
struct Lesson {
    /// The pair of layouts; 0 if there is none.
    pair: AtomicU64,
    kind: AtomicUsize,
    bytes: AtomicUsize,
    copies: AtomicU32,
    /// Number of times by each way: through the caches, and past them.
    known: [AtomicU32; 2],
    /// Their last times, in femtoseconds for each byte.
    times: [[AtomicU32; RECENT]; 2],
}

type Set = [Lesson; IN_SET];

static LESSONS: [Set; SETS] = [const { [const { Lesson::new() }; IN_SET] }; SETS];

impl Lesson {
    const fn new() -> Self {
        Self {
            pair: AtomicU64::new(0),
            kind: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            copies: AtomicU32::new(0),
            known: [const { AtomicU32::new(0) }; 2],
            times: [const { [const { AtomicU32::new(0) }; RECENT] }; 2],
        }
    }

    /// Forgets everything, for another pair.
    fn begin(&self, asked: Asked) {
        for count in self.known.iter().chain([&self.copies]) {
            count.store(0, Ordering::Relaxed);
        }
        self.kind.store(asked.kind as usize, Ordering::Relaxed);
        self.bytes.store(asked.bytes, Ordering::Relaxed);
        self.pair.store(asked.pair, Ordering::Relaxed);
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
        // Each way three times; the second time in a row finds the caches as that way leaves them.
        const FIRST: [bool; 2 * RECENT] = [true, false, false, true, true, false];
        match FIRST.get(number as usize) {
            Some(first) => usually == *first,
            None => {
                let again = number.is_power_of_two() || number.is_multiple_of(AGAIN);
                self.prefers_past(usually) != again
            }
        }
    }

    fn learnt(&self) -> Option<Learnt> {
        let copies = self.copies.load(Ordering::Relaxed);
        let kind = *KINDS.get(self.kind.load(Ordering::Relaxed)).filter(|_| copies > 0)?;
        let bytes = self.bytes.load(Ordering::Relaxed);
        let speed = |past| self.time(past).map(|time| 1e15 / f64::from(time.max(1)));
        let speeds = [speed(false), speed(true)];
        let past_caches = self.prefers_past(kind.usually_past(bytes));
        Some(Learnt { kind: kind.name(), bytes, copies, speeds, past_caches })
    }

    fn note(&self, past: bool, time: Duration, bytes: usize) {
        let femtoseconds = time.as_nanos() * 1_000_000 / bytes.max(1) as u128;
        let way = usize::from(past);
        let at = self.known[way].fetch_add(1, Ordering::Relaxed) as usize % RECENT;
        let time = u32::try_from(femtoseconds).unwrap_or(u32::MAX);
        self.times[way][at].store(time, Ordering::Relaxed);
    }
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
    pub(super) fn begin(asked: Asked) -> Option<Self> {
        if asked.bytes < SMALLEST || fixed().is_some() {
            return None;
        }
        let lesson = asked.find_or_begin(asked.set());
        let number = lesson.copies.fetch_add(1, Ordering::Relaxed);
        let past_caches = lesson.way(number, asked.usually_past());
        Some(Self { lesson, past_caches, bytes: asked.bytes, start: Instant::now() })
    }

    /// Notes how long it took.
    pub(super) fn end(self) {
        self.lesson.note(self.past_caches, self.start.elapsed(), self.bytes);
    }
}

/// True if such copies go past the caches as far as is known.
pub(super) fn goes_past(asked: Asked) -> bool {
    let known = || {
        let usually = asked.usually_past();
        asked.find(asked.set()).map_or(usually, |lesson| lesson.prefers_past(usually))
    };
    asked.bytes >= SMALLEST && fixed().unwrap_or_else(known)
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

/// Results of the copies between two layouts.
pub(crate) struct Learnt {
    /// "whole" for one run of bytes, "rows", or "planes" that are transposed.
    pub(crate) kind: &'static str,
    /// Size of each copy.
    pub(crate) bytes: usize,
    pub(crate) copies: u32,
    /// Bytes copied in a second, through the caches and past them.
    pub(crate) speeds: [Option<f64>; 2],
    pub(crate) past_caches: bool,
}

/// All that is known, the smallest copies first.
pub(crate) fn learnt() -> Vec<Learnt> {
    let mut found: Vec<_> = LESSONS.iter().flatten().filter_map(Lesson::learnt).collect();
    found.sort_by_key(|one| one.bytes);
    found
}

#[cfg(test)]
mod tests {
    use super::super::super::plan::Loop;
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

    fn rows(run: usize, in_line: usize) -> Asked {
        let rows = Loop { count: 1 << 20, source: run.cast_signed(), target: 999 };
        let way = Way::Runs { loops: [rows].into_iter().collect(), run };
        Asked::of(&way, run << 20, in_line)
    }

    #[test]
    fn each_pair_of_layouts_has_a_lesson_of_its_own() {
        let set = [const { Lesson::new() }; IN_SET];
        let all = [rows(64, 0), rows(32, 0), rows(64, 8)];
        let lessons = all.map(|one| {
            let lesson = one.find_or_begin(&set);
            lesson.copies.fetch_add(1, Ordering::Relaxed);
            std::ptr::from_ref(lesson)
        });
        assert!(lessons[0] != lessons[1] && lessons[1] != lessons[2] && lessons[0] != lessons[2]);
        assert_eq!(all.map(|one| one.find(&set).map(std::ptr::from_ref)), lessons.map(Some));
    }

    #[test]
    fn a_new_pair_displaces_that_of_the_fewest_copies() {
        let set = [const { Lesson::new() }; IN_SET];
        let all = [11, 12, 13, 14, 15].map(|run| rows(run, 0));
        for (asked, copies) in all.iter().zip([9, 9, 2, 9, 0]) {
            let lesson = asked.find_or_begin(&set);
            assert!(lesson.learnt().is_none(), "nothing is known yet");
            lesson.copies.store(copies, Ordering::Relaxed);
        }
        let kept = all.map(|one| one.find(&set).is_some());
        assert_eq!(kept, [true, true, false, true, true]);
    }

    #[test]
    fn the_environment_may_fix_the_way() {
        assert_eq!((read("past"), read(" Through ")), (Some(Some(true)), Some(Some(false))));
        assert_eq!((read("learn"), read("480 MB")), (Some(None), None));
    }
}

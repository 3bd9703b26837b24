//! A copy between two layouts, and its result by a loop over the elements.

use super::super::super::plan::plan;
use super::super::copying::{Copying, Prepared};
use super::super::kernels::Level;
use super::super::transpose::LINE;
use super::super::way::{Way, way};
use super::guarded::{Against, Guarded};
use super::random::Random;
use crate::layout::Layout;
use crate::threads::share;

/// Bytes around the target that must not change.
const MARGIN: usize = 4 * LINE;

/// Shape and strides (in items) of a copy, and the offsets in bytes of its sides: of the source
/// from a guard page, of the target from the start of a line.
#[derive(Debug, Clone)]
pub(in crate::copy) struct Case {
    item: usize,
    shape: Vec<i64>,
    from: Vec<i64>,
    to: Vec<i64>,
    source_shift: usize,
    target_shift: usize,
}

/// Bytes of both sides before a copy, those of the target after it, and offsets of first elements.
struct Bytes {
    source: Vec<u8>,
    source_first: usize,
    target: Vec<u8>,
    target_first: usize,
    expected: Vec<u8>,
}

/// A case in guarded memory.
pub(in crate::copy) struct Placed {
    case: Case,
    bytes: Bytes,
    source: Guarded,
    target: Guarded,
}

impl Placed {
    pub(in crate::copy) fn new(case: Case) -> Self {
        let bytes = case.bytes();
        let source = Guarded::new(&bytes.source, Against::Back);
        let target = Guarded::new(&bytes.target, Against::Front);
        Self { case, bytes, source, target }
    }

    /// The copy; `None` without elements.
    pub(in crate::copy) fn prepared(&self) -> Option<Prepared> {
        let source = self.source.at(self.bytes.source_first);
        let target = self.target.at(self.bytes.target_first);
        let (bytes, level) = (self.case.size(), Level::best());
        let copying = Copying { source, target, bytes, level };
        (bytes > 0).then(|| copying.prepare(self.case.way(), false))
    }

    /// Checks that the elements were copied, and nothing else was written.
    pub(in crate::copy) fn check(&self) {
        let wrong = first_difference(self.target.bytes(), &self.bytes.expected);
        assert_eq!(wrong, None, "{:?}", self.case);
    }
}

impl Case {
    pub(in crate::copy) fn new(item: usize, shape: &[i64], from: &[i64], to: &[i64]) -> Self {
        let (shape, from, to) = (shape.to_vec(), from.to_vec(), to.to_vec());
        Self { item, shape, from, to, source_shift: 0, target_shift: 0 }
    }

    pub(super) fn shifted(self, source_shift: usize, target_shift: usize) -> Self {
        Self { source_shift, target_shift, ..self }
    }

    fn layout(&self, strides: &[i64]) -> Layout {
        Layout::new(self.shape[..].into(), strides.into(), self.item).unwrap()
    }

    pub(super) fn way(&self) -> Way {
        way(plan(&self.layout(&self.from), &self.layout(&self.to)).unwrap())
    }

    /// Copies with every kind of register of this processor, through the caches and past them, and
    /// compares each byte of the target's memory.
    pub(super) fn check(&self) {
        self.check_levels(Level::all());
    }

    pub(super) fn check_levels(&self, levels: impl Iterator<Item = Level>) {
        let bytes = self.bytes();
        let sources = [Against::Front, Against::Back].map(|end| Guarded::new(&bytes.source, end));
        let mut target = Guarded::new(&bytes.target, Against::Front);
        for level in levels {
            for (source, past_caches) in sources.iter().flat_map(|one| [(one, false), (one, true)])
            {
                target.bytes_mut().copy_from_slice(&bytes.target);
                let source = source.at(bytes.source_first);
                self.copy(level, past_caches, source, target.at(bytes.target_first));
                let wrong = first_difference(target.bytes(), &bytes.expected);
                assert_eq!(wrong, None, "{level:?}, past the caches: {past_caches}, {self:?}");
            }
        }
    }

    /// Copies from the first element `source` to the first element `target`.
    fn copy(&self, level: Level, past_caches: bool, source: *const u8, target: *mut u8) {
        let copying = Copying { source, target, bytes: self.size(), level };
        let prepared = copying.prepare(self.way(), past_caches);
        share(prepared.count(), self.size(), |tasks| {
            // SAFETY: both have the elements of their layout (bytes), and only this test accesses
            // them; `share` gives each task to one thread.
            unsafe { prepared.carry_out(tasks) };
        });
    }

    fn size(&self) -> usize {
        let items = usize::try_from(self.shape.iter().product::<i64>()).unwrap();
        items * self.item
    }

    fn bytes(&self) -> Bytes {
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let [source, target] = [&self.from, &self.to].map(|strides| self.layout(strides).span());
        let source_first = self.source_shift + source.low.unsigned_abs();
        let before_target = (MARGIN + target.low.unsigned_abs()).next_multiple_of(LINE);
        let target_first = before_target + self.target_shift;
        let source = random.bytes(source.len() + 2 * self.source_shift);
        let target = random.bytes(target_first + target.high.unsigned_abs() + MARGIN);
        let expected = target.clone();
        let mut bytes = Bytes { source, source_first, target, target_first, expected };
        self.one_by_one(0, source_first, target_first, &mut bytes);
        bytes
    }

    /// Copies by definition, from dimension `axis` on.
    fn one_by_one(&self, axis: usize, mut from: usize, mut to: usize, bytes: &mut Bytes) {
        if axis == self.shape.len() {
            let item = &bytes.source[from..from + self.item];
            bytes.expected[to..to + self.item].copy_from_slice(item);
            return;
        }
        let [source_step, target_step] =
            [self.from[axis], self.to[axis]].map(|stride| self.step(stride));
        for _ in 0..self.shape[axis] {
            self.one_by_one(axis + 1, from, to, bytes);
            from = from.wrapping_add_signed(source_step);
            to = to.wrapping_add_signed(target_step);
        }
    }

    fn step(&self, stride: i64) -> isize {
        isize::try_from(stride).unwrap() * self.item.cast_signed()
    }
}

/// Position of the first difference, with the actual and the expected byte.
fn first_difference(found: &[u8], expected: &[u8]) -> Option<(usize, u8, u8)> {
    if found == expected {
        return None;
    }
    let at = found.iter().zip(expected).position(|(one, other)| one != other).unwrap();
    Some((at, found[at], expected[at]))
}

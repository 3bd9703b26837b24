//! Copies and fills, element by element. Names and arithmetic follow `src/copy/kernels/layout.cu`,
//! for reading both side by side.

use crate::words::{Arguments, Run, Walk, Word, times};

pub(crate) const BLOCK: [u32; 3] = [256, 1, 1];
const THREADS: u64 = 256;

/// Origin of words: a copy reads them from the source, a fill from its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    Source,
    Value,
}

/// A walk, divided over the threads of a block.
#[derive(Clone, Copy, Debug)]
enum Loop {
    Narrow { walk: Walk, reciprocal: u64, shift: u32 },
    Wide(Walk),
}

impl Loop {
    fn narrow(walk: Walk) -> Self {
        let bits = 64 - (walk.count - 1).leading_zeros();
        let reciprocal = (1_u64 << (31 + bits)).div_ceil(walk.count);
        // Neither is used if the count is 1.
        Self::Narrow { walk, reciprocal, shift: bits.wrapping_sub(1) }
    }

    fn walk(self) -> Walk {
        let (Self::Narrow { walk, .. } | Self::Wide(walk)) = self;
        walk
    }

    fn quotient(self, number: u64) -> u64 {
        match self {
            Self::Narrow { reciprocal, shift, .. } => ((number * reciprocal) >> 32) >> shift,
            Self::Wide(walk) => number / walk.count,
        }
    }
}

/// Method of finding an element.
#[derive(Debug)]
struct Loops {
    loops: Vec<Loop>,
    /// Number of elements per thread at a time.
    some: u64,
}

impl Loops {
    fn new(arguments: &Arguments, word: u64) -> Self {
        if is_narrow(arguments, word) {
            let loops = arguments.walks.iter().copied().map(Loop::narrow).collect();
            return Self { loops, some: (16 / word).clamp(1, 4) };
        }
        Self { loops: arguments.walks.iter().copied().map(Loop::Wide).collect(), some: 1 }
    }

    /// Offsets of an element from the first one of each side.
    fn offsets(&self, mut number: u64) -> Result<(i64, i64), String> {
        let (mut source, mut target) = (0, 0);
        for one in self.loops.iter().rev().filter(|one| one.walk().count != 1) {
            let outer = one.quotient(number);
            let index = number - outer * one.walk().count;
            number = outer;
            source += times(index, one.walk().source)?;
            target += times(index, one.walk().target)?;
        }
        Ok((source, target))
    }
}

fn is_narrow(arguments: &Arguments, word: u64) -> bool {
    let (words, bytes) = (1 << 31, word << 31);
    let extent = |step: fn(&Walk) -> i64| {
        let ways = arguments.walks.iter().map(|walk| (walk.count - 1, step(walk).unsigned_abs()));
        ways.fold(0, |sum: u64, (steps, step)| sum.saturating_add(steps.saturating_mul(step)))
    };
    let (source, target) = (extent(|walk| walk.source), extent(|walk| walk.target));
    arguments.elements() < words && source < bytes && target < bytes
}

impl Run<'_> {
    pub(crate) fn for_all_elements(&mut self, origin: Origin) -> Result<(), String> {
        if self.arguments.elements() == 0 {
            return Ok(());
        }
        let loops = Loops::new(&self.arguments, self.word);
        let busy = self.arguments.elements().div_ceil(loops.some * THREADS);
        for block in 0..self.blocks.min(busy) {
            for thread in 0..THREADS {
                self.for_elements(origin, &loops, block * loops.some * THREADS + thread)?;
            }
        }
        Ok(())
    }

    /// The work of one thread.
    fn for_elements(
        &mut self,
        origin: Origin,
        loops: &Loops,
        mut first: u64,
    ) -> Result<(), String> {
        let elements = self.arguments.elements();
        while first < elements {
            let numbers = (0..loops.some).map(|k| first + k * THREADS);
            let valid = numbers.filter(|number| *number < elements);
            let places =
                valid.map(|number| loops.offsets(number)).collect::<Result<Vec<_>, _>>()?;
            let held = places.iter().map(|(source, _)| self.word_of(origin, *source));
            let held = held.collect::<Result<Vec<_>, _>>()?;
            for ((_, target), word) in places.iter().zip(held) {
                self.store(*target, word)?;
            }
            first += self.blocks * loops.some * THREADS;
        }
        Ok(())
    }

    fn word_of(&self, origin: Origin, source: i64) -> Result<Word, String> {
        match origin {
            Origin::Source => self.load(source),
            Origin::Value => Ok(self.arguments.value),
        }
    }
}

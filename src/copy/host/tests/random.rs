//! Reproducible random numbers, shapes and strides.

use super::super::transpose::LINE;

/// Extents around the sides of squares and of bands.
const EXTENTS: [i64; 14] = [1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 65, 129, 257];

/// Maximum number of elements.
const ELEMENTS: i64 = 3000;

/// Marsaglia's xorshift.
pub(in crate::copy) struct Random(pub(in crate::copy) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(in crate::copy) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }

    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(in crate::copy) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    pub(super) fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last + 1));
        }
    }

    pub(super) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.next().to_ne_bytes()[..part.len()]);
        }
        bytes
    }
}

/// A shape of one to six extents.
pub(super) fn random_shape(random: &mut Random) -> Vec<i64> {
    let mut left = ELEMENTS;
    let mut shape = Vec::new();
    for _ in 0..=random.below(6) {
        let extent = random.pick(&EXTENTS).min(left);
        left /= extent;
        shape.push(extent);
    }
    random.shuffle(&mut shape);
    shape
}

/// Strides of `shape` in a random order of the dimensions, with distinct elements. Some dimensions
/// are reversed, some are padded; rows may be whole lines.
pub(super) fn random_strides(random: &mut Random, shape: &[i64], item: usize) -> Vec<i64> {
    let mut order: Vec<_> = (0..shape.len()).collect();
    random.shuffle(&mut order);
    let line = i64::try_from(LINE / item).unwrap();
    let mut strides = vec![0; shape.len()];
    let mut step = random.pick(&[1, 1, 1, 1, 2, 3]);
    for (rank, &axis) in order.iter().enumerate() {
        strides[axis] = if random.one_in(8) { -step } else { step };
        step *= shape[axis].max(1) + random.pick(&[0, 0, 0, 1, 3]);
        if rank == 0 && random.one_in(2) {
            step += (line - step % line) % line;
        }
    }
    strides
}

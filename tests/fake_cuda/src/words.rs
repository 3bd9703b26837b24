//! Operands of an emulated kernel: its argument, and the words of both sides.
//!
//! A run owns no memory. Addresses are device addresses; steps and offsets are in bytes.

use std::array;
use std::ptr;

use crate::memory::Memory;

/// Size of the only argument, which `layout.cu` calls `Arguments`.
pub(crate) const ARGUMENT: usize = 232;
const MOST_WALKS: usize = 8;

/// A word, in the first bytes.
pub(crate) type Word = [u8; 16];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    pub(crate) count: u64,
    pub(crate) source: i64,
    pub(crate) target: i64,
}

#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) source: u64,
    pub(crate) target: u64,
    pub(crate) value: Word,
    /// Walks, outermost first.
    pub(crate) walks: Vec<Walk>,
}

impl Arguments {
    pub(crate) fn read(argument: &[u128]) -> Result<Self, String> {
        let bytes: Vec<u8> = argument.iter().flat_map(|part| part.to_ne_bytes()).collect();
        let number = |i: usize| i64::from_ne_bytes(array::from_fn(|byte| bytes[i * 8 + byte]));
        let walk = |i| {
            let [count, source, target] = array::from_fn(|part| number(5 + 3 * i + part));
            let checked = u64::try_from(count);
            let count = checked.map_err(|_| format!("expected a count, got {count}"))?;
            Ok(Walk { count, source, target })
        };
        let dims = usize::try_from(number(4)).ok().filter(|dims| *dims <= MOST_WALKS);
        let dims = dims.ok_or_else(|| format!("expected up to 8 walks, got {}", number(4)))?;
        let walks = (0..dims).map(walk).collect::<Result<_, String>>()?;
        let (source, target) = (number(0).cast_unsigned(), number(1).cast_unsigned());
        Ok(Self { source, target, value: array::from_fn(|byte| bytes[16 + byte]), walks })
    }

    pub(crate) fn elements(&self) -> u64 {
        self.walks.iter().map(|walk| walk.count).product()
    }

    /// Addresses of all elements of the target, computed without the arithmetic of the kernels.
    fn targets(&self) -> Vec<u64> {
        let along = |starts: Vec<u64>, walk: &Walk| {
            let one_by_one = |start: u64| {
                let mut next = start;
                (0..walk.count).map(move |_| {
                    let here = next;
                    next = next.wrapping_add_signed(walk.target);
                    here
                })
            };
            starts.into_iter().flat_map(one_by_one).collect()
        };
        self.walks.iter().fold(vec![self.target], along)
    }
}

/// Offset of an index from the first element of its walk.
pub(crate) fn times(index: u64, step: i64) -> Result<i64, String> {
    let offset = i64::try_from(index).ok().and_then(|index| index.checked_mul(step));
    offset.ok_or_else(|| format!("expected an offset of 64 bits, got {index} times {step}"))
}

/// A running launch.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    memory: &'a Memory,
    pub(crate) arguments: Arguments,
    /// Size of a word.
    pub(crate) word: u64,
    pub(crate) blocks: u64,
    /// Addresses of the target, in the order of writes.
    written: Vec<u64>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(memory: &'a Memory, arguments: Arguments, word: u64, blocks: u64) -> Self {
        Self { memory, arguments, word, blocks, written: Vec::new() }
    }

    /// Address on the host of the bytes of a word.
    fn reach(&self, address: u64) -> Result<(*mut u8, usize), String> {
        let Self { memory, word, .. } = self;
        if !address.is_multiple_of(*word) {
            return Err(format!("expected an address that {word} divides, got {address:#x}"));
        }
        let length = usize::try_from(*word).unwrap_or(usize::MAX);
        Ok((memory.reach(address, length)?, length))
    }

    pub(crate) fn load(&self, offset: i64) -> Result<Word, String> {
        let (from, length) = self.reach(self.arguments.source.wrapping_add_signed(offset))?;
        let mut word = Word::default();
        // SAFETY: `reach` found these bytes in a live block, and a word has at most 16 bytes.
        unsafe { ptr::copy_nonoverlapping(from, word.as_mut_ptr(), length) };
        Ok(word)
    }

    pub(crate) fn store(&mut self, offset: i64, word: Word) -> Result<(), String> {
        let address = self.arguments.target.wrapping_add_signed(offset);
        let (to, length) = self.reach(address)?;
        // SAFETY: `reach` found these bytes in a live block, and a word has at most 16 bytes.
        unsafe { ptr::copy_nonoverlapping(word.as_ptr(), to, length) };
        self.written.push(address);
        Ok(())
    }

    /// Checks that every element of the target was written once.
    pub(crate) fn check_written(mut self) -> Result<(), String> {
        self.written.sort_unstable();
        if let Some(twice) = self.written.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("expected one write to each element, got two at {:#x}", twice[0]));
        }
        let mut targets = self.arguments.targets();
        targets.sort_unstable();
        if self.written == targets {
            return Ok(());
        }
        let (all, got) = (targets.len(), self.written.len());
        Err(format!("expected a write to each of {all} elements, got {got} writes"))
    }
}

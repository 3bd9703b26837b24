//! Copies between any two layouts of one shape, in every way that the processor has, held against a loop
//! over the elements. Around the source lies memory that may not be read, around the target bytes that
//! must stay.
#![no_main]

use std::alloc;
use std::slice;

use arbitrary::{Arbitrary, Result, Unstructured};
use dlfield::Layout;
use dlfield::fuzzed::copy_by;
use fuzz::elements::{distances, permutation};
use libfuzzer_sys::fuzz_target;

/// Bytes around the target that must not change: more than any register or line has.
const MARGIN: usize = 256;

/// Most bytes from the lowest to the highest element.
const MOST: usize = 64 << 10;

#[derive(Debug, Arbitrary)]
struct Input {
    #[arbitrary(with = pair)]
    layouts: Option<(Layout, Layout)>,
    /// Bytes of both sides behind the boundary of a line.
    #[arbitrary(with = shift)]
    shifts: (usize, usize),
    seed: u8,
}

fn shift(input: &mut Unstructured<'_>) -> Result<(usize, usize)> {
    Ok((input.int_in_range(0..=63)?, input.int_in_range(0..=63)?))
}

/// Extents around those at which a copy changes its way, of which few are large.
fn shape(input: &mut Unstructured<'_>) -> Result<Vec<i64>> {
    let mut left = 4000;
    let mut shape = vec![];
    for _ in 0..input.int_in_range(0..=6)? {
        let extent = match input.ratio(1, 3)? {
            true => {
                *input.choose(&[8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257, 600])?
            }
            false => input.int_in_range(0..=9)?,
        };
        let extent = extent.min(left);
        left /= extent.max(1);
        shape.push(extent);
    }
    Ok(shape)
}

/// Strides in some order of the axes, with padding, some of them reversed.
fn nested(input: &mut Unstructured<'_>, shape: &[i64]) -> Result<Vec<i64>> {
    let mut strides = vec![0; shape.len()];
    let mut step = input.int_in_range(1..=3)?;
    for axis in permutation(input, shape.len())? {
        strides[axis] = if input.ratio(1, 6)? { -step } else { step };
        let padding = if input.ratio(1, 3)? { input.int_in_range(0..=9)? } else { 0 };
        step = step * shape[axis].max(1) + padding;
    }
    Ok(strides)
}

/// A layout for reading: its elements may be repeated, or lie in no order.
fn source(input: &mut Unstructured<'_>, shape: &[i64]) -> Result<Vec<i64>> {
    let mut strides = nested(input, shape)?;
    for stride in &mut strides {
        if input.ratio(1, 8)? {
            *stride = input.int_in_range(-20..=20)?;
        } else if input.ratio(1, 8)? {
            *stride = 0;
        }
    }
    Ok(strides)
}

/// A layout for writing: one element for each index, also where axes are interleaved.
fn target(input: &mut Unstructured<'_>, shape: &[i64], item: usize) -> Result<Vec<i64>> {
    let plain = nested(input, shape)?;
    let mut strides = plain.clone();
    for stride in &mut strides {
        if input.ratio(1, 12)? {
            *stride = input.int_in_range(-20..=20)?;
        }
    }
    let layout = Layout::new(shape.into(), strides[..].into(), item).expect("a small layout");
    let mut all = distances(&layout);
    all.sort_unstable();
    let is_distinct = all.windows(2).all(|two| two[0] < two[1]);
    Ok(if is_distinct { strides } else { plain })
}

/// Source and target; `None` if their elements lie too far apart.
fn pair(input: &mut Unstructured<'_>) -> Result<Option<(Layout, Layout)>> {
    let item = match input.ratio(3, 4)? {
        true => *input.choose(&[1, 2, 4, 8, 16])?,
        false => input.int_in_range(1..=16)?,
    };
    let shape = shape(input)?;
    let (from, to) = (source(input, &shape)?, target(input, &shape, item)?);
    let layout = |strides: &[i64]| {
        let layout = Layout::new(shape[..].into(), strides.into(), item).expect("small numbers");
        (layout.span().len() <= MOST).then_some(layout)
    };
    Ok(layout(&from).zip(layout(&to)))
}

/// Bytes that begin so far behind the boundary of a line, and end where the allocation ends: what is read
/// behind them, or before the line, is a fault.
struct Memory {
    place: *mut u8,
    form: alloc::Layout,
}

impl Memory {
    fn new(length: usize, shift: usize, seed: u8) -> Self {
        let form =
            alloc::Layout::from_size_align((shift + length).max(1), 64).expect("small memory");
        // SAFETY: not of size 0.
        let place = unsafe { alloc::alloc_zeroed(form) };
        assert!(!place.is_null());
        let mut memory = Self { place, form };
        for (at, byte) in memory.bytes_mut().iter_mut().enumerate() {
            *byte = (at.wrapping_mul(167) >> 3).to_le_bytes()[0] ^ at.to_le_bytes()[0] ^ seed;
        }
        memory
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the bytes of the allocation, which are initialised.
        unsafe { slice::from_raw_parts(self.place, self.form.size()) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.place, self.form.size()) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in this form by `new`, and borrows of it have ended.
        unsafe { alloc::dealloc(self.place, self.form) };
    }
}

/// Place of the element at a distance from the first one.
fn place(first: usize, distance: i64) -> usize {
    first.checked_add_signed(isize::try_from(distance).expect("near")).expect("inside")
}

/// The bytes of the target after a copy by definition.
fn copied(item: usize, elements: &[(usize, usize)], source: &Memory, target: &Memory) -> Vec<u8> {
    let mut expected = target.bytes().to_vec();
    for &(from, to) in elements {
        expected[to..to + item].copy_from_slice(&source.bytes()[from..from + item]);
    }
    expected
}

fuzz_target!(|input: Input| {
    let (Some(pair), (source_shift, target_shift)) = (input.layouts, input.shifts) else { return };
    let [from, to] = [pair.0.span(), pair.1.span()];
    let source = Memory::new(from.len(), source_shift, input.seed);
    let target_bytes = to.len() + 2 * MARGIN;
    let source_first = source_shift + from.low.unsigned_abs();
    let target_first = target_shift + MARGIN + to.low.unsigned_abs();
    let all = distances(&pair.0).into_iter().zip(distances(&pair.1));
    let all: Vec<(usize, usize)> =
        all.map(|(from, to)| (place(source_first, from), place(target_first, to))).collect();
    let mut target = Memory::new(target_bytes, target_shift, !input.seed);
    let before = target.bytes().to_vec();
    let expected = copied(pair.0.itemsize(), &all, &source, &target);
    for way in 0.. {
        target.bytes_mut().copy_from_slice(&before);
        let first = source.place.wrapping_add(source_first).cast_const();
        let written = target.place.wrapping_add(target_first);
        // SAFETY: both have the span of their layout, the target's elements are distinct (`target`), and
        // nothing else uses them.
        let done = unsafe { copy_by(way, (&pair.0, first), (&pair.1, written)) };
        if !done.expect("one shape") {
            break;
        }
        if target.bytes() == expected {
            continue;
        }
        let wrong = target.bytes().iter().zip(&expected).position(|(one, other)| one != other);
        panic!("byte {wrong:?}, first {target_first}, way {way}: {pair:?}");
    }
});

//! Call frames of XLA's with any numbers and any bytes in arrays as long as they say: a frame is refused
//! or read as its header file says, and nothing is read outside of it. What follows a struct that claims
//! to be short is not there.
#![no_main]

use std::ffi::c_void;
use std::ptr::null;

use arbitrary::{Arbitrary, Result, Unstructured};
use dlfield::fuzzed::read_frame;
use dlfield::{Error, Managed};
use libfuzzer_sys::fuzz_target;

/// Words of a frame, and of a buffer, in version 0.1 of `c_api.h`.
const FRAME: usize = 21;
const BUFFER: usize = 6;

const STRING: u32 = 4;
const TOKEN: u32 = 17;

/// Codes of types, and their bytes.
const KINDS: [(u32, usize); 15] = [
    (1, 1),
    (2, 1),
    (3, 2),
    (4, 4),
    (5, 8),
    (6, 1),
    (7, 2),
    (8, 4),
    (9, 8),
    (10, 2),
    (11, 4),
    (12, 8),
    (15, 8),
    (16, 2),
    (18, 16),
];

#[derive(Debug, Arbitrary)]
struct Input {
    #[arbitrary(with = mostly(FRAME))]
    words: usize,
    inputs: Buffers,
    outputs: Buffers,
    attributes: Vec<Attribute>,
    /// Fewer attributes than none.
    negative: bool,
}

#[derive(Debug, Arbitrary)]
struct Buffers {
    #[arbitrary(with = few)]
    each: Vec<Buffer>,
    negative: bool,
}

#[derive(Debug, Arbitrary)]
struct Buffer {
    #[arbitrary(with = mostly(BUFFER))]
    words: usize,
    #[arbitrary(with = code)]
    code: u32,
    #[arbitrary(with = address)]
    address: usize,
    #[arbitrary(with = extents)]
    dims: Box<[i64]>,
    /// Another rank than there are extents, which must be refused unread.
    rank: Option<i64>,
}

#[derive(Debug, Arbitrary)]
struct Attribute {
    #[arbitrary(with = kind)]
    kind: u32,
    #[arbitrary(with = name)]
    name: Box<[u8]>,
    text: Box<[u8]>,
}

/// Words of a struct: one at least, which says how many there are.
fn mostly(words: usize) -> impl Fn(&mut Unstructured<'_>) -> Result<usize> {
    move |input| if input.ratio(7, 8)? { Ok(words) } else { input.int_in_range(1..=words + 2) }
}

fn few(input: &mut Unstructured<'_>) -> Result<Vec<Buffer>> {
    (0..input.int_in_range(0..=4)?).map(|_| input.arbitrary()).collect()
}

fn code(input: &mut Unstructured<'_>) -> Result<u32> {
    if input.ratio(7, 8)? { input.int_in_range(0..=20) } else { input.arbitrary() }
}

fn address(input: &mut Unstructured<'_>) -> Result<usize> {
    if input.ratio(3, 4)? { Ok(0x10_0000) } else { input.arbitrary() }
}

fn extents(input: &mut Unstructured<'_>) -> Result<Box<[i64]>> {
    let length = if input.ratio(15, 16)? {
        input.int_in_range(0..=6)?
    } else {
        input.int_in_range(60..=66)?
    };
    (0..length)
        .map(|_| if input.ratio(7, 8)? { input.int_in_range(-1..=9) } else { input.arbitrary() })
        .collect()
}

fn kind(input: &mut Unstructured<'_>) -> Result<u32> {
    if input.ratio(3, 4)? { Ok(STRING) } else { input.arbitrary() }
}

fn name(input: &mut Unstructured<'_>) -> Result<Box<[u8]>> {
    if input.ratio(1, 2)? { Ok(b"entry".as_slice().into()) } else { input.arbitrary() }
}

// ── a frame in memory, of words ──

/// All that a frame points to, each in a box that ends where it ends.
#[derive(Default)]
struct Memory {
    words: Vec<Box<[usize]>>,
    codes: Vec<Box<[u32]>>,
}

impl Memory {
    fn keep(&mut self, words: &[usize]) -> usize {
        self.words.push(words.into());
        self.words.last().map_or(0, |kept| kept.as_ptr().expose_provenance())
    }

    fn keep_codes(&mut self, codes: impl Iterator<Item = u32>) -> usize {
        self.codes.push(codes.collect());
        self.codes.last().map_or(0, |kept| kept.as_ptr().expose_provenance())
    }

    /// A struct that says first how many bytes it has.
    fn keep_struct(&mut self, words: usize, rest: &[usize]) -> usize {
        let mut all = vec![words * 8];
        all.extend(rest);
        all.resize(words, 0x5555);
        self.keep(&all)
    }

    /// The address and the number of some bytes.
    fn span(&mut self, bytes: &[u8]) -> usize {
        let start = if bytes.is_empty() { 0 } else { bytes.as_ptr().expose_provenance() };
        self.keep(&[start, bytes.len()])
    }

    fn buffer(&mut self, buffer: &Buffer) -> usize {
        let dims = buffer.dims.as_ptr().expose_provenance();
        let (code, rank) = (buffer.code as usize, buffer.rank().cast_unsigned());
        let rank = usize::try_from(rank).expect("words of 64 bits");
        self.keep_struct(buffer.words, &[0, code, buffer.address, rank, dims])
    }

    /// Five words: size, extensions, count, kinds, each.
    fn buffers(&mut self, buffers: &Buffers) -> [usize; 5] {
        let each: Vec<usize> = buffers.each.iter().map(|one| self.buffer(one)).collect();
        let (count, each) = (count(each.len(), buffers.negative), self.keep(&each));
        [40, 0, count, 0, each]
    }

    /// Six words: size, extensions, count, kinds, names, each.
    fn attributes(&mut self, all: &[Attribute], negative: bool) -> [usize; 6] {
        let kinds = self.keep_codes(all.iter().map(|one| one.kind));
        let names: Vec<usize> = all.iter().map(|one| self.span(&one.name)).collect();
        let names = self.keep(&names);
        let text = |one: &Attribute| if one.kind == STRING { self.span(&one.text) } else { 8 };
        let each: Vec<usize> = all.iter().map(text).collect();
        [48, 0, count(all.len(), negative), kinds, names, self.keep(&each)]
    }

    fn frame(&mut self, input: &Input) -> *const c_void {
        let mut words = vec![0, 0, 0, 3];
        words.extend(self.buffers(&input.inputs));
        words.extend(self.buffers(&input.outputs));
        words.extend(self.attributes(&input.attributes, input.negative));
        self.keep_struct(input.words, &words);
        self.words.last().map_or(null(), |frame| frame.as_ptr().cast())
    }
}

fn count(there: usize, negative: bool) -> usize {
    if negative { usize::MAX } else { there }
}

// ── what it says ──

impl Buffer {
    fn rank(&self) -> i64 {
        let there = i64::try_from(self.dims.len()).expect("a few");
        self.rank.filter(|rank| !(0..=64).contains(rank)).unwrap_or(there)
    }

    /// The bytes of an item; `None` if the buffer must be refused, `Some(None)` for a token.
    fn item(&self) -> Option<Option<usize>> {
        if self.words < BUFFER || self.code == TOKEN {
            return (self.words >= BUFFER).then_some(None);
        }
        let item = KINDS.iter().find(|kind| kind.0 == self.code)?.1;
        let dims = (0..=64).contains(&self.rank()).then_some(&self.dims)?;
        // Extents of 0 count as 1: strides are computed from them.
        let mut bytes = i128::try_from(item).ok()?;
        for &extent in dims {
            bytes = bytes.checked_mul(i128::from(extent.max(1))).filter(|_| extent >= 0)?;
        }
        let most = i128::try_from(isize::MAX).ok()?;
        let end = i128::try_from(self.address).ok()? + bytes;
        let empty = dims.contains(&0);
        let inside = empty || (self.address > 0 && end <= i128::try_from(usize::MAX).ok()?);
        (bytes <= most && inside).then_some(Some(item))
    }
}

fn check(found: std::result::Result<Vec<Managed>, Error>, buffers: &Buffers, readonly: bool) {
    let each = if buffers.negative { &[][..] } else { &buffers.each };
    let items: Option<Vec<_>> = each.iter().map(Buffer::item).collect();
    let Some(items) = items else {
        assert!(found.is_err(), "{buffers:?}");
        return;
    };
    let found = found.expect("buffers that the model takes");
    let mut found = found.iter();
    for (buffer, item) in each.iter().zip(items) {
        let Some(item) = item else { continue };
        let one = found.next().expect("as many as there are buffers");
        assert_eq!((one.layout().shape(), one.layout().itemsize()), (&*buffer.dims, item));
        assert!(one.layout().is_c_contiguous() && one.readonly() == readonly);
        assert!(one.layout().size() == 0 || one.address() == buffer.address);
    }
    assert!(found.next().is_none());
}

fuzz_target!(|input: Input| {
    let mut memory = Memory::default();
    let frame = memory.frame(&input);
    // SAFETY: each struct has as many bytes as it says, each array as many entries, and the memory of
    // buffers is never read.
    let found = unsafe { read_frame(frame) };
    if input.words < FRAME {
        assert!(found.is_err());
        return;
    }
    let found = found.expect("a frame that is large enough");
    let all = if input.negative { &[][..] } else { &input.attributes };
    let named = all.iter().find(|one| one.kind == STRING && *one.name == *b"entry");
    let text = named.and_then(|one| std::str::from_utf8(&one.text).ok());
    assert_eq!(found.entry.ok().as_deref(), text);
    check(found.inputs, &input.inputs, true);
    check(found.outputs, &input.outputs, false);
});

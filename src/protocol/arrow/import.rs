//! Consumer: from the structs of the C data interface to what they claim of memory.
//!
//! An array is a column of numbers, of lists of numbers, or of tensors; a table of one column counts as that
//! column. Nothing is copied, and nothing is taken over before all is known to hold.

use arrow_buffer::bit_chunk_iterator::UnalignedBitChunk;
use smallvec::SmallVec;

use super::axes::Axes;
use super::metadata::shortened;
use super::names::{BOOL8, EXTENSION_NAME, dtype_of, refusal};
use super::structs::{Array, Schema};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::field::Said;
use crate::layout::{Extents, MAX_NDIM};
use crate::managed::{Described, Imported, Owner};

/// What an array claims, in the order of the field's axes.
#[derive(Debug)]
pub(super) struct Claims {
    address: usize,
    shape: Extents,
    byte_strides: Extents,
    dtype: DType,
    device: Device,
    pub(super) said: Said,
}

impl Claims {
    /// Reads an array and its schema.
    ///
    /// # Errors
    /// [`Error::Buffer`] for what is no column of numbers without gaps and nulls, or contradicts itself.
    pub(super) fn of(schema: &Schema, array: &Array, device: Device) -> Result<Self> {
        let whole = Part { schema, array, first: 0, length: array.length };
        let column = whole.column(device)?;
        let mut lists = Lists { shape: SmallVec::from_slice(&[column.length]), device };
        let (dtype, address) = lists.values(column)?;
        let Lists { shape, .. } = lists;
        let Axes { shape, byte_strides, said } = Axes::of(column.schema, shape, dtype)?;
        Ok(Self { address, shape, byte_strides, dtype, device, said })
    }

    /// The import, with what keeps its memory.
    pub(super) fn imported(&self, owner: Owner) -> Imported {
        let described = Described {
            address: self.address,
            shape: &self.shape,
            byte_strides: Some(&self.byte_strides),
            dtype: self.dtype,
            device: self.device,
            readonly: true, // Arrow's data is immutable
            owner,
        };
        // SAFETY: the interface's promise: the buffers of an array stay until it is released, which the owner does;
        // that all elements lie inside them was checked against the lengths that the producer gave.
        unsafe { Imported::from_described(described) }
    }
}

/// Elements of an array, counted from its own offset.
#[derive(Clone, Copy)]
struct Part<'a> {
    schema: &'a Schema,
    array: &'a Array,
    first: i64,
    length: i64,
}

impl<'a> Part<'a> {
    /// The one column of a table; other arrays are columns themselves.
    fn column(self, device: Device) -> Result<Self> {
        if self.schema.format()? != "+s" {
            return Ok(self);
        }
        if self.schema.child_count() != 1 {
            return Err(several_columns(self.schema));
        }
        if let [Some(extension)] = self.schema.metadata([EXTENSION_NAME])? {
            return Err(Error::Buffer(format!(
                "Arrow table: expected one column, got the extension type {:?}; take what it is made of",
                shortened(&String::from_utf8_lossy(extension))
            )));
        }
        let start = self.start()?;
        self.array.check_counts(1, 1)?;
        self.check_no_nulls(device)?;
        self.child(start, self.length)
    }

    /// Where it begins in the buffers, once offset and length make sense.
    fn start(self) -> Result<i64> {
        let Array { length, offset, .. } = *self.array;
        let wrong = |expected: String| {
            Error::Buffer(format!(
                "Arrow array: expected {expected}, got length {length} and offset {offset}; it is not valid"
            ))
        };
        if length < 0 || offset < 0 {
            return Err(wrong("a length and an offset of at least 0".into()));
        }
        if self.first.checked_add(self.length).is_none_or(|end| end > length) {
            return Err(wrong(format!("{} elements from number {} on", self.length, self.first)));
        }
        offset
            .checked_add(length)
            .map(|_| offset.wrapping_add(self.first))
            .ok_or_else(|| wrong("a length and an offset that memory can have".into()))
    }

    fn too_large(self) -> Error {
        Error::Buffer(format!(
            "Arrow array: expected a size that memory can have, got length {} and offset {}; it is not valid",
            self.array.length, self.array.offset
        ))
    }

    fn child(self, first: i64, length: i64) -> Result<Self> {
        let (schema, array) = (self.schema.child(0)?, self.array.child(0)?);
        Ok(Part { schema, array, first, length })
    }

    /// Every element is there. Counts where the producer has not, and where what is missing may lie outside of
    /// the part.
    fn check_no_nulls(self, device: Device) -> Result<()> {
        let (start, claimed) = (self.start()?, self.array.null_count);
        let bitmap = self.array.buffer(0)?;
        let missing = match (claimed, bitmap.is_null()) {
            (0, _) | (-1, true) => return Ok(()),
            (1.., false) | (-1, false) if device.is_host() => {
                missing_in(bitmap, start, self.length)?
            }
            (-1, false) => {
                return Err(Error::Buffer(format!(
                    "Arrow array: expected one that knows its nulls, got a validity bitmap on {device} that nobody \
                     has counted; fill the nulls first"
                )));
            }
            (1.., false) => claimed,
            _ => {
                let bitmap =
                    if bitmap.is_null() { "no validity bitmap" } else { "a validity bitmap" };
                return Err(Error::Buffer(format!(
                    "Arrow array: expected nulls that a bitmap shows, got null_count {claimed} and {bitmap}; it is not \
                     valid"
                )));
            }
        };
        if missing == 0 {
            return Ok(());
        }
        Err(Error::Buffer(format!(
            "Arrow array: expected a value for each element, got {missing} nulls; fill or drop them first \
             (fill_null, drop_null)"
        )))
    }
}

/// How many of `length` bits from `start` on are 0.
fn missing_in(bitmap: *const u8, start: i64, length: i64) -> Result<i64> {
    let wrong =
        || Error::Buffer("Arrow array: expected a length that memory can have, got more".into());
    let start = usize::try_from(start).map_err(|_| wrong())?;
    let length = usize::try_from(length).map_err(|_| wrong())?;
    if length > isize::MAX.unsigned_abs() {
        return Err(wrong());
    }
    let (first, last) = (start / 8, start.saturating_add(length).div_ceil(8));
    // SAFETY: a validity bitmap has a bit for each element from 0 to offset + length (the interface), and this part
    // lies within (Part::start).
    let bytes = unsafe { std::slice::from_raw_parts(bitmap.wrapping_add(first), last - first) };
    let there = UnalignedBitChunk::new(bytes, start % 8, length).count_ones();
    i64::try_from(length - there).map_err(|_| wrong())
}

/// Goes down lists of lists, and notes how long they are.
struct Lists {
    shape: Extents,
    device: Device,
}

impl Lists {
    /// The type of the numbers at the end, and where the first of them lies.
    fn values(&mut self, part: Part<'_>) -> Result<(DType, usize)> {
        let mut part = part;
        while let Some(size) = list_size(part.schema.format()?)? {
            part = self.inside(part, size)?;
        }
        let dtype = dtype_of_values(part)?;
        part.schema.check_children(0)?;
        part.array.check_counts(2, 0)?;
        part.check_no_nulls(self.device)?;
        let (start, data) = (part.start()?, part.array.buffer(1)?);
        if part.length > 0 && data.is_null() {
            return Err(Error::Buffer(format!(
                "Arrow array: expected a buffer for {} elements, got NULL; the array is not valid",
                part.length
            )));
        }
        let itemsize = i64::try_from(dtype.itemsize()).unwrap_or(i64::MAX);
        let moved = start.checked_mul(itemsize).and_then(|moved| isize::try_from(moved).ok());
        let address = moved.and_then(|moved| data.addr().checked_add_signed(moved));
        Ok((dtype, address.ok_or_else(|| part.too_large())?))
    }

    fn inside<'a>(&mut self, part: Part<'a>, size: i64) -> Result<Part<'a>> {
        if self.shape.len() >= MAX_NDIM {
            return Err(Error::Buffer(format!(
                "Arrow array: expected at most {MAX_NDIM} dimensions, got lists of lists that are deeper"
            )));
        }
        part.schema.check_children(1)?;
        part.array.check_counts(1, 1)?;
        part.check_no_nulls(self.device)?;
        let first = part.start()?.checked_mul(size).ok_or_else(|| part.too_large())?;
        let length = part.length.checked_mul(size).ok_or_else(|| part.too_large())?;
        self.shape.push(size);
        part.child(first, length)
    }
}

/// The length of the lists that a format stands for, where it stands for lists of one length.
fn list_size(format: &str) -> Result<Option<i64>> {
    let Some(size) = format.strip_prefix("+w:") else { return Ok(None) };
    let size = size.parse().ok().filter(|size| *size >= 0);
    size.map(Some).ok_or_else(|| {
        Error::Buffer(format!(
            "Arrow schema: expected a length behind +w:, got '{}'; it is not valid",
            shortened(format)
        ))
    })
}

fn dtype_of_values(part: Part<'_>) -> Result<DType> {
    if part.schema.has_dictionary() || part.array.has_dictionary() {
        return Err(Error::Buffer(
            "Arrow array: expected numbers, got a dictionary of them; decode it first (dictionary_decode)".into(),
        ));
    }
    let format = part.schema.format()?;
    let dtype = dtype_of(format).ok_or_else(|| {
        let (got, way_out) = refusal(format);
        let format = shortened(format);
        Error::Buffer(format!(
            "Arrow array: expected int8..int64, uint8..uint64 or float16..float64, or lists or tensors of them, \
             got {got} (format '{format}'); {way_out}"
        ))
    })?;
    let [extension] = part.schema.metadata([EXTENSION_NAME])?;
    Ok(if (dtype, extension) == (DType::Int8, Some(BOOL8.as_bytes())) {
        DType::Bool
    } else {
        dtype
    })
}

fn several_columns(schema: &Schema) -> Error {
    let count = schema.child_count();
    let shown = usize::try_from(count).unwrap_or(0).min(8);
    let names = (0..shown)
        .filter_map(|at| schema.child(at).ok()?.name().ok().map(|name| format!("'{name}'")));
    let names: Vec<String> = names.collect();
    Error::Buffer(format!(
        "Arrow table: expected one column, got {count} ({}); select one",
        names.join(", ")
    ))
}

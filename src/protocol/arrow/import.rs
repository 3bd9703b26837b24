//! Consumer: reads the claims in the structs of the C data interface.
//!
//! An array is a column of numbers, of lists of numbers, or of tensors; a table of one column
//! counts as that column. Nothing is copied, and nothing is taken over before all checks pass.

use std::mem::replace;
use std::slice;

use arrow_buffer::bit_chunk_iterator::UnalignedBitChunk;
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;

use super::axes::ImportedAxes;
use super::names::{BOOL8, EXTENSION_NAME, dtype_from_format, refusal};
use super::structs::{ArrowArray, ArrowSchema, invalid};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result, quoted, quoted_name, shortened};
use crate::field::Labels;
use crate::layout::{Extents, MAX_NDIM};
use crate::managed::{Checked, Described, Owner};

/// Takes an array over once its claims hold, with the labels that its schema gives.
///
/// # Errors
/// [`Error::Buffer`] for anything but a consistent column of numbers without gaps and nulls.
pub(super) fn take(
    schema: &FFI_ArrowSchema,
    array: &mut FFI_ArrowArray,
    device: Device,
) -> Result<(Checked, Labels)> {
    let (address, dtype, ImportedAxes { layout, labels }) =
        read(ArrowSchema::of(schema), ArrowArray::of(array), device)?;
    let described = Described {
        address,
        shape: layout.shape(),
        byte_strides: Some(layout.byte_strides()),
        dtype,
        device,
        readonly: true, // Arrow's data is immutable
        owner: Owner::new(replace(array, FFI_ArrowArray::empty())),
    };
    // SAFETY: the buffers of an array stay until it is released (the interface), which the owner
    // does. All elements lie inside them, by the lengths that the producer gave (read).
    Ok((unsafe { Checked::from_described(described) }?, labels))
}

/// Address of the first element, type of the elements, and axes in the order of the field.
fn read(
    schema: &ArrowSchema,
    array: &ArrowArray,
    device: Device,
) -> Result<(usize, DType, ImportedAxes)> {
    let column = Part { schema, array, first: 0, length: array.length, device }.column()?;
    let (mut part, mut shape) = (column, Extents::from_slice(&[column.length]));
    while let Some(size) = list_size(part.schema.format()?)? {
        if shape.len() >= MAX_NDIM {
            return Err(Error::Buffer(format!(
                "Arrow array: expected at most {MAX_NDIM} dimensions, got {} and more lists inside",
                shape.len()
            )));
        }
        part = part.inside(size)?;
        shape.push(size);
    }
    let (dtype, address) = part.values()?;
    Ok((address, dtype, ImportedAxes::read(column.schema, shape, dtype)?))
}

/// A range of elements of an array on a device, counted from its offset.
#[derive(Clone, Copy)]
struct Part<'a> {
    schema: &'a ArrowSchema,
    array: &'a ArrowArray,
    first: i64,
    length: i64,
    device: Device,
}

impl Part<'_> {
    /// The only column of a table. Other arrays are columns themselves.
    fn column(self) -> Result<Self> {
        if self.schema.format()? != "+s" {
            return Ok(self);
        }
        if self.schema.n_children != 1 {
            return Err(several_columns(self.schema));
        }
        if let [Some(extension)] = self.schema.metadata([EXTENSION_NAME])? {
            return Err(Error::Buffer(format!(
                "Arrow table: expected one column, got the extension type {}; take its storage \
                 array",
                quoted(&String::from_utf8_lossy(extension))
            )));
        }
        let start = self.start()?;
        self.check_no_nulls(self.array.buffers(1)?)?;
        self.child(start, self.length)
    }

    /// The elements of lists of one size.
    fn inside(self, size: i64) -> Result<Self> {
        self.schema.check_children(1)?;
        self.check_no_nulls(self.array.buffers(1)?)?;
        let times = |number: i64| number.checked_mul(size).ok_or_else(|| self.too_large());
        self.child(times(self.start()?)?, times(self.length)?)
    }

    fn child(self, first: i64, length: i64) -> Result<Self> {
        let (schema, array) = (self.schema.child(0)?, self.array.child(0)?);
        Ok(Self { schema, array, first, length, ..self })
    }

    /// The type of numbers, and the address of the first.
    fn values(self) -> Result<(DType, usize)> {
        let dtype = self.dtype()?;
        self.schema.check_children(0)?;
        let [bitmap, data] = self.array.buffers(0)?;
        self.check_no_nulls([bitmap])?;
        if self.length > 0 && data.is_null() {
            return Err(invalid("array", format!("a buffer for {} elements", self.length), "NULL"));
        }
        let start = usize::try_from(self.start()?).ok();
        let moved = start.and_then(|start| start.checked_mul(dtype.itemsize()));
        let address = moved.and_then(|moved| data.addr().checked_add(moved));
        Ok((dtype, address.ok_or_else(|| self.too_large())?))
    }

    fn dtype(self) -> Result<DType> {
        if !self.schema.dictionary.is_null() || !self.array.dictionary.is_null() {
            return Err(Error::Buffer(
                "Arrow array: expected numbers, got a dictionary of them; decode it first \
                 (dictionary_decode)"
                    .into(),
            ));
        }
        let format = self.schema.format()?;
        let dtype = dtype_from_format(format).ok_or_else(|| {
            let (got, way_out) = refusal(format);
            let format = shortened(format);
            Error::Buffer(format!(
                "Arrow array: expected int8..int64, uint8..uint64 or float16..float64, or lists \
                 or tensors of them, got {got} (format '{format}'); {way_out}"
            ))
        })?;
        let [extension] = self.schema.metadata([EXTENSION_NAME])?;
        let boolean = (dtype, extension) == (DType::Int8, Some(BOOL8.as_bytes()));
        Ok(if boolean { DType::Bool } else { dtype })
    }

    /// Checks offset and length. Returns the first element's index in the buffers.
    fn start(self) -> Result<i64> {
        let ArrowArray { length, offset, .. } = *self.array;
        if length < 0 || offset < 0 {
            return Err(self.invalid("a length and an offset of at least 0"));
        }
        if self.first.checked_add(self.length).is_none_or(|end| end > length) {
            let expected = format!("{} elements from number {} on", self.length, self.first);
            return Err(self.invalid(&expected));
        }
        // The sum of offset and first is less, and cannot overflow.
        let end = offset.checked_add(length).ok_or_else(|| self.too_large());
        end.map(|_| offset.wrapping_add(self.first))
    }

    fn too_large(self) -> Error {
        self.invalid("a size that memory can have")
    }

    fn invalid(self, expected: &str) -> Error {
        let ArrowArray { length, offset, .. } = *self.array;
        invalid("array", expected, format!("length {length} and offset {offset}"))
    }

    /// Refuses nulls. Counts them if the producer has not, or if they may lie outside of the part.
    fn check_no_nulls(self, [bitmap]: [*const u8; 1]) -> Result<()> {
        let (claimed, absent) = (self.array.null_count, bitmap.is_null());
        let missing = match claimed {
            0 => 0,
            -1 if absent => 0,
            -1.. if !absent && self.device.is_host() => self.nulls_in(bitmap)?,
            1.. if !absent => claimed,
            -1 => {
                return Err(Error::Buffer(format!(
                    "Arrow array: expected a null_count, got -1 and a validity bitmap on {}; fill \
                     the nulls first",
                    self.device
                )));
            }
            _ => {
                let bitmap = if absent { "no" } else { "a" };
                let got = format!("null_count {claimed} and {bitmap} validity bitmap");
                return Err(invalid("array", "nulls that a bitmap shows", got));
            }
        };
        if missing == 0 {
            return Ok(());
        }
        Err(Error::Buffer(format!(
            "Arrow array: expected a value for each element, got {missing} nulls; fill or drop \
             them first (fill_null, drop_null)"
        )))
    }

    /// Number of zeros of a bitmap in this part.
    fn nulls_in(self, bitmap: *const u8) -> Result<i64> {
        let index = |number: i64| usize::try_from(number).map_err(|_| self.too_large());
        let (start, length) = (index(self.start()?)?, index(self.length)?);
        let (first, last) = (start / 8, start.saturating_add(length).div_ceil(8));
        // SAFETY: a validity bitmap has a bit for each element up to offset + length (the
        // interface), and this part lies within (Part::start).
        let bytes = unsafe { slice::from_raw_parts(bitmap.wrapping_add(first), last - first) };
        let there = UnalignedBitChunk::new(bytes, start % 8, length).count_ones();
        i64::try_from(length - there).map_err(|_| self.too_large())
    }
}

/// Length of lists, if the format is one of lists of fixed length.
fn list_size(format: &str) -> Result<Option<i64>> {
    let Some(size) = format.strip_prefix("+w:") else { return Ok(None) };
    let size = size.parse().ok().filter(|size| *size >= 0);
    let wrong = || invalid("schema", "a length after +w:", format!("'{}'", shortened(format)));
    size.map(Some).ok_or_else(wrong)
}

/// Checks that a schema is one of a column of numbers, or of lists of them.
///
/// # Errors
/// [`Error::Buffer`].
pub(super) fn check_column(mut schema: &ArrowSchema) -> Result<()> {
    for _ in 0..=MAX_NDIM {
        let format = schema.format()?;
        match format {
            "+s" if schema.n_children != 1 => return Err(several_columns(schema)),
            _ if format == "+s" || list_size(format)?.is_some() => {
                schema.check_children(1)?;
                schema = schema.child(0)?;
            }
            _ if dtype_from_format(format).is_some() => return schema.check_children(0),
            _ => break,
        }
    }
    let format = shortened(schema.format()?).into_owned();
    Err(invalid("schema", "a column of numbers", format!("format '{format}'")))
}

fn several_columns(schema: &ArrowSchema) -> Error {
    let count = schema.n_children;
    let shown = 0..usize::try_from(count).unwrap_or(0).min(8);
    let names = shown.filter_map(|at| Some(quoted_name(schema.child(at).ok()?.name().ok()?)));
    let names: Vec<String> = names.collect();
    let which = match (names.join(", "), count) {
        (names, _) if names.is_empty() => {
            return Error::Buffer(format!(
                "Arrow table: expected one column, got {count}; pass a table with one"
            ));
        }
        (names, 9..) => format!("{names}, ..."),
        (names, _) => names,
    };
    Error::Buffer(format!("Arrow table: expected one column, got {count} ({which}); select one"))
}

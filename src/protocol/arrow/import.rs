//! Consumer: from the structs of the C data interface to what they claim of memory.
//!
//! An array is a column of numbers, of lists of numbers, or of tensors; a table of one column counts as that
//! column. Nothing is copied, and nothing is taken over before all is known to hold.

use arrow_buffer::bit_chunk_iterator::UnalignedBitChunk;
use smallvec::SmallVec;

use super::metadata::{Tensor, Whole};
use super::names::{
    BOOL8, DLFIELD, EXTENSION_METADATA, EXTENSION_NAME, FIXED_SHAPE_TENSOR, dtype_of, refusal,
};
use super::structs::{Array, Schema};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::field::{Dim, Dims, Field, Halo};
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

/// What it says of itself besides its memory.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) dims: Option<Dims>,
    /// `None` where nobody said.
    pub(super) halo: Option<Halo>,
    /// What was said of the halo was said of a list of another length.
    pub(super) halo_is_unknown: bool,
    pub(super) origin: Option<Extents>,
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
        Arranged::of(column.schema, shape, dtype)?.claims(address, dtype, device)
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
        let start = self.start()?;
        if self.schema.child_count() != 1 {
            return Err(several_columns(self.schema));
        }
        self.array.check_counts(1, 1)?;
        self.check_no_nulls(device)?;
        self.child(start, self.length)
    }

    /// Where it begins in the buffers, once offset and length make sense.
    fn start(self) -> Result<i64> {
        let Array { length, offset, .. } = *self.array;
        let end = self.first.checked_add(self.length);
        let start = offset.checked_add(self.first);
        let inside = length >= 0 && offset >= 0 && self.first >= 0 && self.length >= 0;
        let fits = inside && end.is_some_and(|end| end <= length);
        let counted = start.and_then(|start| start.checked_add(self.length));
        start.filter(|_| fits && counted.is_some()).ok_or_else(|| {
            Error::Buffer(format!(
                "Arrow array: expected at least {} elements after the first {}, got length {length} and offset {offset}; \
                 the array is not valid",
                self.length, self.first
            ))
        })
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
                return Err(Error::Buffer(format!(
                    "Arrow array: expected a validity bitmap for {claimed} nulls, got none; the array is not valid"
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
        Ok((dtype, address.ok_or_else(|| too_large(part.length))?))
    }

    fn inside<'a>(&mut self, part: Part<'a>, size: i64) -> Result<Part<'a>> {
        if self.shape.len() >= MAX_NDIM {
            return Err(Error::Buffer(format!(
                "Arrow array: expected at most {MAX_NDIM} dimensions, got lists of lists that are deeper"
            )));
        }
        part.array.check_counts(1, 1)?;
        part.check_no_nulls(self.device)?;
        let first = part.start()?.checked_mul(size).ok_or_else(|| too_large(part.length))?;
        let length = part.length.checked_mul(size).ok_or_else(|| too_large(part.length))?;
        self.shape.push(size);
        part.child(first, length)
    }
}

fn too_large(length: i64) -> Error {
    Error::Buffer(format!("Arrow array: expected a size that memory can have, got length {length}"))
}

/// The length of the lists that a format stands for, where it stands for lists of one length.
fn list_size(format: &str) -> Result<Option<i64>> {
    let Some(size) = format.strip_prefix("+w:") else { return Ok(None) };
    let size = size.parse().ok().filter(|size| *size >= 0);
    size.map(Some).ok_or_else(|| {
        Error::Buffer(format!(
            "Arrow schema: expected a length behind +w:, got '{format}'; it is not valid"
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
        Error::Buffer(format!(
            "Arrow array: expected int8..int64, uint8..uint64 or float16..float64, or lists or tensors of them, \
             got {got} (format '{format}'); {way_out}"
        ))
    })?;
    let [extension] = part.schema.metadata([EXTENSION_NAME])?;
    Ok(if (dtype, extension) == (DType::Int8, Some(BOOL8)) { DType::Bool } else { dtype })
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

/// The axes of a field, each with its extent and stride.
struct Arranged {
    shape: Extents,
    byte_strides: Extents,
    said: Said,
}

impl Arranged {
    /// Puts the axes of `shape`, which is that in memory, into the order that the metadata tells.
    fn of(schema: &Schema, shape: Extents, dtype: DType) -> Result<Self> {
        let [extension, parameters, whole] =
            schema.metadata([EXTENSION_NAME, EXTENSION_METADATA, DLFIELD])?;
        let tensor = match extension {
            Some(FIXED_SHAPE_TENSOR) => Some(Tensor::from_json(parameters.unwrap_or_default())?),
            _ => None,
        };
        let shape = match &tensor {
            Some(tensor) => of_tensors(&shape, tensor)?,
            None => shape,
        };
        let byte_strides = strides_of(&shape, dtype)?;
        let mut this = Self { shape, byte_strides, said: Said::default() };
        if let Some(Tensor { permutation, dims, .. }) = tensor {
            this.permute_inner(&permutation);
            this.said.dims = dims.map(|dims| with_list_axis(permuted(&dims, &permutation)));
        }
        match whole {
            None => Ok(this),
            Some(text) => this.restored(Whole::from_json(text)?),
        }
    }

    fn permute_inner(&mut self, permutation: &[usize]) {
        for numbers in [&mut self.shape, &mut self.byte_strides] {
            if let Some((first, rest)) = numbers.split_first() {
                let moved: Extents = std::iter::once(*first)
                    .chain(permutation.iter().filter_map(|&axis| rest.get(axis).copied()))
                    .collect();
                *numbers = moved;
            }
        }
    }

    /// The field that was exported: its own order of axes, and what was known of it.
    fn restored(mut self, whole: Whole) -> Result<Self> {
        for numbers in [&mut self.shape, &mut self.byte_strides] {
            if whole.axis < numbers.len() {
                let length = numbers.remove(0);
                numbers.insert(whole.axis, length);
            }
        }
        let Whole { shape, axis, dims, halo, origin } = whole;
        let differs = |(at, (one, other)): (usize, (&i64, &i64))| at != axis && one != other;
        if shape.len() != self.shape.len() || shape.iter().zip(&self.shape).enumerate().any(differs)
        {
            return Err(Error::Buffer(format!(
                "metadata of dlfield: expected the shape of the array, {:?}, got {shape:?}; remove the metadata",
                self.shape
            )));
        }
        let whole = shape == self.shape;
        let (halo, origin) = if whole { (halo, origin) } else { (None, None) };
        self.said = Said { dims, halo_is_unknown: halo.is_none(), halo, origin };
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> Result<()> {
        let Said { dims, halo, origin, .. } = &self.said;
        let field = Field {
            dims: dims.clone(),
            halo: halo.clone(),
            origin: origin.clone(),
            ..Field::default()
        };
        field
            .check(&self.shape)
            .map_err(|error| Error::Buffer(format!("Arrow metadata: {error}; remove the metadata")))
    }

    fn claims(self, address: usize, dtype: DType, device: Device) -> Result<Claims> {
        self.check()?;
        let Self { shape, byte_strides, said } = self;
        Ok(Claims { address, shape, byte_strides, dtype, device, said })
    }
}

/// The shape of a list of tensors, in memory.
fn of_tensors(shape: &[i64], tensor: &Tensor) -> Result<Extents> {
    let size = tensor.shape.iter().try_fold(1_i64, |size, extent| size.checked_mul(*extent));
    match shape {
        [length, items] if size == Some(*items) && tensor.shape.len() < MAX_NDIM => {
            Ok(std::iter::once(*length).chain(tensor.shape.iter().copied()).collect())
        }
        _ => Err(Error::Buffer(format!(
            "metadata of arrow.fixed_shape_tensor: expected a shape of the lists of {:?} elements, got {:?}; the array \
             is not valid",
            shape.get(1..).unwrap_or_default(),
            tensor.shape.as_slice()
        ))),
    }
}

fn strides_of(shape: &[i64], dtype: DType) -> Result<Extents> {
    let mut stride = i64::try_from(dtype.itemsize()).unwrap_or(i64::MAX);
    let mut strides = Extents::from_elem(0, shape.len());
    for (place, extent) in strides.iter_mut().zip(shape).rev() {
        *place = stride;
        stride = stride.checked_mul((*extent).max(1)).ok_or_else(|| too_large(*extent))?;
    }
    Ok(strides)
}

fn permuted(dims: &[Dim], permutation: &[usize]) -> Dims {
    permutation.iter().filter_map(|&axis| dims.get(axis).cloned()).collect()
}

/// A list's own axis has no name: it gets the one that xarray gives to such an axis, so that nobody takes it for
/// one of the others.
fn with_list_axis(dims: Dims) -> Dims {
    let free = (0..).map(Dim::unnamed).find(|dim| !dims.contains(dim));
    free.into_iter().chain(dims.iter().cloned()).collect()
}

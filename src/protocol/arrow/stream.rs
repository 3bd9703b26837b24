//! Streams of the C stream interface. dlfield takes streams with exactly one chunk.

use std::ffi::{CStr, c_int};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_data::ArrayData;
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::DataType;
use arrow_schema::ffi::FFI_ArrowSchema;

use super::import::check_column;
use super::structs::ArrowSchema;
use crate::error::{Error, Result};

/// Reads the only chunk of a stream, and its schema; `None` for no chunk.
///
/// # Errors
/// [`Error::Buffer`] for several chunks, or with the producer's own text if it fails.
pub(super) fn only_chunk(
    mut stream: FFI_ArrowArrayStream,
) -> Result<(FFI_ArrowSchema, Option<FFI_ArrowArray>)> {
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: the producer's own function for this stream, which fills the struct (the interface).
    let status = stream.get_schema().map(|get| unsafe { get(&raw mut stream, &raw mut schema) });
    check(&mut stream, status)?;
    let chunk = next(&mut stream)?;
    if chunk.is_released() {
        return Ok((schema, None));
    }
    if !next(&mut stream)?.is_released() {
        return Err(Error::Buffer(
            "Arrow stream: expected one chunk, got several; take one of them, or combine them first \
             if they are parts of one field (combine_chunks, rechunk)"
                .into(),
        ));
    }
    Ok((schema, Some(chunk)))
}

/// An array of no rows, which many producers write as a stream of no chunks.
pub(super) fn without_rows(schema: &FFI_ArrowSchema) -> Result<FFI_ArrowArray> {
    check_column(ArrowSchema::of(schema))?; // arrow-rs trusts the schema
    let dtype = DataType::try_from(schema).map_err(|error| {
        Error::Buffer(format!("Arrow stream: expected a type that Arrow has, got {error}"))
    })?;
    Ok(FFI_ArrowArray::new(&ArrayData::new_empty(&dtype)))
}

/// Reads the next chunk; a released array at the end.
fn next(stream: &mut FFI_ArrowArrayStream) -> Result<FFI_ArrowArray> {
    let mut array = FFI_ArrowArray::empty();
    // SAFETY: as for the schema.
    let status = stream.get_next().map(|get| unsafe { get(stream, &raw mut array) });
    check(stream, status)?;
    Ok(array)
}

fn check(stream: &mut FFI_ArrowArrayStream, status: Option<c_int>) -> Result<()> {
    let text = match status {
        Some(0) => return Ok(()),
        None => "a function that is NULL".into(),
        Some(number) => format!("error {number}: {}", last_error(stream)),
    };
    Err(Error::Buffer(format!("Arrow stream: expected an array, got {text}")))
}

fn last_error(stream: &mut FFI_ArrowArrayStream) -> String {
    // SAFETY: the producer's own function for this stream, called after a failure (the interface).
    let text = stream.get_last_error().map(|get| unsafe { get(stream) });
    let Some(text) = text.filter(|text| !text.is_null()) else {
        return "no reason given".into();
    };
    // SAFETY: the text ends with NUL and stays until the next call (the interface).
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into()
}

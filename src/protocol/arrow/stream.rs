//! Streams of the C stream interface. dlfield takes streams with exactly one chunk.

use std::ffi::{CStr, c_int};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;

use crate::error::{Error, Result};

/// Reads the only chunk of a stream, and its schema.
///
/// # Errors
/// [`Error::Buffer`] for another number of chunks, or with the producer's own text if it fails.
pub(super) fn only_chunk(
    mut stream: FFI_ArrowArrayStream,
) -> Result<(FFI_ArrowSchema, FFI_ArrowArray)> {
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: the producer's own function for this stream, which fills the struct (the interface).
    let status = stream.get_schema().map(|get| unsafe { get(&raw mut stream, &raw mut schema) });
    check(&mut stream, status)?;
    let chunk = next(&mut stream)?;
    if chunk.is_released() {
        return Err(chunks("none", "the stream is empty, or was read already"));
    }
    if !next(&mut stream)?.is_released() {
        return Err(chunks(
            "several",
            "take one of them, or combine them first if they are parts of one field \
             (combine_chunks, rechunk)",
        ));
    }
    Ok((schema, chunk))
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

fn chunks(count: &str, way_out: &str) -> Error {
    Error::Buffer(format!("Arrow stream: expected one chunk, got {count}; {way_out}"))
}

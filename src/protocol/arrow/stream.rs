//! The stream of the C stream interface, of which dlfield takes the one chunk that there is.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::structs::{Array, Schema};
use crate::error::{Error, Result};

/// `struct ArrowArrayStream`. The default is a released one.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct Stream {
    get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private_data: *mut c_void,
}

// SAFETY: the interface lets any thread call a stream, one at a time; it is owned by whoever has it.
unsafe impl Send for Stream {}

impl Stream {
    /// Whether somebody has taken it.
    pub(super) fn is_released(&self) -> bool {
        self.release.is_none()
    }

    /// The one chunk, and what it is of.
    ///
    /// # Errors
    /// [`Error::Buffer`] for another number of chunks, and with the producer's own text where it fails.
    pub(super) fn only_chunk(mut self) -> Result<(Schema, Array)> {
        let mut schema = Schema::default();
        // SAFETY: a stream that is not released has this function (the interface), which fills the struct.
        let status = self.get_schema.map(|get| unsafe { get(&raw mut self, &raw mut schema) });
        self.check(status)?;
        let chunk = self.next()?;
        if chunk.is_released() {
            return Err(chunks("none", "it has no memory to share, or was read already"));
        }
        if !self.next()?.is_released() {
            return Err(chunks(
                "several",
                "take one batch of them, or put them together first where they are parts of one field (combine_chunks, rechunk)",
            ));
        }
        Ok((schema, chunk))
    }

    /// A released array at the end.
    fn next(&mut self) -> Result<Array> {
        let mut array = Array::default();
        // SAFETY: as above.
        let status = self.get_next.map(|get| unsafe { get(&raw mut *self, &raw mut array) });
        self.check(status)?;
        Ok(array)
    }

    fn check(&mut self, status: Option<c_int>) -> Result<()> {
        let text = match status {
            Some(0) => return Ok(()),
            None => "a function that is NULL".into(),
            Some(number) => format!("error {number}: {}", self.last_error()),
        };
        Err(Error::Buffer(format!("Arrow stream: expected an array, got {text}")))
    }

    fn last_error(&mut self) -> String {
        // SAFETY: asked after a failure, as the interface has it.
        let text = self.get_last_error.map(|get| unsafe { get(&raw mut *self) });
        let Some(text) = text.filter(|text| !text.is_null()) else {
            return "no reason given".into();
        };
        // SAFETY: a text that ends with 0, which stays until the next call.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the producer's own function for its stream, called once: whoever takes a stream away leaves
            // `None` behind.
            unsafe { release(self) };
        }
    }
}

fn chunks(count: &str, way_out: &str) -> Error {
    Error::Buffer(format!("Arrow stream: expected one chunk, got {count}; {way_out}"))
}

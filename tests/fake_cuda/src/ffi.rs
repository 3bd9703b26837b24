//! The C boundary: pointers from callers, and writes through them.
//!
//! Every pointer of a call arrives as one of these types, so that the functions of `api` need no
//! `unsafe`. Every block below relies on one fact, which `cuda.h` demands of callers: a pointer
//! other than null holds, or has room for, one value of its type.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use crate::status::{Outcome, Status};

/// A context, stream, event, pool, module or function: an opaque address to callers, a number here.
pub(crate) type Handle = u64;

/// Place for a result.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Out<T>(*mut T);

// By hand: a pointer can be copied regardless of the type behind it.
impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    /// Writes the result. Null is an invalid value.
    pub(crate) fn put(self, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: not null, so the caller provides room for one T. Attributes may be unaligned.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes a result that the caller may not want.
    pub(crate) fn offer(self, value: T) {
        if !self.0.is_null() {
            // Cannot fail: the only error is null.
            let _ = self.put(value);
        }
    }
}

impl Out<c_void> {
    /// Casts a result whose type depends on a number, as that of an attribute.
    pub(crate) fn of<T>(self) -> Out<T> {
        Out(self.0.cast())
    }
}

impl Out<c_char> {
    /// Writes as much of a text as fits, with its NUL.
    pub(crate) fn put_text(self, text: &str, room: usize) -> Outcome {
        let fits = text.len().min(room.saturating_sub(1));
        if self.0.is_null() || room == 0 {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the caller provides `room` bytes, and `fits` is less.
        unsafe { ptr::copy_nonoverlapping(text.as_ptr(), self.0.cast::<u8>(), fits) };
        // SAFETY: `fits` < `room`, so the end lies inside.
        let end = unsafe { self.0.add(fits) };
        Out(end).put(0)
    }
}

/// One or several values that the caller lends for the call.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T> In<T> {
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl<T: Copy> In<T> {
    pub(crate) fn get(self) -> Outcome<T> {
        self.list(1)?.pop().ok_or(Status::INVALID_VALUE)
    }

    /// Copies a list. Null is an empty list or an invalid value.
    pub(crate) fn list(self, count: usize) -> Outcome<Vec<T>> {
        match (count, self.0.is_null()) {
            (0, _) => Ok(Vec::new()),
            (_, true) => Err(Status::INVALID_VALUE),
            // SAFETY: not null, so the caller provides `count` values; arrays in C are aligned.
            _ => Ok(unsafe { std::slice::from_raw_parts(self.0, count) }.to_vec()),
        }
    }
}

impl In<c_char> {
    /// Reads a text that ends with NUL.
    pub(crate) fn text(self) -> Outcome<String> {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: not null, so the caller provides a text that ends with NUL.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map(str::to_owned).map_err(|_| Status::INVALID_VALUE)
    }
}

impl In<c_void> {
    /// Casts a value whose type depends on a number or on its first bytes.
    pub(crate) fn of<T>(self) -> In<T> {
        In(self.0.cast())
    }
}

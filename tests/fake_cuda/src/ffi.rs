//! The C boundary: pointers that callers hand in, and what is written through them.
//!
//! Every pointer of a call arrives as one of these types, so that the functions of `api` need no
//! `unsafe`. The caller of a driver function has promised what `cuda.h` asks: a pointer that is not
//! null takes or holds one value of its type. That is the fact each block below stands on.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use crate::status::{Outcome, Status};

/// A context, stream, event, pool, module or function: an address to callers, a number to us.
pub(crate) type Handle = u64;

/// Where an answer goes.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Out<T>(*mut T);

// By hand: a pointer is copied whatever it points to.
impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    /// Writes the answer; null is an invalid value.
    pub(crate) fn put(self, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: not null, so room for one T: the caller's promise. Attributes come unaligned.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes an answer that the caller may not want.
    pub(crate) fn offer(self, value: T) {
        if !self.0.is_null() {
            // Cannot fail: the only error is null.
            let _ = self.put(value);
        }
    }
}

impl Out<c_void> {
    /// For answers whose type is known by their number, as attributes are.
    pub(crate) fn of<T>(self) -> Out<T> {
        Out(self.0.cast())
    }
}

impl Out<c_char> {
    /// Writes as much of a text as fits, with its end.
    pub(crate) fn put_text(self, text: &str, room: usize) -> Outcome {
        let fits = text.len().min(room.saturating_sub(1));
        if self.0.is_null() || room == 0 {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the caller promised `room` bytes, and `fits` is less.
        unsafe { ptr::copy_nonoverlapping(text.as_ptr(), self.0.cast::<u8>(), fits) };
        // SAFETY: `fits` < `room`, so the end is inside.
        let end = unsafe { self.0.add(fits) };
        Out(end).put(0)
    }
}

/// A value, or several, that the caller lends for the call.
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

    /// Copies a list; null is an empty one or an invalid value.
    pub(crate) fn list(self, count: usize) -> Outcome<Vec<T>> {
        match (count, self.0.is_null()) {
            (0, _) => Ok(Vec::new()),
            (_, true) => Err(Status::INVALID_VALUE),
            // SAFETY: not null, so `count` values: the caller's promise, for C arrays are aligned.
            _ => Ok(unsafe { std::slice::from_raw_parts(self.0, count) }.to_vec()),
        }
    }
}

impl In<c_char> {
    /// A text that ends with NUL.
    pub(crate) fn text(self) -> Outcome<String> {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: not null, so a text that ends: the caller's promise.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map(str::to_owned).map_err(|_| Status::INVALID_VALUE)
    }
}

impl In<c_void> {
    /// For what has its type behind a number or its first bytes.
    pub(crate) fn of<T>(self) -> In<T> {
        In(self.0.cast())
    }
}

//! The structs of the C data interface, read from untrusted producers.
//!
//! arrow-rs owns the same structs and trusts their contents; here each number is checked first. One
//! thing cannot be checked and is trusted, as the interface demands: a pointer other than NULL
//! points to a valid object of its type. Source: "The Arrow C data interface" and "The Arrow C
//! device data interface".

use std::ffi::{CStr, c_char, c_void};
use std::fmt::Display;
use std::{ptr, slice};

use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;

use crate::error::{Error, Result};

/// `struct ArrowSchema` up to what is read here.
#[repr(C)]
pub(super) struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    pub(super) n_children: i64,
    children: *mut *mut ArrowSchema,
    pub(super) dictionary: *mut ArrowSchema,
}

/// `struct ArrowArray` up to what is read here.
#[repr(C)]
pub(super) struct ArrowArray {
    pub(super) length: i64,
    pub(super) null_count: i64,
    pub(super) offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    pub(super) dictionary: *mut ArrowArray,
}

/// The refusal of a struct that breaks the rules of the interface.
pub(super) fn invalid(what: &str, expected: impl Display, got: impl Display) -> Error {
    Error::Buffer(format!("Arrow {what}: expected {expected}, got {got}; it is not valid"))
}

/// Maximum length of metadata. A larger number is not a length but garbage.
const LONGEST: i32 = 1 << 24;

impl ArrowSchema {
    pub(super) fn of(schema: &FFI_ArrowSchema) -> &Self {
        // SAFETY: the same struct of the C data interface, field by field.
        unsafe { &*ptr::from_ref(schema).cast() }
    }

    /// The format string, which names the type.
    pub(super) fn format(&self) -> Result<&str> {
        text(self.format)?.ok_or_else(|| invalid("schema", "a format", "NULL"))
    }

    /// The name of the column; empty if it has none.
    pub(super) fn name(&self) -> Result<&str> {
        text(self.name).map(Option::unwrap_or_default)
    }

    pub(super) fn child(&self, at: usize) -> Result<&Self> {
        child(self.children, self.n_children, at, "schema")
    }

    /// Finds the values of `keys` in the metadata. They may be any bytes. The first of equal keys
    /// wins.
    pub(super) fn metadata<const N: usize>(&self, keys: [&str; N]) -> Result<[Option<&[u8]>; N]> {
        let mut found = [None; N];
        if self.metadata.is_null() {
            return Ok(found);
        }
        let mut at = Cursor(self.metadata.cast());
        for _ in 0..at.length()? {
            let (key, value) = (at.bytes()?, at.bytes()?);
            let wanted = keys.iter().position(|wanted| key == wanted.as_bytes());
            if let Some(place) = wanted.and_then(|at| found.get_mut(at)) {
                place.get_or_insert(value);
            }
        }
        Ok(found)
    }

    pub(super) fn check_children(&self, expected: i64) -> Result<()> {
        if self.n_children == expected {
            return Ok(());
        }
        Err(invalid("schema", format!("{expected} children for its format"), self.n_children))
    }
}

/// A position in serialised metadata, whose length is known only by reading it.
struct Cursor(*const u8);

impl Cursor {
    fn length(&mut self) -> Result<usize> {
        // SAFETY: metadata other than NULL has a number of 4 bytes here (the interface's layout).
        let length = unsafe { self.0.cast::<i32>().read_unaligned() };
        self.0 = self.0.wrapping_add(size_of::<i32>());
        usize::try_from(length)
            .ok()
            .filter(|_| length <= LONGEST)
            .ok_or_else(|| invalid("metadata", format!("lengths of 0 to {LONGEST}"), length))
    }

    fn bytes<'a>(&mut self) -> Result<&'a [u8]> {
        let (length, start) = (self.length()?, self.0);
        self.0 = start.wrapping_add(length);
        // SAFETY: the number before them counts these bytes (the interface's layout). They live as
        // long as the schema, and `metadata` returns them with its lifetime.
        Ok(unsafe { slice::from_raw_parts(start, length) })
    }
}

impl ArrowArray {
    pub(super) fn of(array: &FFI_ArrowArray) -> &Self {
        // SAFETY: the same struct of the C data interface, field by field.
        unsafe { &*ptr::from_ref(array).cast() }
    }

    pub(super) fn child(&self, at: usize) -> Result<&Self> {
        child(self.children, self.n_children, at, "array")
    }

    /// The buffers of an array that has `N` of them, and this number of children.
    pub(super) fn buffers<const N: usize>(&self, children: i64) -> Result<[*const u8; N]> {
        if (usize::try_from(self.n_buffers), self.n_children) != (Ok(N), children) {
            return Err(Error::Buffer(format!(
                "Arrow array: expected {N} buffers and {children} children, as its schema says, \
                 got {} and {}; schema and array do not belong together",
                self.n_buffers, self.n_children
            )));
        }
        // SAFETY: a pointer to `n_buffers` pointers (the producer's promise).
        let buffers = unsafe { pointee(self.buffers.cast::<[*const u8; N]>()) };
        buffers.copied().map_err(|got| invalid("array", format!("pointers to {N} buffers"), got))
    }
}

fn text<'a>(text: *const c_char) -> Result<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the text ends with NUL (the interface), and lives as long as its schema, whose
    // lifetime the callers put on it.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| invalid("schema", "texts in UTF-8", "other bytes"))
}

fn child<'a, T>(children: *mut *mut T, count: i64, at: usize, what: &str) -> Result<&'a T> {
    let missing = |got: &str| invalid(what, format!("a child with number {at}"), got);
    if !usize::try_from(count).is_ok_and(|count| at < count) {
        return Err(missing(&format!("{count} children")));
    }
    // SAFETY: a pointer to `count` pointers (the producer's promise).
    unsafe { pointee(children) }.map_err(missing)?;
    // SAFETY: as before, and `at` is less than `count`.
    let child = unsafe { pointee(children.wrapping_add(at)) }.map_err(missing)?;
    // SAFETY: a pointer to a struct that lives as long as its parent.
    unsafe { pointee(*child) }.map_err(missing)
}

/// The target of a pointer, or what is wrong with the pointer.
///
/// # Safety
/// Unless it is NULL or misaligned, the pointer is to a value that does not change during `'a`.
unsafe fn pointee<'a, T>(pointer: *const T) -> Result<&'a T, &'static str> {
    if !pointer.is_aligned() {
        return Err("a pointer that is not aligned");
    }
    // SAFETY: aligned; the caller answers for the rest.
    unsafe { pointer.as_ref() }.ok_or("NULL")
}

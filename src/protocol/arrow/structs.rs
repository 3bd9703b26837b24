//! The structs of the C data interface as they come from others, and what can be checked of them.
//!
//! arrow-rs has the same structs and takes their contents for granted; here each number is checked first.
//! What cannot be checked is taken on trust, as the interface demands: that a pointer that is not NULL points
//! to what it is for. Source: "The Arrow C data interface" and "The Arrow C device data interface".

use std::ffi::{CStr, c_char, c_void};

use crate::error::{Error, Result};

/// `struct ArrowSchema`. The default is a released one, for somebody to fill or left behind by `std::mem::take`.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`. The default is a released one, as of a schema: whoever has that releases it no more (the
/// interface, "Moving an array").
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct Array {
    pub(super) length: i64,
    pub(super) null_count: i64,
    pub(super) offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private_data: *mut c_void,
}

// SAFETY: the interface lets a consumer release an array on any thread, and nothing else is done with the
// pointers but reading what does not change.
unsafe impl Send for Array {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Array {}
// SAFETY: as for an array.
unsafe impl Send for Schema {}

/// No more of either is believed of one text of metadata: what is longer is no length but garbage.
const LONGEST: i32 = 1 << 24;

impl Schema {
    #[cfg(feature = "python")]
    pub(super) fn is_released(&self) -> bool {
        self.release.is_none()
    }

    pub(super) fn has_dictionary(&self) -> bool {
        !self.dictionary.is_null()
    }

    /// The type, in the spelling of the interface.
    pub(super) fn format(&self) -> Result<&str> {
        text(self.format)?.ok_or_else(|| {
            Error::Buffer("Arrow schema: expected a format, got NULL; it is not valid".into())
        })
    }

    /// The name of the column, as far as it has one.
    pub(super) fn name(&self) -> Result<&str> {
        text(self.name).map(Option::unwrap_or_default)
    }

    pub(super) fn child_count(&self) -> i64 {
        self.n_children
    }

    pub(super) fn child(&self, at: usize) -> Result<&Self> {
        child(self.children, self.n_children, at, "schema")
    }

    /// The values of `keys` in the metadata; of a key that stands there twice the first. They may be any bytes.
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

    /// Whether it has as many children as its type.
    pub(super) fn check_children(&self, expected: i64) -> Result<()> {
        if self.n_children == expected {
            return Ok(());
        }
        Err(Error::Buffer(format!(
            "Arrow schema: expected {expected} children for its format, got {}; it is not valid",
            self.n_children
        )))
    }
}

/// A place in serialised metadata, which tells its length only as it is read.
struct Cursor(*const u8);

impl Cursor {
    fn length(&mut self) -> Result<usize> {
        // SAFETY: metadata that is not NULL holds a number of 4 bytes here, aligned or not (the interface's layout).
        let length = unsafe { self.0.cast::<i32>().read_unaligned() };
        self.0 = self.0.wrapping_add(size_of::<i32>());
        usize::try_from(length).ok().filter(|_| length <= LONGEST).ok_or_else(|| {
            Error::Buffer(format!(
                "Arrow metadata: expected lengths of 0 to {LONGEST}, got {length}; it is not valid"
            ))
        })
    }

    fn bytes<'a>(&mut self) -> Result<&'a [u8]> {
        let (length, start) = (self.length()?, self.0);
        self.0 = start.wrapping_add(length);
        // SAFETY: as many bytes as the number before them says (the interface's layout), which stay while the
        // schema is there: `metadata` gives them no longer.
        Ok(unsafe { std::slice::from_raw_parts(start, length) })
    }
}

impl Array {
    /// Whether somebody has taken it.
    #[cfg(feature = "python")]
    pub(super) fn is_released(&self) -> bool {
        self.release.is_none()
    }

    pub(super) fn has_dictionary(&self) -> bool {
        !self.dictionary.is_null()
    }

    pub(super) fn child(&self, at: usize) -> Result<&Self> {
        child(self.children, self.n_children, at, "array")
    }

    /// Whether it has as many buffers and children as its type.
    pub(super) fn check_counts(&self, buffers: i64, children: i64) -> Result<()> {
        if (self.n_buffers, self.n_children) != (buffers, children) {
            return Err(Error::Buffer(format!(
                "Arrow array: expected {buffers} buffers and {children} children, as its schema has it, got {} and {}; \
                 schema and array do not belong together",
                self.n_buffers, self.n_children
            )));
        }
        if self.buffers.is_null() {
            return Err(Error::Buffer(format!(
                "Arrow array: expected pointers to {buffers} buffers, got NULL; it is not valid"
            )));
        }
        Ok(())
    }

    /// Where a buffer lies; `check_counts` has found it to be there.
    pub(super) fn buffer(&self, at: usize) -> Result<*const u8> {
        let buffer = self.buffers.wrapping_add(at);
        if !buffer.is_aligned() {
            return Err(misaligned("buffers"));
        }
        // SAFETY: `buffers` is not NULL and holds as many pointers as `n_buffers` says (check_counts; that it
        // does is the producer's promise).
        Ok(unsafe { buffer.read() }.cast())
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the producer's own function for the struct that it filled, called once: whoever takes an
            // array away leaves `None` behind.
            unsafe { release(self) };
        }
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: as for an array.
            unsafe { release(self) };
        }
    }
}

fn text<'a>(text: *const c_char) -> Result<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: a text that ends with 0 (the interface), which stays while its schema is there: nobody gives it
    // longer than that.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| {
        Error::Buffer(
            "Arrow schema: expected texts in UTF-8, got other bytes; it is not valid".into(),
        )
    })
}

fn child<'a, T>(children: *mut *mut T, count: i64, at: usize, what: &str) -> Result<&'a T> {
    let missing = |got: &str| {
        Error::Buffer(format!(
            "Arrow {what}: expected a child with number {at}, got {got}; it is not valid"
        ))
    };
    if !usize::try_from(count).is_ok_and(|count| at < count) {
        return Err(missing(&format!("{count} of them")));
    }
    let child = children.wrapping_add(at);
    if children.is_null() || !child.is_aligned() {
        return Err(missing(if children.is_null() {
            "NULL"
        } else {
            "a pointer that is not aligned"
        }));
    }
    // SAFETY: not NULL, and below their number, which is the producer's promise.
    let child = unsafe { child.read() };
    if !child.is_aligned() {
        return Err(missing("a pointer that is not aligned"));
    }
    // SAFETY: NULL is told apart, and another pointer is to a struct that lives as long as its parent.
    unsafe { child.as_ref() }.ok_or_else(|| missing("NULL"))
}

fn misaligned(what: &str) -> Error {
    Error::Buffer(format!(
        "Arrow {what}: expected an aligned pointer, got another; the struct is not valid"
    ))
}

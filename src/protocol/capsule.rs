//! Capsules, as they come from others.

use std::borrow::Cow;
use std::ffi::CStr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The name of a capsule as a message shows it.
pub(super) fn shown_name<'a>(capsule: &'a Bound<'_, PyCapsule>) -> Cow<'a, str> {
    // SAFETY: a capsule; its name is NULL or a text that its maker keeps while the capsule lives.
    let name = unsafe { ffi::PyCapsule_GetName(capsule.as_ptr()) };
    if name.is_null() {
        return "NULL".into();
    }
    // SAFETY: not NULL, and as above.
    let name = unsafe { CStr::from_ptr(name) };
    format!("'{}'", name.to_string_lossy()).into()
}

//! The capsule of `__array_struct__`.

use std::ffi::{c_char, c_int};
use std::ptr::null;

use pyo3::ffi;
use pyo3::prelude::*;

use super::claims::Claims;

/// `PyArrayInterface`, whose pointers are addresses here, and what they point to.
#[repr(C)]
struct ArrayStruct {
    two: c_int,
    nd: c_int,
    typekind: c_char,
    itemsize: c_int,
    flags: c_int,
    shape: usize,
    strides: usize,
    data: usize,
    descr: usize,
    numbers: (Vec<i64>, Vec<i64>),
}

const WRITEABLE: c_int = 0x400;

/// The struct of these claims, with other numbers for `two` and for the flags; `None` for claims that it
/// has no room for.
pub(super) fn capsule<'py>(
    py: Python<'py>,
    claims: &Claims,
    two: c_int,
    flags: c_int,
) -> Option<PyResult<Bound<'py, PyAny>>> {
    let strides: Vec<i64> = claims.narrow_strides()?;
    let kind = *claims.typestr.as_bytes().get(1)?;
    let shape = claims.shape.clone();
    let found = ArrayStruct {
        two,
        nd: shape.len().try_into().ok()?,
        typekind: c_char::from_ne_bytes([kind]),
        itemsize: claims.itemsize.try_into().ok()?,
        flags: if claims.readonly { flags & !WRITEABLE } else { flags },
        shape: shape.as_ptr().expose_provenance(),
        strides: strides.as_ptr().expose_provenance(),
        data: usize::try_from(claims.address).unwrap_or(0),
        descr: 0,
        numbers: (shape, strides),
    };
    let place = Box::into_raw(Box::new(found));
    // SAFETY: without a name, as NumPy's; `free` gets the struct back.
    let capsule = unsafe { ffi::PyCapsule_New(place.cast(), null(), Some(free)) };
    // SAFETY: a new reference, or NULL with an error.
    Some(unsafe { Bound::from_owned_ptr_or_err(py, capsule) })
}

/// The destructor of the capsule.
unsafe extern "C" fn free(capsule: *mut ffi::PyObject) {
    // SAFETY: Python passes the capsule that has this destructor, and so such a struct.
    let place = unsafe { ffi::PyCapsule_GetPointer(capsule, null()) };
    // SAFETY: the box of `capsule`, which is freed once.
    let found = unsafe { Box::from_raw(place.cast::<ArrayStruct>()) };
    drop(found.numbers);
}

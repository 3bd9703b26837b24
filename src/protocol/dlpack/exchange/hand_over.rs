//! Exports memory of dlfield: the DLPack exchange table of a foreign class makes an object over it.

use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::lookup::functions;
use crate::interpreter::{raised, raised_by};
use crate::managed::Managed;
use crate::protocol::dlpack::tensor::to_versioned;

/// Makes an object of `class` over host memory. Zero-copy: the object holds a reference until it
/// dies. `None` if the class has no table, or its table cannot make an object of the memory.
///
/// # Errors
/// `BufferError` for negative strides, and for a table that succeeds without an object.
pub(crate) fn hand_over<'py>(
    class: &Bound<'py, PyType>,
    managed: &Managed,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = class.py();
    let Some(to_py) = functions(class)?.and_then(|functions| functions.to_py) else {
        return Ok(None);
    };
    let tensor = to_versioned(managed, false)?.into_raw();
    let mut made = ptr::null_mut();
    // SAFETY: a function of the table of the class, called with the interpreter attached, an owning
    // tensor and room for a pointer (dlpack.h).
    let code = unsafe { to_py(tensor, &raw mut made) };
    if code != 0 {
        drop(raised(py)); // `__dlpack__` explains it better
        // SAFETY: from into_raw above; a function that fails has not taken the tensor (in torch and
        // tvm-ffi; dlpack.h does not say).
        drop(unsafe { dlpark::Managed::from_raw(tensor) });
        return Ok(None);
    }
    // SAFETY: the function succeeded, so by dlpack.h it wrote a new reference there and took the
    // tensor.
    let made = unsafe { Bound::from_owned_ptr_or_opt(py, made.cast::<ffi::PyObject>()) };
    made.map(Some).ok_or_else(|| raised_by(py, "DLPack exchange table"))
}

//! Producer: an object of somebody else's class over memory of ours, by the table of that class.

use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::lookup::functions;
use crate::managed::Managed;
use crate::protocol::dlpack::tensor::to_versioned;
use crate::protocol::keep::{raised, raised_by};

/// Makes an object of `class` over host memory. Zero-copy: the object holds a reference, which it gives
/// back when it dies. `None` where the class has no table, or its table cannot make one of it.
///
/// # Errors
/// `BufferError` for negative strides, and for a table that answers without an object.
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
    // SAFETY: a function of the table of the class, called with the interpreter attached, an owning tensor
    // and room for a pointer (dlpack.h).
    let code = unsafe { to_py(tensor, &raw mut made) };
    if code != 0 {
        drop(raised(py)); // `__dlpack__` says it better
        // SAFETY: from into_raw above; who fails has not taken it (dlpack.h does not say; torch and tvm-ffi
        // have it so).
        drop(unsafe { dlpark::Managed::from_raw(tensor) });
        return Ok(None);
    }
    // SAFETY: the function says that it has put a new reference there. The tensor is its own by now.
    let made = unsafe { Bound::from_owned_ptr_or_opt(py, made.cast::<ffi::PyObject>()) };
    made.map(Some).ok_or_else(|| raised_by(py, "DLPack exchange table"))
}

//! Warnings of a call that goes on: copies, and layouts that are slow. Python shows each text once
//! for each line of the caller's, unless its filters differ.

use std::ffi::CString;

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::stencil::{CallPlan, Mismatch};

pyo3::create_exception!(
    dlfield,
    LayoutWarning,
    PyUserWarning,
    "A stencil call is slower than it could be, because of the memory layout of an argument."
);
pyo3::create_exception!(
    dlfield,
    MemoryCopyWarning,
    PyUserWarning,
    "A stencil call copies an argument that is not laid out as the stencil needs it."
);
pyo3::create_exception!(
    dlfield,
    DeviceCopyWarning,
    PyUserWarning,
    "A stencil call copies an argument from one device to another."
);

/// Warns before anything is acquired, since a warning may be made an error. `stack_level`: 1 names
/// the caller's line, 2 that of its caller. Returns true if there was a warning.
pub(super) fn warn(py: Python<'_>, plan: &CallPlan, stack_level: i32) -> PyResult<bool> {
    for copy in plan.fields.iter().flatten().filter_map(|field| field.copy.as_ref()) {
        let kind = match copy {
            Mismatch::Device(_) => py.get_type::<DeviceCopyWarning>(),
            Mismatch::Memory(_) => py.get_type::<MemoryCopyWarning>(),
        };
        show(&kind, &format!("{}; copied at each call", copy.text()), stack_level)?;
    }
    for text in &plan.slow {
        let kind = py.get_type::<LayoutWarning>();
        show(&kind, text, stack_level)?;
    }
    Ok(!plan.slow.is_empty() || plan.first_copy().is_some())
}

fn show(kind: &Bound<'_, PyType>, text: &str, stack_level: i32) -> PyResult<()> {
    let text = CString::new(text.replace('\0', "?"))?;
    PyErr::warn(kind.py(), kind.as_any(), &text, stack_level)
}

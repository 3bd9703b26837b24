//! What a call says about itself where it goes on: copies, and layouts that are slow. Python shows
//! each text once for each line of the caller's, unless its filters say otherwise.

use std::ffi::CString;

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::BoundStencil;
use crate::stencil::{CallPlan, Mismatch};

pyo3::create_exception!(
    dlfield,
    LayoutWarning,
    PyUserWarning,
    "A stencil call is slower than it could be, because of how the memory of an argument is laid out."
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

impl BoundStencil {
    /// Warns before anything is acquired: a warning may be made an error. `level`: 1 names the
    /// caller's line, 2 that of its caller. Whether there was a warning.
    pub(super) fn warn(&self, py: Python<'_>, plan: &CallPlan, level: i32) -> PyResult<bool> {
        let copied = plan.fields.iter().flatten().any(|field| field.copy.is_some());
        for field in plan.fields.iter().flatten() {
            match &field.copy {
                None => {}
                Some(Mismatch::Device(text)) => {
                    say(
                        py,
                        &py.get_type::<DeviceCopyWarning>(),
                        text,
                        "copied at each call",
                        level,
                    )?;
                }
                Some(Mismatch::Memory(text)) => {
                    say(
                        py,
                        &py.get_type::<MemoryCopyWarning>(),
                        text,
                        "copied at each call",
                        level,
                    )?;
                }
            }
        }
        for text in &plan.slow {
            say(py, &py.get_type::<LayoutWarning>(), text, "slower than it could be", level)?;
        }
        Ok(copied || !plan.slow.is_empty())
    }
}

fn say(
    py: Python<'_>,
    kind: &Bound<'_, PyType>,
    text: &str,
    what: &str,
    level: i32,
) -> PyResult<()> {
    let text = format!("{text}; {what}");
    let text = CString::new(text.replace('\0', "?"))?;
    PyErr::warn(py, kind.as_any(), &text, level)
}

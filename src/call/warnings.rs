//! Warnings of a call that goes on: copies, and memory orders that are slow. Python shows the text of
//! a copy once for each line of the caller's, unless its filters differ. A slow order is warned of
//! once by each bound stencil: its text depends on the arrays, so that Python would show many.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Remembers that a bound stencil has warned of a slow order.
#[derive(Debug, Default)]
pub(super) struct SlowWarned(AtomicBool);

/// The fewest points of a domain for which a slow order is warned of. From about here on it costs a
/// fifth and more of a call; below, the call itself takes the time.
const SLOW_FROM: i64 = 16_384;

/// Warns before anything is acquired, since a warning may be made an error. `stack_level`: 1 names
/// the caller's line, 2 that of its caller. Returns true if the call is one that warns, whether or
/// not it has now: calls that come again are treated alike.
pub(super) fn warn(
    py: Python<'_>,
    plan: &CallPlan,
    slow_warned: &SlowWarned,
    stack_level: i32,
) -> PyResult<bool> {
    for copy in plan.fields.iter().flatten().filter_map(|field| field.copy.as_ref()) {
        let kind = match copy {
            Mismatch::Device(_) => py.get_type::<DeviceCopyWarning>(),
            Mismatch::Memory(_) => py.get_type::<MemoryCopyWarning>(),
        };
        show(&kind, &format!("{}; copied at each call", copy.text()), stack_level)?;
    }
    let points = plan.domain.iter().fold(1_i64, |points, &along| points.saturating_mul(along));
    let is_slow = !plan.slow.is_empty() && points >= SLOW_FROM;
    if is_slow {
        slow_warned.warn(py, &plan.slow, stack_level)?;
    }
    Ok(is_slow || plan.first_copy().is_some())
}

impl SlowWarned {
    /// Lists all slow arguments in one warning, if there was none before. One that is made an error
    /// stops its call and does not count: the next call raises it again.
    fn warn(&self, py: Python<'_>, slow: &[String], stack_level: i32) -> PyResult<()> {
        if self.0.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let shown = show(&py.get_type::<LayoutWarning>(), &slow.join("; "), stack_level);
        self.0.store(shown.is_ok(), Ordering::Relaxed);
        shown
    }
}

fn show(kind: &Bound<'_, PyType>, text: &str, stack_level: i32) -> PyResult<()> {
    let text = CString::new(text.replace('\0', "?"))?;
    PyErr::warn(kind.py(), kind.as_any(), &text, stack_level)
}

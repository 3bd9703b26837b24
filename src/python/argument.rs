//! Fields as arguments of functions that another extension module exports with PyO3: any array that
//! a stencil takes, as its elements on the host.

use std::sync::Arc;

use ndarray::Dimension;
use pyo3::prelude::*;
use pyo3::{Borrowed, PyAny};

use super::borrows::share_borrows;
use super::storage::{PyStorage, introduce};
use super::stream::let_go_while_freeing;
use crate::device::Target;
use crate::element::Element;
use crate::error::Error;
use crate::field::Field;
use crate::interpreter::{DropAttached, give_back, prepare_for_the_end};
use crate::protocol::hooks::Hooks;
use crate::protocol::ndarray::{FieldMut, FieldRef};
use crate::protocol::{Arrival, Request, import, is_noted, note_written};
use crate::storage::Storage;

/// Imports an array whose values may be used now: acquired (GDP-3) until the last view of it is gone.
fn acquired(obj: &Bound<'_, PyAny>) -> PyResult<(Arrival, Arc<Field>)> {
    let py = obj.py();
    prepare(py)?;
    let mut arrival = import(obj, Request::computation(Target::Host))?;
    arrival.memory = arrival.hooks.acquired(py, arrival.memory)?;
    py.detach(|| arrival.memory.wait())?; // WAIT without the interpreter, which the view would hold
    let shape = arrival.memory.layout().shape();
    let field = arrival.field(shape);
    field.check(shape)?;
    Ok((arrival, Arc::new(field)))
}

/// Initialises the extension module of another crate, as the package's own does when it is made.
fn prepare(py: Python<'_>) -> PyResult<()> {
    prepare_for_the_end(py)?;
    let_go_while_freeing();
    introduce();
    share_borrows(py)
}

/// A storage of the package `dlfield` over the same memory, with names and halo; `ImportError` if
/// the package is not installed.
impl<'py> IntoPyObject<'py> for Storage {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        prepare(py)?;
        let own = PyStorage::wrap(py, self, None)?;
        py.import("dlfield")?.call_method1("as_storage", (own,))
    }
}

/// Any array that is an input of stencils: read-only ones too.
impl<'py, T: Element, D: Dimension> FromPyObject<'_, 'py> for FieldRef<'py, T, D> {
    type Error = PyErr;

    fn extract(obj: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (arrival, field) = acquired(&obj)?;
        Ok(Self::over(arrival.memory, field)?)
    }
}

/// Any array that is an output of stencils. Dropping it calls the array's `touch`.
impl<'py, T: Element, D: Dimension> FromPyObject<'_, 'py> for FieldMut<'py, T, D> {
    type Error = PyErr;

    fn extract(obj: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (Arrival { memory, hooks, readonly_kind, .. }, field) = acquired(&obj)?;
        if memory.readonly() && !memory.layout().overlaps_itself() {
            return Err(Error::Buffer(format!(
                "field: expected memory that may be written, got {readonly_kind}; pass a copy"
            ))
            .into());
        }
        Ok(Self::over(memory, field, touch(hooks, obj.to_owned()))?)
    }
}

/// The function that marks the memory as written when the view is dropped.
fn touch(hooks: Hooks, array: Bound<'_, PyAny>) -> Option<Box<dyn FnOnce() + Send + Sync>> {
    if hooks.is_empty() && !is_noted(&array) {
        return None;
    }
    let kept = DropAttached::new((hooks, array.unbind()));
    Some(Box::new(move || {
        let _is_not_called_at_the_end = give_back(|py| {
            let (hooks, array) = &*kept;
            hooks.touch_or_report(py);
            if let Err(error) = note_written(array.bind(py)) {
                error.write_unraisable(py, Some(array.bind(py)));
            }
        });
    }))
}

//! Fields as arguments of functions that an extension module of somebody else exports with PyO3: any array that a
//! stencil takes, as its elements on the host.

use std::sync::Arc;

use ndarray::Dimension;
use pyo3::prelude::*;
use pyo3::{Borrowed, PyAny};

use super::borrows::share_borrows;
use super::storage::{PyStorage, arrival};
use super::stream::let_go_while_freeing;
use crate::device::Target;
use crate::element::Element;
use crate::error::Error;
use crate::field::Field;
use crate::managed::Managed;
use crate::protocol::gt4py::Hooks;
use crate::protocol::ndarray::{FieldMut, FieldRef};
use crate::protocol::{Arrival, Wish};
use crate::storage::Storage;

/// An array whose values are there to be used, and what it wants to be told afterwards.
struct Given {
    memory: Managed,
    field: Arc<Field>,
    hooks: Hooks,
    /// What to call it where it is read-only.
    kind: &'static str,
}

impl Given {
    /// Through the doors, and acquired (GDP-3) until the last view of the memory is gone.
    fn of(obj: &Bound<'_, PyAny>) -> PyResult<Self> {
        let_go_while_freeing(); // in a module of somebody else nobody has said so, nor has it joined others
        share_borrows(obj.py())?;
        let Arrival { managed, said, hooks, kind, .. } = arrival(obj, Wish::For(Target::Host))?;
        let memory =
            if hooks.is_empty() { managed } else { managed.along_with(hooks.acquire(obj.py())?) };
        obj.py().detach(|| memory.wait())?;
        let shape = memory.layout().shape();
        let field = said.into_field(shape);
        field.check(shape)?;
        Ok(Self { memory, field: Arc::new(field), hooks, kind })
    }
}

/// A storage of the package `dlfield` over the same memory, with names and halo; `ImportError` where that is not
/// installed.
impl<'py> IntoPyObject<'py> for Storage {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        share_borrows(py)?;
        let own = PyStorage::wrap(py, self, None)?;
        py.import("dlfield")?.call_method1("as_storage", (own,))
    }
}

/// Any array that is an input of stencils: read-only ones too.
impl<'py, T: Element, D: Dimension> FromPyObject<'_, 'py> for FieldRef<'py, T, D> {
    type Error = PyErr;

    fn extract(obj: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Given { memory, field, .. } = Given::of(&obj)?;
        Ok(Self::over(memory, field)?)
    }
}

/// Any array that is an output of stencils. Who wants to know that it was written is told when it is dropped.
impl<'py, T: Element, D: Dimension> FromPyObject<'_, 'py> for FieldMut<'py, T, D> {
    type Error = PyErr;

    fn extract(obj: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Given { memory, field, hooks, kind } = Given::of(&obj)?;
        if memory.readonly() && !memory.layout().overlaps_itself() {
            return Err(Error::Buffer(format!(
                "field: expected memory that may be written, got {kind}; pass a copy of it"
            ))
            .into());
        }
        Ok(Self::over(memory, field, told(hooks))?)
    }
}

fn told(hooks: Hooks) -> Option<Box<dyn FnOnce() + Send + Sync>> {
    if hooks.is_empty() {
        return None;
    }
    Some(Box::new(move || {
        // After the interpreter is gone there is nobody to tell.
        let _ = Python::try_attach(move |py| hooks.touch_or_report(py));
    }))
}

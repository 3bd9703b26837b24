//! CuPy at work on a GPU, in order with all work on the memory that it uses.
//!
//! The interface of an array names no stream, for which CuPy would wait on the host. CuPy's stream
//! waits instead, and its work is recorded in the timeline of the memory. The address therefore counts as
//! not exposed, and a result is freed in order, without a wait.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::cuda::{Stream, Timeline};
use crate::managed::Managed;
use crate::python::device_array::PyDeviceArray;
use crate::python::storage::cupy_module;
use crate::python::stream::stream_of;

/// CuPy with a GPU and its stream, which are current meanwhile.
pub(super) struct Cupy<'py> {
    module: Bound<'py, PyModule>,
    stream: Stream,
    /// The orders of the work on the memory that CuPy uses.
    used: Vec<Arc<Timeline>>,
}

impl<'py> Cupy<'py> {
    /// Lets CuPy work on a GPU, on its current stream there. What is known to be in flight on the
    /// arrays comes before, and what dlfield does with them later comes after.
    ///
    /// # Errors
    /// `ImportError` that names `what` without CuPy; what `work` raises.
    pub(super) fn work<T>(
        py: Python<'py>,
        ordinal: i32,
        what: &str,
        work: impl FnOnce(&mut Self) -> PyResult<T>,
    ) -> PyResult<T> {
        let way_out = "compute with copies on the host, dlfield.storage(field, device='cpu')";
        let module = cupy_module(py, what, way_out)?;
        let cuda = module.getattr(intern!(py, "cuda"))?;
        let device = cuda.call_method1(intern!(py, "Device"), (ordinal,))?;
        device.call_method0(intern!(py, "__enter__"))?;
        let outcome = cuda.call_method0(intern!(py, "get_current_stream")).and_then(|stream| {
            // SAFETY: CuPy's current stream on that GPU, which it keeps while it is current.
            let stream = unsafe { stream_of(&stream, ordinal) }?;
            let mut own = Self { module, stream, used: Vec::new() };
            let outcome = work(&mut own);
            own.leave().and(outcome)
        });
        let none = py.None();
        device.call_method1(intern!(py, "__exit__"), (&none, &none, &none))?;
        outcome
    }

    /// Records that work on the stream may use the memory, also if a function has raised.
    fn leave(&self) -> PyResult<()> {
        Ok(self.used.iter().try_for_each(|timeline| timeline.leave(self.stream))?)
    }

    /// An array over memory of the GPU. The stream waits for what is in flight on it; the host does
    /// not, as CuPy would for a stream that the interface names.
    pub(super) fn array(
        &mut self,
        py: Python<'py>,
        memory: &Managed,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(timeline) = memory.timeline() {
            timeline.join(self.stream)?; // WAIT of CuPy for work in flight
            self.used.push(Arc::clone(timeline));
        }
        let shown = PyDeviceArray::in_order(memory.clone());
        self.module.call_method1(intern!(py, "asarray"), (shown,))
    }

    /// CuPy's function for one of NumPy's, or for one that wraps it and makes its results.
    ///
    /// # Errors
    /// `TypeError` with the way out if there is none, and for keywords that it does not know.
    pub(super) fn function(
        &self,
        function: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
        what: &str,
    ) -> PyResult<Found<'py>> {
        let py = function.py();
        let name = function.getattr(intern!(py, "__name__"))?.cast_into::<PyString>()?;
        let numpys = py.import(intern!(py, "numpy"))?.getattr_opt(&name)?;
        let wrapped = function.getattr_opt(intern!(py, "__wrapped__"))?;
        let is = |one: &Bound<'py, PyAny>| numpys.as_ref().is_some_and(|numpys| numpys.is(one));
        let takes_outputs = is(function);
        let is_known = takes_outputs || wrapped.as_ref().is_some_and(is);
        let own = self.module.getattr_opt(&name)?.filter(|_| is_known);
        let own = own.ok_or_else(|| Self::lacks(what))?;
        if takes_outputs {
            options.into_iter().flatten().try_for_each(|(name, _)| check_keyword(&name, what))?;
        }
        Ok(Found { own, takes_outputs })
    }

    /// An attribute of CuPy, if it has it.
    pub(super) fn attribute(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.module.getattr_opt(name)
    }

    /// The refusal of a function that CuPy does not have.
    pub(super) fn lacks(what: &str) -> PyErr {
        PyTypeError::new_err(format!(
            "{what}: expected a function that CuPy has too, for memory on a GPU, got one that it \
             lacks; use copies on the host, dlfield.storage(field, device='cpu')"
        ))
    }

    /// Copies values to where `mask` is true, or everywhere, by NumPy's rule of casting.
    pub(super) fn copy_to(
        &self,
        target: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
        casting: Option<&Bound<'py, PyAny>>,
        mask: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let py = target.py();
        let casting = casting.map_or(intern!(py, "same_kind").as_any(), |casting| casting);
        let mask = mask.map(|mask| self.module.call_method1(intern!(py, "asarray"), (mask,)));
        let arguments = (target, values, casting, mask.transpose()?);
        self.module.call_method1(intern!(py, "copyto"), arguments).map(drop)
    }
}

/// A function of CuPy.
pub(super) struct Found<'py> {
    pub(super) own: Bound<'py, PyAny>,
    /// True if it writes into outputs, which stand behind its operands.
    pub(super) takes_outputs: bool,
}

/// Refuses a keyword that CuPy's universal functions do not know.
fn check_keyword(name: &Bound<'_, PyAny>, what: &str) -> PyResult<()> {
    if name.eq("dtype")? || name.eq("casting")? {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!(
        "{what}: expected dtype and casting alone beside out and where, for memory on a GPU, got \
         {name}; leave it out, or use copies on the host, dlfield.storage(field, device='cpu')"
    )))
}

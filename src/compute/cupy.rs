//! CuPy at work on a GPU, in order with all work on the memory that it uses.
//!
//! The interface of an array names no stream, for which CuPy would wait on the host. CuPy's stream
//! waits instead, and its work is recorded in the timeline of the memory. The address therefore counts as
//! not exposed, and a result is freed in order, without a wait.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::operands::Operand;
use crate::cuda::Work;
use crate::device::Target;
use crate::managed::Managed;
use crate::protocol::is_plain_ndarray;
use crate::python::device_array::PyDeviceArray;
use crate::python::storage::cupy_module;
use crate::python::stream::stream_of;

/// CuPy with a GPU and its stream, which are current meanwhile.
pub(super) struct Cupy<'py> {
    module: Bound<'py, PyModule>,
    target: Target,
    own: Work,
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
            let target = Target::Gpu(Some(ordinal));
            let mut cupy = Self { module, target, own: Work::on(stream) };
            let outcome = work(&mut cupy);
            cupy.own.leave().map_err(PyErr::from).and(outcome)
        });
        let none = py.None();
        device.call_method1(intern!(py, "__exit__"), (&none, &none, &none))?;
        outcome
    }

    /// The memory of an operand on the GPU; `None` for a number.
    pub(super) fn memory(
        &self,
        py: Python<'py>,
        operand: &Operand<'py>,
        what: &str,
    ) -> PyResult<Option<Managed>> {
        Ok(operand.memory_at(py, self.target, what)?.cloned())
    }

    /// A number as CuPy takes it, which takes no array of NumPy.
    pub(super) fn number(number: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match is_plain_ndarray(number) {
            true => number.get_item(PyTuple::empty(number.py())),
            false => Ok(number.clone()),
        }
    }

    /// An array over memory of the GPU. The stream waits for what is in flight on it; the host does
    /// not, as CuPy would for a stream that the interface names.
    pub(super) fn array(
        &mut self,
        py: Python<'py>,
        memory: &Managed,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.own.join(memory.timeline())?;
        let shown = PyDeviceArray::in_order(memory.clone(), false, Arc::new(AtomicBool::new(true)));
        self.module.call_method1(intern!(py, "asarray"), (shown,))
    }

    /// CuPy's function for one of NumPy's, or for one that wraps it and makes its results; true if it
    /// writes into outputs, which stand behind its operands.
    ///
    /// # Errors
    /// `TypeError` with the way out if there is none, and for keywords that it does not know.
    pub(super) fn function(
        &self,
        function: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
        what: &str,
    ) -> PyResult<(Bound<'py, PyAny>, bool)> {
        let py = function.py();
        let name = function.getattr(intern!(py, "__name__"))?.cast_into::<PyString>()?;
        let takes_outputs = self.is_numpys(&name, function)?;
        let wrapped = function.getattr_opt(intern!(py, "__wrapped__"))?;
        let numpys = wrapped.as_ref().filter(|_| !takes_outputs).unwrap_or(function);
        let own = self.attribute(&name.to_cow()?, Some(numpys), what)?;
        if takes_outputs {
            options.into_iter().flatten().try_for_each(|(name, _)| check_keyword(&name, what))?;
        }
        Ok((own, takes_outputs))
    }

    /// CuPy's attribute such as `sum` or `add.reduce`, the first part of which stands for a function
    /// of NumPy if one is passed.
    ///
    /// # Errors
    /// `TypeError` with the way out if there is none.
    pub(super) fn attribute(
        &self,
        path: &str,
        numpys: Option<&Bound<'py, PyAny>>,
        what: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut parts = path.split('.');
        let first = PyString::new(self.module.py(), parts.next().unwrap_or_default());
        let is_known = numpys.map(|numpys| self.is_numpys(&first, numpys)).transpose()?;
        let own = self.module.getattr_opt(&first)?.filter(|_| is_known != Some(false));
        let own = parts.try_fold(own, |own, part| match own {
            Some(own) => own.getattr_opt(part),
            None => Ok(None),
        })?;
        own.ok_or_else(|| {
            PyTypeError::new_err(format!(
                "{what}: expected a function that CuPy has too, for memory on a GPU, got one that \
                 it lacks; use copies on the host, dlfield.storage(field, device='cpu')"
            ))
        })
    }

    /// True for the function of that name in NumPy.
    fn is_numpys(
        &self,
        name: &Bound<'py, PyString>,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<bool> {
        let py = function.py();
        let numpys = py.import(intern!(py, "numpy"))?.getattr_opt(name)?;
        Ok(numpys.is_some_and(|numpys| numpys.is(function)))
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

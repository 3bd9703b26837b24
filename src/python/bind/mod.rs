//! A bound stencil: takes arrays of any framework, resolves them, and calls the stencil's `run`.
//!
//! ```text
//! call ─read─▶ a value a name ─argument─▶ Incoming ─resolve─▶ CallPlan ─┐
//!                  release ◀─ touch ◀─ copy back ◀─ run ◀─ stage ◀─ acquire
//! ```

mod declare;
mod read;
mod scratch;
mod around;
mod argument;
mod scalar;
mod warn;
mod stage;
mod device_array;
mod send;
mod show;

use std::collections::HashMap;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::cuda::{device_count, ordinal_of, synchronize};
use crate::device::Target;
use crate::stencil::{CallPlan, OnMismatch, Remembered, resolve};
use argument::Incoming;
use around::{first_of, release};
use declare::Declared;
use read::Values;
use scratch::Scratch;

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("LayoutWarning", py.get_type::<warn::LayoutWarning>())?;
    module.add("MemoryCopyWarning", py.get_type::<warn::MemoryCopyWarning>())?;
    module.add("DeviceCopyWarning", py.get_type::<warn::DeviceCopyWarning>())?;
    module.add_class::<BoundStencil>()
}

/// A stencil that takes arrays of any framework. Made by `dlfield.bind`.
///
/// Call it with the stencil's own arguments, and optionally `origin`, `domain` and `exec_info` as
/// for the stencil itself. Nothing is copied unless `bind` was told to; every check is made at
/// every call.
#[pyclass(frozen, module = "dlfield")]
pub(super) struct BoundStencil {
    stencil: Py<PyAny>,
    /// What has `run`, and for a device perhaps `to_device`, `to_host` and `synchronize`.
    runner: Py<PyAny>,
    /// Takes the place of `run` where times are asked for.
    own_call: Option<Py<PyAny>>,
    /// Waits until what `run` started is done.
    synchronize: Option<Py<PyAny>>,
    declared: Declared,
    scratch: Scratch,
    last: Remembered,
}

#[pymethods]
impl BoundStencil {
    /// `declaration`: a `dlfield.declaration.Declaration`; `dims`: the stencil's name for each of the
    /// user's; `copy_device`, `copy_memory`: whether a mismatch is answered with a copy.
    #[new]
    #[pyo3(signature = (stencil, declaration, *, dims, copy_device, copy_memory))]
    fn new(
        stencil: Py<PyAny>,
        declaration: &Bound<'_, PyAny>,
        dims: HashMap<String, String>,
        copy_device: bool,
        copy_memory: bool,
    ) -> PyResult<Self> {
        let py = declaration.py();
        let answer = |copy| if copy { OnMismatch::Copy } else { OnMismatch::Raise };
        let runner = declaration.getattr(intern!(py, "run"))?;
        let own_call = declaration.getattr(intern!(py, "own_call"))?;
        Ok(Self {
            stencil,
            synchronize: runner.getattr_opt(intern!(py, "synchronize"))?.map(Bound::unbind),
            own_call: Some(own_call.unbind()).filter(|call| !call.is_none(py)),
            runner: runner.unbind(),
            scratch: Scratch::default(),
            last: Remembered::default(),
            declared: Declared::read(declaration, &dims, answer(copy_device), answer(copy_memory))?,
        })
    }

    /// The stencil that was bound.
    #[getter]
    fn stencil(&self, py: Python<'_>) -> Py<PyAny> {
        self.stencil.clone_ref(py)
    }

    /// Names of the fields and parameters, in positional order.
    #[getter]
    fn argument_names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.declared.names)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<dlfield.bind({}) of ({})>", self.declared.spec.name, self.listed(py))
    }

    #[pyo3(signature = (*args, origin = None, domain = None, exec_info = None, _stacklevel = 1, **kwargs))]
    fn __call__(
        &self,
        args: &Bound<'_, PyTuple>,
        origin: Option<&Bound<'_, PyAny>>,
        domain: Option<&Bound<'_, PyAny>>,
        exec_info: Option<&Bound<'_, PyAny>>,
        _stacklevel: i32,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let py = args.py();
        let values = self.assign(args, kwargs)?;
        let request = self.request(origin, domain, false)?;
        self.check_complete(py, &values, &request)?;
        let scalars = self.scalars(py, &values)?;
        let mut incoming = self.incoming(&values, false)?;
        let plan = self.last.resolve(&self.declared.spec, &incoming.arguments, &request)?;
        self.check_stageable(py, &plan)?;
        incoming.disturbed |= self.warn(py, &plan, _stacklevel)?;
        let acquired = incoming.around.acquire(py)?;
        let outcome = self.compute(py, &incoming, &scalars, &plan, exec_info);
        let outcome = release(py, acquired, outcome);
        self.scratch.put(incoming.arguments);
        outcome
    }

    /// What a call with these arguments would do, without doing it. The values are not read, and
    /// nothing is acquired. With `_functional`, fields that are only written may be missing.
    ///
    /// Returns a dict: `domain`, `halo`, `axes` of the iteration, `slow` (warnings) and `fields`.
    #[pyo3(signature = (*args, origin = None, domain = None, _functional = false, **kwargs))]
    fn plan<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        origin: Option<&Bound<'py, PyAny>>,
        domain: Option<&Bound<'py, PyAny>>,
        _functional: bool,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let py = args.py();
        let values = self.assign(args, kwargs)?;
        let request = self.request(origin, domain, _functional)?;
        self.check_complete(py, &values, &request)?;
        self.scalars(py, &values)?;
        let incoming = self.incoming(&values, true)?;
        let plan = resolve(&self.declared.spec, &incoming.arguments, &request)?;
        self.check_stageable(py, &plan)?;
        self.shown(py, &incoming, &plan)
    }

    /// Arguments by name, as a call with them would read them.
    #[pyo3(signature = (*args, **kwargs))]
    fn arguments<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let named = PyDict::new(args.py());
        for (name, value) in self.declared.names.iter().zip(self.assign(args, kwargs)?) {
            if let Some(value) = value {
                named.set_item(name, value)?;
            }
        }
        Ok(named)
    }

    /// Calls the stencil with outputs that it makes itself, and gives them back.
    ///
    /// See `dlfield.functional`.
    #[pyo3(signature = (*args, **kwargs))]
    fn functional<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let call = py.import(intern!(py, "dlfield.functional"))?.getattr(intern!(py, "call"))?;
        call.call((slf, args, kwargs), None)
    }
}

impl BoundStencil {
    /// The names of the arguments, for messages.
    fn listed(&self, py: Python<'_>) -> String {
        let names: Vec<_> =
            self.declared.names.iter().map(|name| name.bind(py).to_string()).collect();
        names.join(", ")
    }

    /// Everything between acquire and release.
    fn compute<'py>(
        &self,
        py: Python<'py>,
        incoming: &Incoming<'py>,
        scalars: &Values<'py>,
        plan: &CallPlan,
        exec_info: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let staged = self.stage(py, incoming, plan)?;
        let keywords = self.keywords(py, incoming, scalars, plan, &staged)?;
        let outcome = self.run(py, &keywords, exec_info);
        let outcome = first_of(py, outcome, self.wait(py));
        let outcome = first_of(py, outcome, self.revoke(py, incoming, &keywords));
        let outcome = self.copy_back(py, &staged, outcome);
        incoming.around.touch(py, outcome)
    }

    /// Until what `run` has started is done: as the stencil says it, and for a GPU whose stencil does not
    /// say it all that the GPU has to do.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(wait) = &self.synchronize {
            return wait.call0(py).map(drop);
        }
        match self.declared.spec.target {
            Target::Gpu(_) if device_count().is_ok() => {
                let ordinal = ordinal_of(self.declared.spec.target)?;
                Ok(py.detach(|| synchronize(ordinal))?) // WAIT for all work on the GPU
            }
            _ => Ok(()),
        }
    }
}

//! A bound stencil: takes arrays of any framework, resolves them, and calls the stencil's `run`.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::declared::{Declared, OFFSET_PROVIDER};
use super::footprint::CallFootprints;
use super::hooks::{HookSet, release};
use super::incoming::IncomingFields;
use super::last_call::LastCall;
use super::plan::PyCallPlan;
use super::planned::Planned;
use super::run::Run;
use super::runner::Runner;
use super::staged::Staged;
use super::values::{Passed, Values, by_name};
use super::warnings::SlowWarned;
use crate::interpreter::Inside;
use crate::stencil::resolve;

/// Arguments of `dlfield.stencils.binding.rebind`.
type Rebound<'py> = (Bound<'py, PyAny>, Bound<'py, PyDict>);

/// A stencil that takes arrays of any framework. Made by `dlfield.bind`.
///
/// Call it with the stencil's own arguments, and optionally `origin`, `domain` and `exec_info` as
/// for the stencil itself. Nothing is copied unless `bind` was told to; every check is made at
/// every call.
#[pyclass(frozen, dict, weakref, module = "dlfield")]
pub(super) struct BoundStencil {
    /// The stencil that was bound.
    #[pyo3(get)]
    stencil: Py<PyAny>,
    /// The keywords of `dlfield.bind` that bind it again.
    options: Py<PyDict>,
    declared: Declared,
    runner: Runner,
    last_call: LastCall,
    slow_warned: SlowWarned,
}

impl BoundStencil {
    /// The nine steps of docs/stencils.md, "What a call does"; of a call that is the last one again,
    /// two.
    fn call(
        &self,
        passed: &Passed<'_, '_>,
        exec_info: Option<&Bound<'_, PyAny>>,
        stack_level: i32,
    ) -> PyResult<()> {
        let (py, Self { declared, runner, .. }) = (passed.args.py(), self);
        let _inside = Inside::enter(py);
        // 1. Read.
        let values = Values::read(declared, passed)?;
        if let Some(keywords) = self.last_call.keywords(py, declared, &values)? {
            return runner.run(py, &keywords, exec_info);
        }
        let fields = IncomingFields::import(py, declared, &values, true)?;
        // 2. Resolve and check.
        let (plan, again) = self.last_call.plan(py, declared, &values, &fields)?;
        let mut call = Planned::new(py, declared, runner, values, fields, plan)?;
        // 3. Warn.
        call.warn(py, &self.slow_warned, stack_level)?;
        // 4. Acquire.
        let hooks = HookSet::new(py, &call.fields);
        let acquired = hooks.acquire(py)?;
        let compute = || {
            // 5. Stage.
            let staged = Staged::copy(py, &call)?;
            let run = Run::new(py, &call, &staged)?;
            if let Some(last) = &again {
                self.last_call.prepare(last, &run)?;
            }
            // 6. Run, and wait.
            let outcome = run.run(py, exec_info);
            // 7. Copy back.
            let outcome = staged.copy_back(py, outcome);
            // 8. Touch.
            call.note_written(py, hooks.touch(py, outcome))
        };
        // 9. Release.
        release(py, acquired, compute())
    }

    /// The arguments that were given, under their names.
    fn named<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        functional: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let named = PyDict::new(args.py());
        let values = by_name(&self.declared, args, kwargs, functional)?;
        for (name, value) in self.declared.names.iter().zip(values) {
            if let Some(value) = value {
                named.set_item(name, value)?;
            }
        }
        let takes = self.declared.connectivities.as_ref().and(kwargs);
        if let Some(given) =
            takes.map(|given| given.get_item(OFFSET_PROVIDER)).transpose()?.flatten()
        {
            named.set_item(OFFSET_PROVIDER, given)?;
        }
        Ok(named)
    }

    /// Steps 1 and 2 of a call. No element is read.
    fn planned(&self, passed: &Passed<'_, '_>) -> PyResult<PyCallPlan> {
        let (py, Self { declared, runner, .. }) = (passed.args.py(), self);
        let _inside = Inside::enter(py);
        let values = Values::read(declared, passed)?;
        let fields = IncomingFields::import(py, declared, &values, false)?;
        let footprints = CallFootprints { declared, values: &values, py };
        let (plan, _) = resolve(&declared.spec, fields.arguments(), &values.options, &footprints)?;
        let call = Planned::new(py, declared, runner, values, fields, Arc::new(plan))?;
        PyCallPlan::new(py, &call)
    }
}

#[pymethods]
impl BoundStencil {
    /// `declaration`: a `dlfield.stencils.declaration.Declaration`; `dims`: the stencil's name for each of
    /// the user's; `copy_device`, `copy_memory`: whether a mismatch is answered with a copy;
    /// `options`: the keywords of `dlfield.bind` that bind the stencil again.
    #[new]
    #[pyo3(signature = (stencil, declaration, *, dims, copy_device, copy_memory, options))]
    fn new(
        stencil: Py<PyAny>,
        declaration: &Bound<'_, PyAny>,
        dims: HashMap<String, String>,
        copy_device: bool,
        copy_memory: bool,
        options: Py<PyDict>,
    ) -> PyResult<Self> {
        let _inside = Inside::enter(declaration.py());
        let declared = Declared::read(declaration, &dims, copy_device, copy_memory)?;
        let runner = Runner::read(declaration, declared.spec.target)?;
        Ok(Self {
            stencil,
            options,
            declared,
            runner,
            last_call: LastCall::default(),
            slow_warned: SlowWarned::default(),
        })
    }

    /// Visits every object that may refer back to this one. There is nothing to clear: it does not
    /// change, so that every cycle contains another object that can be cleared.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.stencil)?;
        visit.call(&self.options)?;
        self.declared.traverse(&visit)?;
        self.runner.traverse(&visit)
    }

    /// Pickles and copies the stencil, and binds it again.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Rebound<'py>)> {
        let rebind = py.import("dlfield.stencils.binding")?.getattr("rebind")?;
        Ok((rebind, (self.stencil.bind(py).clone(), self.options.bind(py).clone())))
    }

    /// Names of the fields and parameters, in positional order.
    #[getter]
    fn argument_names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.declared.parameters)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<dlfield.bind({}) of ({})>", self.declared.spec.name, self.declared.listed(py))
    }

    #[pyo3(signature = (*args, origin = None, domain = None, exec_info = None, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        origin: Option<&Bound<'py, PyAny>>,
        domain: Option<&Bound<'py, PyAny>>,
        exec_info: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        let passed = Passed { args, kwargs, origin, domain, functional: false };
        self.call(&passed, exec_info, 1)
    }

    /// Plan a call with these arguments, without making it; see `dlfield.PlanExplanation`.
    ///
    /// The values are not read, and nothing is acquired. Raises the errors of the call.
    #[pyo3(signature = (*args, origin = None, domain = None, **kwargs))]
    fn plan<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        origin: Option<&Bound<'py, PyAny>>,
        domain: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<PyCallPlan> {
        self.planned(&Passed { args, kwargs, origin, domain, functional: false })
    }

    /// Give the arguments by name, as a call would read them.
    #[pyo3(signature = (*args, **kwargs))]
    fn arguments<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.named(args, kwargs, false)
    }

    /// Call the stencil with outputs that are made here, and return them.
    ///
    /// Parameters
    /// ----------
    /// *args, **kwargs
    ///     As for a call, without the outputs: arguments without a name are the inputs in the order of
    ///     the definition, or all arguments. A field that is read and written is copied, and so is an
    ///     output that you pass: points that the stencil does not write keep their values. `origin`,
    ///     `domain` and `exec_info` as for a call. `like` selects the framework of the results:
    ///     "numpy", "torch", "jax", "cupy", "xarray" or "storage", or an array of it; by default that
    ///     of the first field argument.
    ///
    /// Returns
    /// -------
    /// array or tuple of arrays
    ///     The outputs in the order of the definition; a single one by itself, those of a collection
    ///     as one. A new output has the points of the domain and around it the widest halo of the
    ///     fields, filled with zeros. Its dimensions are ordered as in the first field argument if that
    ///     has the same, and its memory as the backend prefers. A DataArray gets the dims and
    ///     coordinates of the first field argument; one that was passed for an output keeps its own.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     For arguments without a name that are more than the inputs and fewer than all.
    /// ValueError
    ///     If a new output has a dimension that no given field has, and there is no `domain`. For an
    ///     unknown `like`.
    #[pyo3(signature = (*args, **kwargs))]
    fn functional<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let _inside = Inside::enter(py);
        let call =
            py.import(intern!(py, "dlfield.stencils.functional"))?.getattr(intern!(py, "call"))?;
        call.call((slf, args, kwargs), None)
    }
}

/// As `BoundStencil.arguments`, for a call whose outputs may be missing.
///
/// Arguments without a name are the inputs, or all.
#[pyfunction]
pub(super) fn arguments_functional<'py>(
    run: &Bound<'py, BoundStencil>,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    run.get().named(args, Some(kwargs), true)
}

/// As `BoundStencil.plan`, for a call whose outputs may be missing.
#[pyfunction]
#[pyo3(signature = (run, args, kwargs, *, origin = None, domain = None))]
pub(super) fn plan_functional<'py>(
    run: &Bound<'py, BoundStencil>,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
    origin: Option<&Bound<'py, PyAny>>,
    domain: Option<&Bound<'py, PyAny>>,
) -> PyResult<PyCallPlan> {
    let kwargs = Some(kwargs);
    run.get().planned(&Passed { args, kwargs, origin, domain, functional: true })
}

/// Call a bound stencil by the names of its arguments.
///
/// Warnings name the line of the caller's caller, which called `run.functional(...)`.
#[pyfunction]
#[pyo3(signature = (run, kwargs, *, origin = None, domain = None, exec_info = None))]
pub(super) fn call_functional<'py>(
    run: &Bound<'py, BoundStencil>,
    kwargs: &Bound<'py, PyDict>,
    origin: Option<&Bound<'py, PyAny>>,
    domain: Option<&Bound<'py, PyAny>>,
    exec_info: Option<&Bound<'py, PyAny>>,
) -> PyResult<()> {
    let args = &PyTuple::empty(run.py());
    let passed = Passed { args, kwargs: Some(kwargs), origin, domain, functional: false };
    run.get().call(&passed, exec_info, 2)
}

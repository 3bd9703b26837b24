//! A bound stencil: takes arrays of any framework, resolves them, and calls the stencil's `run`.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::declared::Declared;
use super::footprint::CallFootprints;
use super::hooks::{HookSet, release};
use super::incoming::IncomingFields;
use super::last_call::LastCall;
use super::partial::Partial;
use super::plan::PyCallPlan;
use super::planned::Planned;
use super::run::Run;
use super::runner::Runner;
use super::running::Running;
use super::staged::Staged;
use super::values::{Passed, Values, dict_by_name};
use super::warnings::SlowWarned;
use crate::interpreter::Inside;
use crate::layout::Extents;
use crate::stencil::resolve;

/// A stencil that takes arrays of any framework. Made by `dlfield.bind`.
///
/// Call it with the stencil's own arguments, and optionally `origin`, `domain` and `exec_info` as
/// for the stencil itself. Nothing is copied unless `bind` was told to; every check is made at
/// every call.
#[pyclass(frozen, dict, weakref, subclass, module = "dlfield")]
pub(super) struct BoundStencil {
    /// The stencil that was bound.
    #[pyo3(get)]
    stencil: Py<PyAny>,
    /// The declaration of the stencil, a `dlfield.stencils.declaration.Declaration`.
    ///
    /// It has `fields` and `scalars` with their names, dims, dtypes and access, `reach()`, and more.
    #[pyo3(get)]
    pub(super) declaration: Py<PyAny>,
    /// The keywords of `dlfield.stencils.binding.rebind` that bind it again.
    pub(super) options: Py<PyDict>,
    pub(super) declared: Declared,
    runner: Runner,
    last_call: LastCall,
    slow_warned: SlowWarned,
}

impl BoundStencil {
    /// The nine steps of docs/stencils.md, "What a call does"; of a call that is the last one again,
    /// two.
    pub(super) fn call(
        &self,
        passed: &Passed<'_, '_>,
        exec_info: Option<&Bound<'_, PyAny>>,
        stack_level: i32,
    ) -> PyResult<()> {
        let _inside = Inside::enter(passed.args.py());
        // 1. Read.
        let values = Values::read(&self.declared, passed)?;
        self.call_with(passed.args.py(), values, exec_info, stack_level)
    }

    /// The steps of a call whose values have been read.
    #[inline]
    pub(super) fn call_with(
        &self,
        py: Python<'_>,
        values: Values<'_>,
        exec_info: Option<&Bound<'_, PyAny>>,
        stack_level: i32,
    ) -> PyResult<()> {
        match self.repeat(py, &values, exec_info, &[])? {
            true => Ok(()),
            false => self.call_planned(py, values, exec_info, stack_level),
        }
    }

    /// The steps of a call that is not the last one again.
    fn call_planned(
        &self,
        py: Python<'_>,
        values: Values<'_>,
        exec_info: Option<&Bound<'_, PyAny>>,
        stack_level: i32,
    ) -> PyResult<()> {
        let (_running, Self { declared, runner, .. }) = (Running::enter(&self.stencil), self);
        let exec_info = declared.partial.exec_info(py, exec_info)?;
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

    /// The call, if it is the last one again; see `LastCall::repeat`.
    pub(super) fn repeat(
        &self,
        py: Python<'_>,
        values: &Values<'_>,
        exec_info: Option<&Bound<'_, PyAny>>,
        shapes: &[(usize, Extents)],
    ) -> PyResult<bool> {
        let (_running, Self { declared, runner, .. }) = (Running::enter(&self.stencil), self);
        let exec_info = declared.partial.exec_info(py, exec_info)?;
        self.last_call.repeat(py, declared, runner, values, exec_info, shapes)
    }

    /// Calls a function of `dlfield.stencils.memory`.
    fn memory<'py>(
        py: Python<'py>,
        function: &str,
        arguments: impl pyo3::call::PyCallArgs<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _inside = Inside::enter(py);
        py.import(intern!(py, "dlfield.stencils.memory"))?.call_method1(function, arguments)
    }

    /// Steps 1 and 2 of a call. No element is read.
    pub(super) fn planned(&self, passed: &Passed<'_, '_>) -> PyResult<PyCallPlan> {
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
    /// `options`: the keywords that bind the stencil again; `partial`: arguments that every call gets,
    /// by name, with the number of those that were given without one.
    #[new]
    #[pyo3(signature = (stencil, declaration, *, dims, copy_device, copy_memory, options, partial = None))]
    fn new(
        stencil: Py<PyAny>,
        declaration: &Bound<'_, PyAny>,
        dims: HashMap<String, String>,
        copy_device: bool,
        copy_memory: bool,
        options: Py<PyDict>,
        partial: Option<(usize, Bound<'_, PyDict>)>,
    ) -> PyResult<Self> {
        let _inside = Inside::enter(declaration.py());
        let partial = partial.map_or_else(|| Ok(Partial::default()), Partial::read)?;
        let declared = Declared::read(declaration, &dims, copy_device, copy_memory, partial)?;
        let runner = Runner::read(declaration, declared.spec.target)?;
        Ok(Self {
            stencil,
            declaration: declaration.clone().unbind(),
            options,
            declared,
            runner,
            last_call: LastCall::default(),
            slow_warned: SlowWarned::default(),
        })
    }

    /// Visits the objects that may refer back to this one, except the connectivities of the last call.
    /// There is nothing to clear: every cycle contains another object that can be cleared.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.stencil)?;
        visit.call(&self.declaration)?;
        visit.call(&self.options)?;
        self.declared.traverse(&visit)?;
        self.runner.traverse(&visit)
    }

    /// Pickles what the stencil is compiled from, and binds it again.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let travel = slf.py().import("dlfield.stencils.travel")?;
        travel.call_method1("reduced", (slf, &slf.get().options))
    }

    /// Bind the stencil again.
    fn __copy__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let binding = py.import("dlfield.stencils.binding")?;
        binding.call_method1("rebind", (&self.stencil, &self.options))
    }

    /// Copy the stencil and what it was bound with, and bind it again.
    fn __deepcopy__<'py>(&self, memo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = memo.py();
        let deepcopy = py.import("copy")?.getattr("deepcopy")?;
        let stencil = deepcopy.call1((&self.stencil, memo))?;
        let options = deepcopy.call1((&self.options, memo))?;
        py.import("dlfield.stencils.binding")?.call_method1("rebind", (stencil, options))
    }

    /// Return an attribute of the stencil that a bound stencil lacks.
    fn __getattr__<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let binding = slf.py().import(intern!(slf.py(), "dlfield.stencils.binding"))?;
        let own = (slf, &slf.get().options, name);
        binding.call_method1(intern!(slf.py(), "attribute"), own)
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

    /// Return the arguments by name, as a call would read them.
    #[pyo3(signature = (*args, **kwargs))]
    fn arguments<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        dict_by_name(&self.declared, args, kwargs, false)
    }

    /// Copy an array into memory as this stencil wants it, under the names that the array has.
    ///
    /// Parameters
    /// ----------
    /// data
    ///     Anything that `dlfield.storage` takes. Without names its axes are those of the field in the
    ///     order of the definition.
    /// field : str, optional
    ///     The argument that it is for. By default the first field with these dimensions.
    /// **options
    ///     As for `dlfield.storage`; they override what the stencil wants.
    ///
    /// Returns
    /// -------
    /// Storage
    ///     A copy in the order of memory, with the alignment and on the device that suit the stencil.
    ///     Dtype, dims and halo are those of the data.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If no field of the stencil has these dimensions.
    #[pyo3(signature = (data, *, field = None, **options))]
    fn storage<'py>(
        slf: &Bound<'py, Self>,
        data: &Bound<'py, PyAny>,
        field: Option<&str>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::memory(slf.py(), "copied", (slf, data, field, options))
    }

    /// Make a storage of zeros as this stencil wants its memory.
    ///
    /// Parameters
    /// ----------
    /// shape : sequence of int
    ///     Extents of the dimensions, with the halo.
    /// dtype : optional
    ///     By default that of the field.
    /// field : str, optional
    ///     The argument that it is for. By default the first field with these, or as many, dimensions.
    /// **options
    ///     As for `dlfield.zeros`; they override what the stencil wants. `dims` are your names, as in
    ///     the `dims` of `bind`, in any order; by default those of the field in the order of the
    ///     definition, under your names where there is one for each.
    ///
    /// Returns
    /// -------
    /// Storage
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If no field of the stencil has these dimensions.
    #[pyo3(signature = (shape, dtype = None, *, field = None, **options))]
    fn zeros<'py>(
        slf: &Bound<'py, Self>,
        shape: &Bound<'py, PyAny>,
        dtype: Option<&Bound<'py, PyAny>>,
        field: Option<&str>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::memory(slf.py(), "made", (slf, "zeros", shape, dtype, field, options))
    }

    /// As `zeros`, without values.
    #[pyo3(signature = (shape, dtype = None, *, field = None, **options))]
    fn empty<'py>(
        slf: &Bound<'py, Self>,
        shape: &Bound<'py, PyAny>,
        dtype: Option<&Bound<'py, PyAny>>,
        field: Option<&str>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::memory(slf.py(), "made", (slf, "empty", shape, dtype, field, options))
    }

    /// Return the shapes of the outputs that belong to inputs of these shapes.
    ///
    /// This is arithmetic on extents, which may be symbols, such as torch's `SymInt`.
    ///
    /// Parameters
    /// ----------
    /// shapes
    ///     By name of the fields that are read, or in the order of the definition.
    /// halo
    ///     Points around the domain in every array: a number, a number or a pair for each axis, or a
    ///     dict by axis. The reach of the stencil by default.
    /// dims
    ///     Order of the axes in the arrays, such as "KJI"; the declared order by default.
    ///
    /// Returns
    /// -------
    /// dict
    ///     By name of the outputs, in the order of the definition.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     For shapes, a halo or an order that do not fit the stencil, and for an output along an axis
    ///     that no input has.
    #[pyo3(signature = (shapes, *, halo = None, dims = None))]
    fn outputs<'py>(
        slf: &Bound<'py, Self>,
        shapes: &Bound<'py, PyAny>,
        halo: Option<&Bound<'py, PyAny>>,
        dims: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let _inside = Inside::enter(py);
        let outputs = py.import("dlfield.stencils.halos")?.getattr("outputs")?;
        outputs.call1((slf, shapes, halo, dims))
    }
}

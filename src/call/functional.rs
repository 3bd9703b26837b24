//! Functions that the functional form of a call is made of: see `dlfield.stencils.functional`.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::bound_stencil::BoundStencil;
use super::plan::PyCallPlan;
use super::values::{Passed, dict_by_name};

/// As `BoundStencil.arguments`, for a call whose outputs may be missing.
///
/// Arguments without a name are the inputs, or all.
#[pyfunction]
pub(super) fn arguments_functional<'py>(
    run: &Bound<'py, BoundStencil>,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    dict_by_name(&run.get().declared, args, Some(kwargs), true)
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

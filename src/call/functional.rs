//! The functional form of a call, which makes its outputs and returns them. A call that comes again
//! runs here by the plan that was kept (`functional_plan`); any other goes to
//! `dlfield.stencils.functional`.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::bound_stencil::BoundStencil;
use super::declared::OFFSET_PROVIDER;
use super::functional_plan::FunctionalPlan;
use super::plan::PyCallPlan;
use super::values::{Passed, by_name, dict_by_name, place};
use crate::interpreter::Inside;

/// The attribute of a bound stencil that keeps the plan of its last functional call.
const KEPT: &str = "_last_functional";
/// A call with one of these is left to `dlfield.stencils.functional`.
const OTHER_OPTIONS: [&str; 4] = ["like", "halo", "exec_info", OFFSET_PROVIDER];

/// Makes a call that repeats the last one, and returns its outputs. `None` for a call that needs
/// another plan, or has one of `OTHER_OPTIONS`.
fn again<'py>(
    run: &Bound<'py, BoundStencil>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (py, declared) = (run.py(), &run.get().declared);
    let attributes = run.getattr(intern!(py, "__dict__"))?.cast_into::<PyDict>()?;
    let Some(Ok(plan)) =
        attributes.get_item(intern!(py, KEPT))?.map(Bound::cast_into::<FunctionalPlan>)
    else {
        return Ok(None);
    };
    let Some(asked) = plan.get().asked_of(run) else { return Ok(None) };
    let (mut origin, mut domain, mut named) = (None, None, None);
    if let Some(given) = kwargs {
        for option in OTHER_OPTIONS {
            if given.contains(option)? {
                return Ok(None);
            }
        }
        let own = given.copy()?;
        (origin, domain) = (taken(&own, "origin")?, taken(&own, "domain")?);
        named = Some(own);
    }
    let named = by_name(declared, args, named.as_ref(), true)?;
    let options = place(declared, py, origin.as_ref(), domain.as_ref(), true)?;
    if !asked.is_of(&named, &options, None)? {
        return Ok(None);
    }
    plan.get().compute(run, named, None, None, 1).map(Some)
}

/// Takes an option out of keywords.
fn taken<'py>(own: &Bound<'py, PyDict>, option: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let value = own.get_item(option)?;
    if value.is_some() {
        own.del_item(option)?;
    }
    Ok(value.filter(|value| !value.is_none()))
}

#[pymethods]
impl BoundStencil {
    /// Call the stencil with outputs that are made here, and return them.
    ///
    /// Parameters
    /// ----------
    /// *args, **kwargs
    ///     As for a call, without the outputs: arguments without a name are the inputs in the order of
    ///     the definition, or all arguments. A field that is read and written is copied, and so is an
    ///     output that you pass: points that the stencil does not write keep their values. `origin`,
    ///     `domain` and `exec_info` are as for a call. Instead of `origin` and `domain`, `halo` gives
    ///     the points around the domain in arrays that have no halo of their own. `like` selects the
    ///     framework of the results: "numpy", "torch", "jax", "cupy", "xarray" or "storage", or an
    ///     array of it. The default is the framework of the first field argument.
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
    ///     For arguments without a name that are more than the inputs and fewer than all. For
    ///     `halo` with `origin` or `domain`.
    /// ValueError
    ///     If a new output has a dimension that no given field has, and neither `domain` nor a
    ///     connectivity gives its extent. For an unknown `like`.
    #[pyo3(signature = (*args, **kwargs))]
    fn functional<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let _inside = Inside::enter(py);
        if let Some(outputs) = again(slf, args, kwargs)? {
            return Ok(outputs);
        }
        let call =
            py.import(intern!(py, "dlfield.stencils.functional"))?.getattr(intern!(py, "call"))?;
        call.call1((slf, args, kwargs))
    }
}

/// Return the keywords of `bind`, which must not be changed.
///
/// "partial" has the arguments that a `functools.partial` gave.
#[pyfunction]
pub(super) fn bind_options<'py>(run: &Bound<'py, BoundStencil>) -> Bound<'py, PyDict> {
    run.get().options.bind(run.py()).clone()
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
/// Warnings name the line of the caller's caller.
#[pyfunction]
#[pyo3(signature = (run, kwargs, *, origin = None, domain = None, exec_info = None))]
pub(super) fn call_by_name<'py>(
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

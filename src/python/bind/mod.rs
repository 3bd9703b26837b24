//! A bound stencil: takes arrays of any framework, resolves them, and calls GT4Py's `run`.
//!
//! ```text
//! call ──read──▶ one value a name ──argument──▶ Argument ──resolve──▶ CallPlan ──around, send──▶ run
//! ```

mod declare;
mod read;
mod around;
mod argument;
mod send;

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::field::Dim;
use crate::stencil::{Request, StencilSpec, resolve};
use declare::{DeclaredParameter, Parameter, field_spec, position};

/// A stencil that takes arrays of any framework. Made by `dlfield.bind`.
///
/// Call it with the stencil's own arguments, and optionally `origin`, `domain` and `exec_info` as
/// for the stencil itself. Nothing is copied; every check is made at every call.
#[pyclass(frozen, module = "dlfield")]
pub(super) struct BoundStencil {
    stencil: Py<PyAny>,
    spec: StencilSpec,
    /// Where each field of `spec` stands among `names`.
    fields_at: Vec<usize>,
    parameters: Vec<Parameter>,
    /// Names in the order of positional arguments.
    names: Vec<Py<PyString>>,
    /// How many of them may be given without their name.
    positional: usize,
    /// The user's names of dimensions, and the stencil's.
    dims: HashMap<Dim, Dim>,
}

#[pymethods]
impl BoundStencil {
    /// `fields`: (name, dims, data shape, dtype, access, reach below and above I, J, K);
    /// `parameters`: (name, dtype, used, default or None in a tuple).
    #[new]
    #[pyo3(signature = (stencil, name, fields, parameters, order, *, positional, min_k, typed, dims))]
    #[expect(clippy::too_many_arguments, reason = "called from one place, by name")]
    fn new(
        stencil: Py<PyAny>,
        name: String,
        fields: Vec<Bound<'_, PyAny>>,
        parameters: Vec<DeclaredParameter>,
        order: Vec<Bound<'_, PyString>>,
        positional: usize,
        min_k: i64,
        typed: bool,
        dims: HashMap<String, String>,
    ) -> PyResult<Self> {
        let fields: Vec<_> = fields.iter().map(field_spec).collect::<PyResult<_>>()?;
        let at = |name: &str| position(&order, name);
        let fields_at = fields.iter().map(|field| at(&field.name)).collect::<PyResult<_>>()?;
        let declared = parameters.into_iter().map(|one| Parameter::new(at(&one.0)?, one));
        let dim =
            |(theirs, ours): (&String, &String)| (Dim::from_name(theirs), Dim::from_name(ours));
        Ok(Self {
            stencil,
            spec: StencilSpec { name, fields, min_k, typed },
            fields_at,
            parameters: declared.collect::<PyResult<_>>()?,
            positional,
            names: order.into_iter().map(Bound::unbind).collect(),
            dims: dims.iter().map(dim).collect(),
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
        PyTuple::new(py, &self.names)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<dlfield.bind({}) of ({})>", self.spec.name, self.listed(py))
    }

    #[pyo3(signature = (*args, origin = None, domain = None, exec_info = None, **kwargs))]
    fn __call__(
        &self,
        args: &Bound<'_, PyTuple>,
        origin: Option<&Bound<'_, PyAny>>,
        domain: Option<&Bound<'_, PyAny>>,
        exec_info: Option<&Bound<'_, PyAny>>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let values = self.assign(args, kwargs)?;
        let domain = domain.map(read::domain).transpose()?;
        let request = Request { domain, origins: self.origins(origin)? };
        let scalars = self.scalars(args.py(), &values)?;
        let (arguments, around) = self.arguments(&values)?;
        let plan = resolve(&self.spec, &arguments, &request)?;
        let py = args.py();
        around.call(py, || self.send(py, &arguments, &scalars, &plan, exec_info))
    }
}

impl BoundStencil {
    /// The names of the arguments, for messages.
    fn listed(&self, py: Python<'_>) -> String {
        let names: Vec<_> = self.names.iter().map(|name| name.bind(py).to_string()).collect();
        names.join(", ")
    }
}

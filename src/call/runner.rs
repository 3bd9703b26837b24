//! The object that computes, and its own means to wait and to copy.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::hooks::first_of;
use crate::cuda::{Stream, device_count, ordinal_of, synchronize};
use crate::device::Target;
use crate::error::Error;
use crate::managed::Managed;
use crate::protocol::{Request, import};
use crate::python::numpy::array_over;
use crate::stencil::CallPlan;

pub(super) struct Runner {
    target: Target,
    /// Has `run`, and for a device perhaps `to_device`, `to_host` and `synchronize`.
    object: Py<PyAny>,
    /// Takes the place of `run` if times are asked for.
    own_call: Option<Py<PyAny>>,
    /// Waits until the work that `run` started is done.
    synchronize: Option<Py<PyAny>>,
}

impl Runner {
    /// Reads a `dlfield.stencils.declaration.Declaration`, whose device is `target`.
    pub(super) fn read(declaration: &Bound<'_, PyAny>, target: Target) -> PyResult<Self> {
        let object = declaration.getattr("run")?;
        let synchronize = object.getattr_opt("synchronize")?.map(Bound::unbind);
        let own_call = declaration.getattr("own_call")?.extract()?;
        Ok(Self { target, object: object.unbind(), own_call, synchronize })
    }

    /// Visits the object that computes, and its means.
    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.object)?;
        visit.call(&self.own_call)?;
        visit.call(&self.synchronize)
    }

    /// Calls `run`, and waits until it is done, even if it raised. The arguments are those of
    /// [`Self::start`].
    pub(super) fn run(
        &self,
        py: Python<'_>,
        keywords: &Bound<'_, PyDict>,
        exec_info: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.wait_for_user(py)?;
        first_of(py, self.start(py, keywords, exec_info), self.wait(py))
    }

    /// Waits for the stream that the user has chosen, of which the stencil knows nothing.
    fn wait_for_user(&self, py: Python<'_>) -> PyResult<()> {
        if !matches!(self.target, Target::Gpu(_)) || device_count().is_err() {
            return Ok(());
        }
        match Stream::chosen(ordinal_of(self.target)?) {
            Some(chosen) => Ok(py.detach(|| chosen.wait())?), // WAIT for the user's work
            None => Ok(()),
        }
    }

    /// Calls `run`, which does what GT4Py's own call does once it has taken the arguments apart.
    /// `keywords` are all that it takes, with None for `exec_info`. With `exec_info`, the stencil's own
    /// call if it has one, which keeps more times.
    pub(super) fn start(
        &self,
        py: Python<'_>,
        keywords: &Bound<'_, PyDict>,
        exec_info: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let own_call = self.own_call.as_ref().filter(|_| exec_info.is_some());
        if own_call.is_some() {
            for (own, theirs) in [("_domain_", "domain"), ("_origin_", "origin")] {
                let value = keywords.get_item(own)?;
                keywords.del_item(own)?;
                keywords.set_item(theirs, value)?;
            }
        }
        if let Some(exec_info) = exec_info {
            keywords.set_item(intern!(py, "exec_info"), exec_info)?;
        }
        match own_call {
            Some(call) => call.bind(py).call((), Some(keywords))?,
            None => self.object.bind(py).call_method(intern!(py, "run"), (), Some(keywords))?,
        };
        Ok(())
    }

    /// Waits until the work that `run` started is done: by the stencil's own means, or for
    /// everything on the GPU.
    pub(super) fn wait(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(wait) = &self.synchronize {
            return wait.call0(py).map(drop);
        }
        match self.target {
            Target::Gpu(_) if device_count().is_ok() => {
                let ordinal = ordinal_of(self.target)?;
                Ok(py.detach(|| synchronize(ordinal))?) // WAIT for all work on the GPU
            }
            _ => Ok(()),
        }
    }

    /// Refuses a plan with copies that cannot be made.
    pub(super) fn check_copies(&self, py: Python<'_>, plan: &CallPlan) -> PyResult<()> {
        let (Some(copy), Target::Gpu(_)) = (plan.first_copy(), self.target) else {
            return Ok(());
        };
        let has = |method| self.object.bind(py).hasattr(method);
        let own = [has(intern!(py, "to_device"))?, has(intern!(py, "to_host"))?];
        let text = copy.text();
        match (own, device_count()) {
            ([true, true], _) | ([false, false], Ok(_)) => Ok(()),
            ([false, false], Err(error)) => Err(error.about(text).into()),
            ([to_device, _], _) => Err(Error::Device(format!(
                "{text}; expected a stencil with both to_device(...) and to_host(...), or with \
                 neither, to copy it, got one without {}",
                if to_device { "to_host" } else { "to_device" }
            ))
            .into()),
        }
    }

    /// A copy that the stencil makes on its device, and the object that holds it; `None` if the
    /// stencil has no means of its own.
    pub(super) fn to_device(
        &self,
        py: Python<'_>,
        passed: &Managed,
    ) -> PyResult<Option<(Managed, Py<PyAny>)>> {
        if !self.object.bind(py).hasattr(intern!(py, "to_device"))? {
            return Ok(None);
        }
        let array = array_over(py, passed, true)?;
        let object = self.object.bind(py).call_method1(intern!(py, "to_device"), (array,))?;
        let given = import(&object, Request::computation(self.target))?.memory;
        let (expected, got) = (passed.layout().shape(), given.layout().shape());
        let here = self.target.reaches(given.device());
        if here && given.dtype() == passed.dtype() && got == expected {
            return Ok(Some((given, object.unbind())));
        }
        Err(Error::Buffer(format!(
            "to_device: expected {} of shape {expected:?} on {}, got {} of shape {got:?} on {}",
            passed.dtype(),
            self.target,
            given.dtype(),
            given.device()
        ))
        .into())
    }

    /// Copies an object of `to_device` back into the memory that was passed.
    pub(super) fn to_host(
        &self,
        py: Python<'_>,
        object: &Py<PyAny>,
        passed: &Managed,
    ) -> PyResult<()> {
        let array = array_over(py, passed, false)?;
        self.object.bind(py).call_method1(intern!(py, "to_host"), (object, array)).map(drop)
    }
}

//! The last call of a bound stencil, for one that comes again. Everything that its plan depends on is
//! its fingerprint and the basis of its footprint: a call that has the same gets the same plan.
//!
//! A call that has come twice is made ready, if its arguments are such that it may come again: the next
//! one is not planned.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;

use super::declared::Declared;
use super::footprint::{Basis, CallFootprints};
use super::incoming::IncomingFields;
use super::ready::Ready;
use super::run::Run;
use super::runner::Runner;
use super::values::Values;
use crate::layout::Extents;
use crate::short_ways::short_ways;
use crate::stencil::{CallPlan, Fingerprint, resolve};

/// The last call that was not copied.
#[derive(Default)]
pub(super) struct LastCall(Mutex<Option<Arc<Call>>>);

#[derive(Clone)]
pub(super) struct Call {
    fingerprint: Arc<Fingerprint>,
    basis: Basis,
    plan: Arc<CallPlan>,
    ready: Option<Arc<Ready>>,
}

impl LastCall {
    fn get(&self) -> Option<Arc<Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, call: Call) {
        if !short_ways() {
            return;
        }
        let call = Some(Arc::new(call));
        let before =
            std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), call);
        drop(before); // not under the lock: it may hold objects of Python's
    }

    /// Makes a call that differs from the last one in nothing but where its arrays lie. False, and
    /// nothing is done, if it has to be planned, or if the arrays had other extents than `shapes`.
    pub(super) fn repeat(
        &self,
        py: Python<'_>,
        declared: &Declared,
        runner: &Runner,
        values: &Values<'_>,
        exec_info: Option<&Bound<'_, PyAny>>,
        shapes: &[(usize, Extents)],
    ) -> PyResult<bool> {
        let is_it = |last: &Arc<Call>| last.fingerprint.has(&values.options, shapes);
        let Some(last) = self.get().filter(is_it) else {
            return Ok(false);
        };
        let Some(ready) = &last.ready else { return Ok(false) };
        if !last.basis.holds(py, values)? {
            return Ok(false);
        }
        let Some(call) = ready.call(py, &last.fingerprint, declared, values)? else {
            return Ok(false);
        };
        call.run(runner, values, exec_info).map(|()| true)
    }

    /// The plan of a call. The last call beside it, if its plan is the one.
    ///
    /// # Errors
    /// As [`resolve`].
    pub(super) fn plan(
        &self,
        py: Python<'_>,
        declared: &Declared,
        values: &Values<'_>,
        fields: &IncomingFields,
    ) -> PyResult<(Arc<CallPlan>, Option<Arc<Call>>)> {
        let (spec, options) = (&declared.spec, &values.options);
        let fits = |last: &Arc<Call>| last.fingerprint.fits(spec, fields.arguments(), options);
        if let Some(last) = self.get().filter(fits)
            && last.basis.holds(py, values)?
        {
            return Ok((Arc::clone(&last.plan), Some(last)));
        }
        let footprints = CallFootprints { declared, values, py };
        let (plan, basis) = resolve(spec, fields.arguments(), options, &footprints)?;
        let plan = Arc::new(plan);
        if plan.first_copy().is_none() {
            let fingerprint = Arc::new(Fingerprint::new(spec, fields.arguments(), options));
            self.set(Call { fingerprint, basis, plan: Arc::clone(&plan), ready: None });
        }
        Ok((plan, None))
    }

    /// Makes a call ready that has come twice, if its arguments are such that it may come again.
    pub(super) fn prepare(&self, last: &Call, run: &Run<'_, '_>) -> PyResult<()> {
        if let Some(ready) = Ready::new(run)? {
            self.set(Call { ready: Some(Arc::new(ready)), ..last.clone() });
        }
        Ok(())
    }
}

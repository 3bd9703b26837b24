//! Stencils that leave their work on the default stream of their GPU (`device_sync=False`). Work before
//! and after it is ordered on the GPU. The host waits only where somebody may use the memory without
//! knowing of that order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::hooks::first_of;
use super::incoming::Incoming;
use super::planned::Planned;
use crate::cuda::{Kind, Stream, Work, device_count, locate, ordinal_of};
use crate::error::Result;
use crate::managed::Managed;
use crate::python::device_array::PyDeviceArray;

/// The work of one call.
pub(super) struct InOrder {
    work: Work,
    /// True until the call is over. The arrays of the stencil have it, too.
    is_known: Arc<AtomicBool>,
}

impl InOrder {
    /// `None` for a stencil that is waited for.
    pub(super) fn new(call: &Planned<'_, '_>) -> Result<Option<Self>> {
        let spec = &call.declared.spec;
        if !spec.in_order || device_count().is_err() {
            return Ok(None);
        }
        let work = Work::away_on(Stream::legacy(ordinal_of(spec.target)?))?;
        Ok(Some(Self { work, is_known: Arc::new(AtomicBool::new(true)) }))
    }

    /// The array that the stencil gets for memory: its work comes after what is in flight there.
    pub(super) fn array(&mut self, memory: &Managed, readonly: bool) -> Result<PyDeviceArray> {
        self.work.join(memory.timeline())?;
        Ok(PyDeviceArray::in_order(memory.clone(), readonly, Arc::clone(&self.is_known)))
    }

    /// Calls `run`, and puts what it started into the order of the memory, even if it raised.
    pub(super) fn run(
        &self,
        call: &Planned<'_, '_>,
        keywords: &Bound<'_, PyDict>,
        exec_info: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (py, runner) = (keywords.py(), call.runner);
        let outcome = runner.start(py, keywords, exec_info);
        let left = self.work.leave();
        let waits = left.is_err() || has_to_wait(call);
        let ended = if waits { runner.wait(py) } else { Ok(()) };
        self.end(keywords);
        first_of(py, outcome, first_of(py, left.map_err(PyErr::from), ended))
    }

    /// From now on work may follow of which dlfield knows nothing, by those who have kept an array.
    fn end(&self, keywords: &Bound<'_, PyDict>) {
        keywords.clear();
        if Arc::strong_count(&self.is_known) > 1 {
            self.work.expose();
        }
        self.is_known.store(false, Ordering::Relaxed);
    }
}

/// True if the host has to wait for the stencil of a call.
fn has_to_wait(call: &Planned<'_, '_>) -> bool {
    call.plan.first_copy().is_some() || !call.fields.given().all(is_in_order)
}

/// True if everybody who uses the memory does so in the order of its timeline: no host that reaches
/// it, no functions that are called when the stencil is done, no producer without a stream.
fn is_in_order(incoming: &Incoming) -> bool {
    let memory = &incoming.argument.managed;
    let Some(timeline) = memory.timeline().filter(|_| !memory.device().is_host()) else {
        return false;
    };
    let on_gpu = || matches!(locate(memory.position()), Ok(Some((Kind::Device, _))));
    let is_own = incoming.door.is_none();
    incoming.hooks.are_own() && (is_own || (timeline.producer().is_some() && on_gpu()))
}

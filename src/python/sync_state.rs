//! `SyncState` (GDP-3): which buffer of a pair is dirty.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyType, PyWeakrefMethods, PyWeakrefReference};

use crate::interpreter::DropAttached;
use crate::protocol::read::shown;
use crate::sync::{Dirty, SyncState};

/// Which of the two buffers of a synchronised storage was modified, shared by all its views.
#[pyclass(frozen, weakref, name = "SyncState", module = "dlfield")]
#[derive(Default)]
pub(crate) struct PySyncState(Arc<SyncState>);

impl PySyncState {
    /// The object of the state of a pair: all views of the pair give the same one while it lives.
    pub(super) fn of_pair<'py>(
        py: Python<'py>,
        state: &Arc<SyncState>,
    ) -> PyResult<Bound<'py, Self>> {
        let companion = state.companion().clone();
        let weak = companion.as_ref().and_then(|companion| companion.downcast_ref::<Weak>());
        if let Some(known) = weak.and_then(|weak| weak.bind(py).upgrade()) {
            return Ok(known.cast_into()?);
        }
        let object = Bound::new(py, Self(Arc::clone(state)))?;
        Self::share(&object)?;
        Ok(object)
    }

    /// The state behind an object, which becomes the one that all views of its pair give.
    pub(super) fn share(object: &Bound<'_, Self>) -> PyResult<Arc<SyncState>> {
        let state = &object.get().0;
        let weak: Weak = DropAttached::new(PyWeakrefReference::new(object.as_any())?.unbind());
        let before = state.companion().replace(Arc::new(weak));
        drop(before); // with the lock given back
        Ok(Arc::clone(state))
    }
}

/// A weak reference, since the object holds the state that holds it.
type Weak = DropAttached<Py<PyWeakrefReference>>;

#[pymethods]
impl PySyncState {
    /// Both buffers hold the same values.
    #[classattr]
    const SYNC_CLEAN: u8 = Dirty::Neither as u8;
    /// The host buffer was modified.
    #[classattr]
    const SYNC_HOST_DIRTY: u8 = Dirty::Host as u8;
    /// The device buffer was modified.
    #[classattr]
    const SYNC_DEVICE_DIRTY: u8 = Dirty::Device as u8;

    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// One of the three constants.
    #[getter]
    fn state(&self) -> u8 {
        self.0.dirty() as u8
    }

    #[setter]
    fn set_state(&self, state: &Bound<'_, PyInt>) -> PyResult<()> {
        let dirty = match state.extract::<u8>() {
            Ok(Self::SYNC_CLEAN) => Dirty::Neither,
            Ok(Self::SYNC_HOST_DIRTY) => Dirty::Host,
            Ok(Self::SYNC_DEVICE_DIRTY) => Dirty::Device,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "state: expected SYNC_CLEAN, SYNC_HOST_DIRTY or SYNC_DEVICE_DIRTY, got {}",
                    shown(state)
                )));
            }
        };
        state.py().detach(|| self.0.set(dirty)); // another thread may hold it while it copies
        Ok(())
    }

    /// Pickle, copy and deepcopy make a state of its own with the same value.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (), u8) {
        (slf.get_type(), (), slf.get().state())
    }

    fn __setstate__(&self, state: &Bound<'_, PyInt>) -> PyResult<()> {
        self.set_state(state)
    }

    fn __repr__(&self) -> &'static str {
        match self.0.dirty() {
            Dirty::Neither => "SyncState(SYNC_CLEAN)",
            Dirty::Host => "SyncState(SYNC_HOST_DIRTY)",
            Dirty::Device => "SyncState(SYNC_DEVICE_DIRTY)",
        }
    }
}

//! `SyncState` (GDP-3): which buffer of a pair was written last.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::sync::{Newer, SyncState};

/// Which of the two buffers of a synchronised storage was modified, shared by all its views.
#[pyclass(frozen, name = "SyncState", module = "dlfield")]
#[derive(Default)]
pub(super) struct PySyncState(Arc<SyncState>);

impl PySyncState {
    /// The object for a state.
    pub(super) fn of(state: &Arc<SyncState>) -> Self {
        Self(Arc::clone(state))
    }

    pub(super) fn shared(&self) -> Arc<SyncState> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl PySyncState {
    /// Both buffers hold the same values.
    #[classattr]
    const SYNC_CLEAN: u8 = 0;
    /// The host buffer was modified.
    #[classattr]
    const SYNC_HOST_DIRTY: u8 = 1;
    /// The device buffer was modified.
    #[classattr]
    const SYNC_DEVICE_DIRTY: u8 = 2;

    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// One of the three constants.
    #[getter]
    fn state(&self, py: Python<'_>) -> u8 {
        // Without the GIL: another thread may hold the state while it copies.
        match py.detach(|| self.0.newer()) {
            Newer::Neither => Self::SYNC_CLEAN,
            Newer::Host => Self::SYNC_HOST_DIRTY,
            Newer::Device => Self::SYNC_DEVICE_DIRTY,
        }
    }

    #[setter]
    fn set_state(&self, state: &Bound<'_, PyInt>) -> PyResult<()> {
        let newer = match state.extract::<u8>() {
            Ok(Self::SYNC_CLEAN) => Newer::Neither,
            Ok(Self::SYNC_HOST_DIRTY) => Newer::Host,
            Ok(Self::SYNC_DEVICE_DIRTY) => Newer::Device,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "state: expected SYNC_CLEAN, SYNC_HOST_DIRTY or SYNC_DEVICE_DIRTY, got {state}"
                )));
            }
        };
        state.py().detach(|| self.0.set(newer));
        Ok(())
    }

    fn __repr__(&self, py: Python<'_>) -> &'static str {
        match self.state(py) {
            Self::SYNC_HOST_DIRTY => "SyncState(SYNC_HOST_DIRTY)",
            Self::SYNC_DEVICE_DIRTY => "SyncState(SYNC_DEVICE_DIRTY)",
            _ => "SyncState(SYNC_CLEAN)",
        }
    }
}

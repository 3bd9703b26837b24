//! `SyncState` (GDP-3): which buffer of a pair was written last. Host memory has one buffer, so here
//! it is only a value that can be handed over.

use std::sync::atomic::{AtomicU8, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyInt;

/// Which of the two buffers of a synchronised storage was modified, shared by all its views.
#[pyclass(frozen, module = "dlfield")]
#[derive(Default)]
pub(super) struct SyncState(AtomicU8);

#[pymethods]
impl SyncState {
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
    fn state(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_state(&self, state: &Bound<'_, PyInt>) -> PyResult<()> {
        let known = state.extract::<u8>().ok().filter(|&state| state <= Self::SYNC_DEVICE_DIRTY);
        let known = known.ok_or_else(|| {
            PyValueError::new_err(format!(
                "state: expected SYNC_CLEAN, SYNC_HOST_DIRTY or SYNC_DEVICE_DIRTY, got {state}"
            ))
        })?;
        self.0.store(known, Ordering::Relaxed);
        Ok(())
    }

    fn __repr__(&self) -> &'static str {
        match self.state() {
            Self::SYNC_HOST_DIRTY => "SyncState(SYNC_HOST_DIRTY)",
            Self::SYNC_DEVICE_DIRTY => "SyncState(SYNC_DEVICE_DIRTY)",
            _ => "SyncState(SYNC_CLEAN)",
        }
    }
}

//! `CopyBatch`: many copies between storages at once.

use pyo3::prelude::*;

use super::storage::PyStorage;
use crate::interpreter::{DropAttached, Inside};
use crate::protocol::read::{entries, wrong_type};
use crate::storage::{self, CopyBatch, Storage};

/// Many copies between storages, planned once and run any number of times.
///
/// Source n is copied to target n, as `target[...] = source` does, but dtypes and shapes must match.
/// Dimensions go by name if both have names, else by position. The batch keeps the memory alive.
///
/// Parameters
/// ----------
/// sources, targets
///     Storages, usually views of parts; as many sources as targets. No target may share an element
///     with a source or another target: the copies may run in any order and in several threads.
///
/// Raises
/// ------
/// TypeError
///     For objects that are not storages: `as_storage` shares the memory of other arrays.
/// ValueError
///     If the numbers of storages, dtypes, shapes or names do not match.
/// BufferError
///     For a read-only target, and one that overlaps a source or another target.
/// GTNoSuchBufferError
///     Unless all storages have a buffer on the host, or all have one on a GPU.
#[pyclass(frozen, name = "CopyBatch", module = "dlfield._core")]
pub(crate) struct PyCopyBatch(DropAttached<CopyBatch>);

#[pymethods]
impl PyCopyBatch {
    #[new]
    fn new(sources: &Bound<'_, PyAny>, targets: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = sources.py();
        let _inside = Inside::enter(py);
        let [sources, targets] = [storages("sources", sources)?, storages("targets", targets)?];
        let batch = py.detach(|| CopyBatch::new(&sources, &targets))?;
        Ok(Self(DropAttached::new(batch)))
    }

    /// Make the copies, without the GIL.
    ///
    /// They are made on the GPU if all storages have a buffer there and the newest values of a
    /// source are there, or if there is no other way; else on the host. That side of each pair is
    /// brought up to date first; afterwards it is the newer side of the targets.
    ///
    /// Raises
    /// ------
    /// BufferError
    ///     While another thread runs a batch with the same targets on the host, and while Rust code
    ///     uses an element.
    /// DeviceUnavailable
    ///     If CUDA fails.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.0.run())?)
    }
}

/// Find two storages that share an element.
///
/// Parameters
/// ----------
/// fields
///     Any number of storages. Those without elements share none.
///
/// Returns
/// -------
/// pair of int or None
///     The places of the two in the sequence, the lower one first.
#[pyfunction]
pub(crate) fn first_sharing(fields: &Bound<'_, PyAny>) -> PyResult<Option<(usize, usize)>> {
    let _inside = Inside::enter(fields.py());
    Ok(storage::first_sharing(&storages("fields", fields)?))
}

/// Reads a sequence of storages.
fn storages(what: &str, sequence: &Bound<'_, PyAny>) -> PyResult<Vec<Storage>> {
    let wrong = |got: &Bound<'_, PyAny>| {
        wrong_type(what, "a sequence of storages", got).followed_by("; as_storage makes them")
    };
    let entries = entries(sequence).ok_or_else(|| wrong(sequence))?;
    let storage = |entry: PyResult<Bound<'_, PyAny>>| {
        let entry = entry?;
        let storage = entry.cast::<PyStorage>().map_err(|_| wrong(&entry))?;
        Ok(storage.get().storage().clone())
    };
    entries.map(storage).collect()
}

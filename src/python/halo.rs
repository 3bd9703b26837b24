//! `HaloBoxes`: what a halo exchange of a storage sends and receives.

use std::ops::Range;

use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};

use super::options::{by_name, width};
use super::storage::PyStorage;
use crate::field::{Dims, HaloWidth};
use crate::halo::{Divided, HaloBoxes, IndexBox};
use crate::interpreter::Inside;
use crate::layout::Extents;
use crate::protocol::read::{int, ints, names};

/// The boxes of a storage for each direction in which it has a neighbour.
///
/// A direction has -1, 0 or 1 for each divided dimension, in the order of `dims`. A box is a key of
/// the storage: a slice for each axis.
///
/// Parameters
/// ----------
/// storage
///     A storage with dims and a known halo.
/// dims
///     The divided dimensions. The storage may lack some of them; it has no boxes in their directions.
/// width
///     Points that neighbours fill, by name: an int for both ends, or a pair. None, and names that
///     are missing, mean the whole halo.
/// shared
///     Points at each end of the domain that the neighbour there also has, by name.
///
/// Raises
/// ------
/// ValueError
///     For a storage without names or with an unknown halo, a width beyond the halo, and names that
///     are not among `dims`.
#[pyclass(frozen, name = "HaloBoxes", module = "dlfield._core")]
pub(crate) struct PyHaloBoxes {
    boxes: HaloBoxes,
    dims: Dims,
    /// Points that neighbours have too, for each of `dims`.
    shared: Vec<i64>,
}

#[pymethods]
impl PyHaloBoxes {
    #[new]
    #[pyo3(signature = (storage, dims, width = None, shared = None))]
    fn new(
        storage: &Bound<'_, PyStorage>,
        dims: &Bound<'_, PyAny>,
        width: Option<&Bound<'_, PyAny>>,
        shared: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let _inside = Inside::enter(dims.py());
        let dims = names(dims)?;
        let mut divided: Vec<_> = dims.iter().map(Divided::whole_halo).collect();
        for (one, width) in divided.iter_mut().zip(widths("width", width, &dims)?) {
            one.width = width;
        }
        let int = |what: &str, value: &Bound<'_, PyAny>| int(what, value);
        let shared = shared.map(|shared| by_name("shared", shared, &dims, int)).transpose()?;
        for (one, shared) in divided.iter_mut().zip(shared.into_iter().flatten()) {
            one.shared = shared.unwrap_or(0);
        }
        let storage = storage.get().storage();
        let boxes = HaloBoxes::new(storage.shape(), &storage.field(), &divided)?;
        let shared = divided.iter().map(|one| one.shared).collect();
        Ok(Self { boxes, dims, shared })
    }

    /// Return the points that the neighbour in a direction needs; None if there are none.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the domain has fewer points than the neighbour needs.
    fn send<'py>(&self, direction: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let py = direction.py();
        let sent = self.boxes.send(&steps(direction)?)?;
        sent.map(|sent| key(py, &sent)).transpose()
    }

    /// Return the points of the halo that the neighbour in a direction fills; None if there are none.
    fn receive<'py>(&self, direction: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let py = direction.py();
        let received = self.boxes.receive(&steps(direction)?);
        received.map(|received| key(py, &received)).transpose()
    }

    /// Return the points of the domain that a stencil can compute without a halo.
    ///
    /// Parameters
    /// ----------
    /// reach
    ///     Points that it reads below and above, by name: an int for both, or a pair. Dimensions that
    ///     are missing count as 0.
    fn interior<'py>(&self, reach: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        key(reach.py(), &self.boxes.interior(&self.reach(reach)?))
    }

    /// Return the points of the domain that `interior` leaves, in boxes without overlap.
    fn edges<'py>(&self, reach: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let edges = self.boxes.edges(&self.reach(reach)?);
        edges.iter().map(|edge| key(reach.py(), edge)).collect()
    }

    /// Points below and above the domain that neighbours fill.
    ///
    /// For each divided dimension; None if the storage lacks it.
    #[getter]
    fn widths(&self) -> Vec<Option<HaloWidth>> {
        self.boxes.widths().collect()
    }

    /// Points at an end of the domain that the neighbour has too, for each divided dimension.
    #[getter]
    fn shared(&self) -> Vec<i64> {
        self.shared.clone()
    }
}

/// View a part of a message as a field.
///
/// Parameters
/// ----------
/// message
///     A storage of bytes in one dimension. The part shares its memory, and the state of its buffers.
/// start
///     First byte of the part.
/// model
///     A storage with the dtype, shape and dims of the part, which has no gaps.
///
/// Raises
/// ------
/// ValueError
///     If the message does not have these bytes.
#[pyfunction]
pub(crate) fn message_part(
    message: &Bound<'_, PyStorage>,
    start: i64,
    model: &Bound<'_, PyStorage>,
) -> PyResult<Py<PyStorage>> {
    let part = message.get().storage().part_like(start, model.get().storage())?;
    PyStorage::wrap(message.py(), part, None)
}

impl PyHaloBoxes {
    fn reach(&self, reach: &Bound<'_, PyAny>) -> PyResult<Vec<HaloWidth>> {
        let widths = widths("reach", Some(reach), &self.dims)?;
        Ok(widths.into_iter().map(Option::unwrap_or_default).collect())
    }
}

fn widths(
    what: &str,
    by: Option<&Bound<'_, PyAny>>,
    dims: &Dims,
) -> PyResult<Vec<Option<HaloWidth>>> {
    by.map_or_else(|| Ok(vec![]), |value| by_name(what, value, dims, width))
}

/// Reads a direction, of whose numbers only the sign counts.
fn steps(direction: &Bound<'_, PyAny>) -> PyResult<Vec<i8>> {
    let steps: Extents = ints("direction", direction)?;
    Ok(steps.iter().map(|step| step.signum()).map(|step| i8::try_from(step).unwrap_or(0)).collect())
}

/// A box as a key of the storage.
fn key<'py>(py: Python<'py>, of: &IndexBox) -> PyResult<Bound<'py, PyTuple>> {
    let slice = |range: &Range<i64>| {
        let [start, stop] = [range.start, range.end].map(isize::try_from);
        Ok(PySlice::new(py, start?, stop?, 1))
    };
    PyTuple::new(py, of.iter().map(slice).collect::<PyResult<Vec<_>>>()?)
}

//! The functions that ask an object something and make no storage: `as_numpy`, and what the Python
//! side needs for `get_dims` and `explain`. One asks dlfield itself: what is not freed yet.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::numpy::array_over;

use super::storage::{CpuStorage, PyStorage, Source};
use crate::alloc;
use crate::field::Dim;
use crate::protocol::{Wish, doors_of, doors_of_class, names_of};

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(as_numpy, module)?)?;
    module.add_function(wrap_pyfunction!(dims_of, module)?)?;
    module.add_function(wrap_pyfunction!(doors, module)?)?;
    module.add_function(wrap_pyfunction!(live_allocations, module)?)
}

/// Give a NumPy array over the memory of any array, in its own order of axes. Never copies.
///
/// Parameters
/// ----------
/// data
///     As for `as_storage`. An object with an `acquire` function is acquired, and released when
///     the array and every view of it are gone.
///
/// Returns
/// -------
/// numpy.ndarray
///     `data` itself where it is exactly a NumPy array; else an array that holds the producer's
///     memory, read-only where the producer is.
///
/// Raises
/// ------
/// TypeError, BufferError, DeviceUnavailable
///     As `as_storage`.
#[pyfunction]
fn as_numpy<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = data.py();
    if data.get_type().is(&py.import("numpy")?.getattr("ndarray")?) {
        return Ok(data.clone());
    }
    let source = Source::of_as(data, Wish::OnHost)?;
    let managed = source.keep(py)?;
    let readonly = managed.readonly();
    array_over(py, &managed, readonly)
}

/// Names of an object's axes, or None where it has none. Touches no memory.
#[pyfunction]
fn dims_of<'py>(data: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let dims = match data.cast::<PyStorage>() {
        Ok(storage) => storage.get().field().dims.clone(),
        Err(_) => names_of(data)?,
    };
    dims.map(|dims| PyTuple::new(data.py(), dims.iter().map(Dim::to_string))).transpose()
}

/// Names of the doors that an object has, usable or not.
#[pyfunction]
#[pyo3(name = "doors_of")]
fn doors<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    if data.is_instance_of::<PyStorage>() && !data.is_instance_of::<CpuStorage>() {
        // The class tells; to ask the storage would bring its buffers up to date.
        return PyTuple::new(data.py(), doors_of_class(&data.get_type()));
    }
    PyTuple::new(data.py(), doors_of(data))
}

/// Blocks of memory, of the host and of GPUs, that dlfield has allocated and not yet freed.
#[pyfunction]
fn live_allocations() -> usize {
    alloc::live_allocations()
}

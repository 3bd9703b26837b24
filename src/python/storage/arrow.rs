//! Python methods that export a storage to Arrow. They choose the buffer: that of the host, or for
//! a device array the newest one. `protocol::arrow` makes the capsules.

use std::sync::Arc;

use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use super::class::{HostBacked, PyStorage};
use crate::device::Device;
use crate::field::Field;
use crate::interpreter::Inside;
use crate::managed::Managed;
use crate::protocol::arrow::{array_capsules, device_capsules, schema_capsule, table_capsules};
use crate::python::library::missing;

type Capsules<'py> = (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>);

/// The object from which pyarrow makes an array, or a record batch with one named column.
#[pyclass(frozen, module = "dlfield._core")]
struct ArrowExport {
    memory: Managed,
    field: Arc<Field>,
    column: Option<String>,
}

#[pymethods]
impl ArrowExport {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Capsules<'py>> {
        let _ignored = requested_schema;
        match &self.column {
            None => array_capsules(py, &self.memory, &self.field),
            Some(name) => table_capsules(py, &self.memory, &self.field, name),
        }
    }
}

/// Wraps the buffer of the host in a `pyarrow.Array`, or if there is a column name, in a
/// `pyarrow.RecordBatch`. With `copy`, wraps a copy in the same order without padding.
fn to_arrow<'py>(
    py: Python<'py>,
    object: &PyStorage,
    copy: bool,
    column: Option<String>,
) -> PyResult<Bound<'py, PyAny>> {
    let (what, maker) = match column {
        None => ("to_arrow", "array"),
        Some(_) => ("to_arrow_batch", "record_batch"),
    };
    let mut memory = object.host(py, what)?.clone();
    if copy {
        memory = py.detach(|| object.storage().copy_without_padding())?.managed().clone();
    }
    let _inside = Inside::enter(py);
    let way_out = "pip install pyarrow, or use to_numpy()";
    let absent = |error| missing(error, py, what, "pyarrow", way_out);
    let pyarrow = py.import("pyarrow").map_err(absent)?;
    let export = ArrowExport { memory, field: object.storage().field(), column };
    pyarrow.call_method1(maker, (export,))
}

#[pymethods]
impl PyStorage {
    /// Return a capsule with the type of the array that `to_arrow()` makes.
    ///
    /// Raises BufferError as `to_arrow()` does.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, self.storage().managed(), &self.storage().field())
    }

    /// Return capsules with schema and array, on the device that `__dlpack_device__` names.
    ///
    /// Zero-copy; the array holds a reference. A consumer of GPU memory waits for `sync_event`. The
    /// requested schema is ignored, as the interface allows. Raises BufferError as `to_arrow()`
    /// does, and NotImplementedError for an unknown keyword that is not None.
    #[pyo3(signature = (requested_schema = None, **kwargs))]
    fn __arrow_c_device_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Capsules<'py>> {
        let _ignored = requested_schema;
        check_unknown(kwargs)?;
        let device = self.storage().announced();
        let memory = self.side(py, device == Device::CPU, "__arrow_c_device_array__")?;
        device_capsules(py, memory, &self.storage().field(), device)
    }

    /// Return a pyarrow Array over the host's buffer, brought up to date. It keeps the buffer alive.
    ///
    /// One dimension gives an array of numbers (bool: `arrow.bool8`). Several dimensions give a
    /// FixedShapeTensorArray: a list along the axis that is outermost in memory, of tensors whose
    /// `dim_names` are the other dims. An Array cannot hold the name of the list's own axis or the
    /// halo: see `to_arrow_batch`. Arrow treats its data as constant: do not write to the storage
    /// afterwards.
    ///
    /// Parameters
    /// ----------
    /// copy
    ///     With True the array is over a copy without padding, in the same order of axes.
    ///
    /// Raises
    /// ------
    /// BufferError
    ///     For padded rows, steps and negative strides without `copy=True`; for bfloat16, float8,
    ///     complex numbers, and bool in several dimensions; for a storage without dimensions.
    /// GTNoSuchBufferError
    ///     Without a buffer on the host.
    /// ImportError
    ///     Without pyarrow.
    #[pyo3(name = "to_arrow", signature = (*, copy = false))]
    fn as_arrow<'py>(&self, py: Python<'py>, copy: bool) -> PyResult<Bound<'py, PyAny>> {
        to_arrow(py, self, copy, None)
    }

    /// Return a pyarrow RecordBatch with one column over the buffer of the host, or over a copy.
    ///
    /// The metadata of the column has all dims, the halo and the order of the axes. An Arrow IPC
    /// file keeps them: for a batch that was read from it, `dlf.as_storage(batch)` returns the same
    /// field, read-only. `name` names the column; the rest is as in `to_arrow`.
    #[pyo3(signature = (name, *, copy = false))]
    fn to_arrow_batch<'py>(
        &self,
        py: Python<'py>,
        name: String,
        copy: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        to_arrow(py, self, copy, Some(name))
    }
}

#[pymethods]
impl HostBacked {
    /// Return capsules with schema and array over the buffer of the host, brought up to date.
    ///
    /// Zero-copy; the array holds a reference. The requested schema is ignored, as the interface
    /// allows. Raises BufferError as `to_arrow()` does.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        slf: &Bound<'py, Self>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Capsules<'py>> {
        let _ignored = requested_schema;
        let object = slf.as_super().get();
        let memory = object.host(slf.py(), "__arrow_c_array__")?;
        array_capsules(slf.py(), memory, &object.storage().field())
    }
}

/// Refuses unknown keywords that are not None, as the Arrow PyCapsule interface demands.
fn check_unknown(kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    match kwargs.into_iter().flatten().find(|(_, value)| !value.is_none()) {
        None => Ok(()),
        Some((name, _)) => Err(PyNotImplementedError::new_err(format!(
            "__arrow_c_device_array__: expected requested_schema alone, got {name}; leave it out"
        ))),
    }
}

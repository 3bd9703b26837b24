//! Arrow's doors of the classes: an array over the buffer of the host, or over that which is up to date.

use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use super::class::{HostBacked, PyStorage, copy_with};
use super::doors::announced;
use crate::device::Device;
use crate::field::Field;
use crate::managed::Managed;
use crate::protocol::arrow::{array_capsules, device_capsules, schema_capsule};
use crate::python::arrow::to_arrow;
use crate::storage::{Residence, Spec};

type Capsules<'py> = (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>);

#[pymethods]
impl PyStorage {
    /// A capsule with what `__arrow_c_array__` gives: numbers, or a list of tensors. BufferError for what Arrow
    /// cannot express.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, self.managed(), &self.field())
    }

    /// Capsules with schema and array, on the device that `__dlpack_device__` names. Zero-copy; each array holds
    /// a reference. Whoever takes memory of a GPU waits for its `sync_event`. A schema that is asked for is not
    /// looked at, as the interface allows.
    #[pyo3(signature = (requested_schema = None, **kwargs))]
    fn __arrow_c_device_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Capsules<'py>> {
        let _answered_as_it_is = requested_schema;
        check_unknown(kwargs)?;
        let device = announced(self);
        let memory = if device == Device::CPU {
            self.host(py, "__arrow_c_device_array__")?
        } else {
            self.device(py, "__arrow_c_device_array__")?
        };
        device_capsules(py, &memory, &self.field(), device)
    }

    /// A pyarrow Array over the buffer of the host: numbers, or a FixedShapeTensorArray along the axis that is
    /// outermost in memory. Zero-copy, or with `copy=True` of a copy without padding. Names of the dimensions go
    /// along, but that of the list; the halo does not: see to_arrow_batch.
    #[pyo3(name = "to_arrow", signature = (*, copy = false))]
    fn as_arrow<'py>(&self, py: Python<'py>, copy: bool) -> PyResult<Bound<'py, PyAny>> {
        to_arrow(py, memory(py, self, "to_arrow", copy)?, &self.field(), None)
    }

    /// A pyarrow RecordBatch with one column, whose metadata has all dims and the halo. As to_arrow otherwise.
    #[pyo3(signature = (name, *, copy = false))]
    fn to_arrow_batch<'py>(
        &self,
        py: Python<'py>,
        name: String,
        copy: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        to_arrow(py, memory(py, self, "to_arrow_batch", copy)?, &self.field(), Some(name))
    }
}

#[pymethods]
impl HostBacked {
    /// Capsules with schema and array over the buffer of the host, brought up to date. Zero-copy; each array
    /// holds a reference. A schema that is asked for is not looked at, as the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        slf: &Bound<'py, Self>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Capsules<'py>> {
        let _answered_as_it_is = requested_schema;
        let storage = slf.as_super().get();
        let memory = storage.host(slf.py(), "__arrow_c_array__")?;
        array_capsules(slf.py(), &memory, &storage.field())
    }
}

/// The buffer of the host, or a copy of it in the same order and without padding.
fn memory(py: Python<'_>, storage: &PyStorage, what: &str, copy: bool) -> PyResult<Managed> {
    let host = storage.host(py, what)?;
    if !copy {
        return Ok(host);
    }
    let field = Field { order: storage.field().order.clone(), ..Field::default() };
    let spec = Spec { field, near: Residence::Host, ..Spec::default() };
    Ok(copy_with(py, &host, &spec)?.managed().clone())
}

/// Keywords to come must be refused as long as nobody knows them (Arrow C device data interface).
fn check_unknown(kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    for (name, value) in kwargs.into_iter().flatten() {
        if !value.is_none() {
            return Err(PyNotImplementedError::new_err(format!(
                "__arrow_c_device_array__: expected requested_schema alone, got {name}; leave it out"
            )));
        }
    }
    Ok(())
}

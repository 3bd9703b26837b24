//! Memory of a GPU as stencils and CuPy take it.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::Error;
use crate::interpreter::DropAttached;
use crate::managed::Managed;
use crate::protocol::cuda_array_interface;

/// An array on a GPU, with the CUDA array interface, version 3. Holds the memory.
#[pyclass(frozen, name = "DeviceArray", module = "dlfield")]
pub(crate) struct PyDeviceArray {
    managed: DropAttached<Managed>,
    readonly: bool,
    /// True if the timeline of the memory knows all work of the array's consumer.
    in_order: bool,
}

impl PyDeviceArray {
    pub(crate) fn new(managed: Managed, readonly: bool) -> Self {
        Self { managed: DropAttached::new(managed), readonly, in_order: false }
    }

    /// An array for work that the caller records in the timeline of the memory.
    pub(crate) fn in_order(managed: Managed, readonly: bool) -> Self {
        Self { in_order: true, ..Self::new(managed, readonly) }
    }
}

#[pymethods]
impl PyDeviceArray {
    /// `stream` is dlfield's where it has work in flight, unless that is in order anyway.
    #[getter(__cuda_array_interface__)]
    fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = match self.in_order {
            true => cuda_array_interface::in_order(py, &self.managed, self.readonly)?,
            false => cuda_array_interface::export(py, &self.managed, self.readonly)?,
        };
        Ok(interface.ok_or_else(|| {
            let dtype = self.managed.dtype();
            Error::Buffer(format!(
                "__cuda_array_interface__: expected a type with a typestr, got {dtype}"
            ))
        })?)
    }

    /// Extents, in elements.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.managed.layout().shape())
    }
}

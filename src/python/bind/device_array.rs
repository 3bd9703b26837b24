//! Memory of a GPU as a stencil that computes there takes it.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::Error;
use crate::managed::Managed;
use crate::protocol::cuda_array_interface;
use crate::protocol::keep::Keep;

/// An array on a GPU, for the length of a call: `__cuda_array_interface__`, version 3.
#[pyclass(frozen, module = "dlfield")]
pub(super) struct DeviceArray {
    managed: Keep<Managed>,
    readonly: bool,
}

impl DeviceArray {
    pub(super) fn new(managed: Managed, readonly: bool) -> Self {
        Self { managed: Keep::new(managed), readonly }
    }
}

#[pymethods]
impl DeviceArray {
    /// `stream` is dlfield's where it has work in flight.
    #[getter(__cuda_array_interface__)]
    fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = cuda_array_interface::export(py, &self.managed)?.ok_or_else(|| {
            let dtype = self.managed.dtype();
            Error::Buffer(format!(
                "__cuda_array_interface__: expected a type with a typestr, got {dtype}"
            ))
        })?;
        let empty = self.managed.layout().size() == 0;
        let address = if empty { 0 } else { self.managed.address() };
        interface.set_item("data", (address, self.readonly))?;
        Ok(interface)
    }

    /// Extents, in elements.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.managed.layout().shape())
    }
}

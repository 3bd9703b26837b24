//! Memory of a GPU as stencils and CuPy take it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// True as long as the timeline of the memory knows all work of the array's consumer.
    in_order: Option<Arc<AtomicBool>>,
}

impl PyDeviceArray {
    pub(crate) fn new(managed: Managed, readonly: bool) -> Self {
        Self { managed: DropAttached::new(managed), readonly, in_order: None }
    }

    /// An array for work that the caller records in the timeline of the memory, as long as
    /// `is_known` says so.
    pub(crate) fn in_order(managed: Managed, readonly: bool, is_known: Arc<AtomicBool>) -> Self {
        Self { in_order: Some(is_known), ..Self::new(managed, readonly) }
    }
}

#[pymethods]
impl PyDeviceArray {
    /// `stream` is dlfield's where it has work in flight, unless that is in order anyway.
    #[getter(__cuda_array_interface__)]
    fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let known = self.in_order.as_ref().map(|known| known.load(Ordering::Relaxed));
        let interface = match known.unwrap_or(false) {
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

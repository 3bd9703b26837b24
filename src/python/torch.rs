//! torch at the border: a tensor over host memory, by the exchange table of `torch.Tensor`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::managed::Managed;
use crate::protocol::dlpack::exchange::hand_over;

/// A tensor over host memory that may be written and has no work in flight. Zero-copy. `None` for a torch
/// without such a table.
///
/// # Errors
/// `ImportError` without torch, and what torch raises.
pub(super) fn tensor_over<'py>(
    py: Python<'py>,
    host: &Managed,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    static TENSOR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    hand_over(TENSOR.import(py, "torch", "Tensor")?, host)
}

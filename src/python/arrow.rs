//! Handing a field to pyarrow: an object that speaks the part of the Arrow PyCapsule interface that pyarrow asks for.

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::field::Field;
use crate::managed::Managed;
use crate::protocol::arrow::{array_capsules, table_capsules};

/// An array, or a table with one column that has a name.
#[pyclass(frozen, module = "dlfield._core")]
struct ForArrow {
    memory: Managed,
    field: Field,
    column: Option<String>,
}

#[pymethods]
impl ForArrow {
    #[pyo3(signature = (_requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        _requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        match &self.column {
            None => array_capsules(py, &self.memory, &self.field),
            Some(name) => table_capsules(py, &self.memory, &self.field, name),
        }
    }
}

/// What pyarrow makes of host memory: an Array, or with a name for its column a RecordBatch. Zero-copy.
///
/// # Errors
/// `BufferError` for what Arrow cannot express; `ImportError` without pyarrow.
pub(super) fn to_arrow<'py>(
    py: Python<'py>,
    memory: Managed,
    field: &Field,
    column: Option<String>,
) -> PyResult<Bound<'py, PyAny>> {
    let pyarrow = py.import("pyarrow")?;
    let maker = if column.is_some() { "record_batch" } else { "array" };
    let offer = Bound::new(py, ForArrow { memory, field: field.clone(), column })?;
    pyarrow.call_method1(maker, (offer,))
}

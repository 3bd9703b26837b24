//! Presets as Python sees them: the columns that Python needs to read a stencil.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::preset::Preset;
use crate::protocol::read::names;
use crate::python::presets::preset_of;

/// A preset: "C", "F", or the name of a backend.
#[pyclass(frozen, name = "Preset", module = "dlfield._core")]
pub(super) struct PyPreset(&'static Preset);

#[pymethods]
impl PyPreset {
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name
    }

    #[getter]
    fn gpu(&self) -> bool {
        self.0.gpu
    }

    #[getter]
    fn typed(&self) -> bool {
        self.0.typed
    }

    /// Return the rank of the stride of each dimension, 0 for the largest.
    fn layout<'py>(&self, dims: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        let names = names(dims)?;
        PyTuple::new(dims.py(), self.0.layout(names.len(), Some(&names)))
    }
}

/// Look a preset up by its name, which is given as `option`.
///
/// Raises
/// ------
/// ValueError
///     For an unknown name; the text lists the known ones.
#[pyfunction]
#[pyo3(signature = (name, option = "backend"))]
pub(super) fn preset(py: Python<'_>, name: &str, option: &str) -> PyResult<PyPreset> {
    Ok(PyPreset(preset_of(py, option, name)?))
}

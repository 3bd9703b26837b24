//! Presets as Python sees them: the columns that Python needs to read a stencil.

use pyo3::prelude::*;

use crate::preset::Preset;
use crate::python::presets::preset_of;

/// A preset: "C", "F", or the name of a backend.
#[pyclass(frozen, get_all, name = "Preset", module = "dlfield._core")]
pub(super) struct PyPreset {
    name: &'static str,
    gpu: bool,
    typed: bool,
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
    let &Preset { name, gpu, typed, .. } = preset_of(py, option, name)?;
    Ok(PyPreset { name, gpu, typed })
}

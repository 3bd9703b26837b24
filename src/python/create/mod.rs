//! The functions that make storages: fresh memory, fresh memory like some other, memory that is there.

mod fresh;
mod like;
mod data;

use pyo3::prelude::*;

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(fresh::empty, module)?)?;
    module.add_function(wrap_pyfunction!(fresh::zeros, module)?)?;
    module.add_function(wrap_pyfunction!(fresh::ones, module)?)?;
    module.add_function(wrap_pyfunction!(fresh::full, module)?)?;
    module.add_function(wrap_pyfunction!(like::empty_like, module)?)?;
    module.add_function(wrap_pyfunction!(like::zeros_like, module)?)?;
    module.add_function(wrap_pyfunction!(like::ones_like, module)?)?;
    module.add_function(wrap_pyfunction!(like::full_like, module)?)?;
    module.add_function(wrap_pyfunction!(data::as_storage, module)?)?;
    module.add_function(wrap_pyfunction!(data::storage, module)?)
}

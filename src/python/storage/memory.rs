//! `Storage`: what NumPy and CuPy say of the memory of an array.

use pyo3::intern;
use pyo3::prelude::*;

use super::class::PyStorage;
use crate::storage::Residence;

#[pymethods]
impl PyStorage {
    /// Address of the first element: of the host's buffer, up to date, else of that on a GPU.
    ///
    /// It holds no reference: keep the storage. Say what is written through it with
    /// `set_host_modified()`.
    #[getter]
    fn ptr(&self, py: Python<'_>) -> PyResult<usize> {
        let on_host = self.storage().host_as_is().is_some();
        Ok(self.side(py, on_host, "ptr")?.address())
    }

    /// None: a view holds the memory itself, not the storage that it was made of.
    #[getter]
    fn base(&self, py: Python<'_>) -> Py<PyAny> {
        py.None()
    }

    /// Give what `flags` is made of: C-contiguous, F-contiguous, writeable, aligned, own data.
    fn _flags(&self) -> (bool, bool, bool, bool, bool) {
        let memory = self.storage().managed();
        let layout = memory.layout();
        let (c, f) = (layout.is_c_contiguous(), layout.is_f_contiguous());
        (c, f, !memory.readonly(), memory.is_aligned(), self.door.is_none())
    }

    /// Bytes of the object, and of its elements in each buffer, whether it shares them or not.
    fn __sizeof__(slf: &Bound<'_, Self>) -> PyResult<usize> {
        let (py, storage) = (slf.py(), slf.get().storage());
        let object: usize =
            py.get_type::<PyAny>().call_method1(intern!(py, "__sizeof__"), (slf,))?.extract()?;
        let layout = storage.managed().layout();
        let repeated_once = layout.nbytes().min(layout.span().len());
        let buffers = if matches!(storage.residence(), Residence::Mirrored(_)) { 2 } else { 1 };
        Ok(object.saturating_add(repeated_once.saturating_mul(buffers)))
    }
}

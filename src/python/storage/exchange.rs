//! `Storage`: its buffers as arrays of other libraries, and GDP-3's methods that keep them in step.

use pyo3::exceptions::{PyAttributeError, PyBufferError, PyImportError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyDict, PyMemoryView, PyType};

use super::class::PyStorage;
use super::{doors, sides};
use crate::cuda::synchronize;
use crate::device::Device;
use crate::error::absent;
use crate::interpreter::Inside;
use crate::protocol::dlpack::ExportRequest;
use crate::protocol::dlpack::exchange::hand_over;
use crate::python::jax::to_jax;
use crate::python::library::missing;
use crate::python::options::switch;
use crate::storage::Residence;
use crate::sync::Dirty;

#[pymethods]
impl PyStorage {
    /// `"gpu"` if there is a buffer on a GPU, else None (GDP-3).
    ///
    /// Calling it gives a context manager: `with storage.device() as array:` gives that buffer as a
    /// GPUStorage, up to date. At the end dlfield waits for the GPU, and marks the buffer as
    /// written.
    #[getter(device)]
    fn device_name<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if slf.get().storage().residence().ordinal().is_none() {
            return Ok(None);
        }
        let py = slf.py();
        let _inside = Inside::enter(py);
        let sides = py.import(intern!(py, "dlfield.storages.sides"))?;
        sides.call_method1(intern!(py, "Device"), (slf,)).map(Some)
    }

    /// Number of that GPU, as CUDA counts them; None without one.
    #[getter]
    fn device_id(&self) -> Option<i32> {
        self.storage().residence().ordinal()
    }

    /// The `cupy.cuda.MemoryPointer` of the buffer on the GPU (GDP-3); None without one.
    ///
    /// Absent without CuPy, and for a read-only storage, since CuPy writes what it shares.
    #[getter]
    fn device_data<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = slf.py();
        if slf.get().storage().residence().ordinal().is_none() {
            return Ok(None);
        }
        let array = sides::cupy(slf, "device_data").map_err(|error| {
            let unusable = error.is_instance_of::<PyImportError>(py)
                || error.is_instance_of::<PyBufferError>(py);
            if unusable { PyAttributeError::new_err(error.value(py).to_string()) } else { error }
        })?;
        array.getattr(intern!(py, "data")).map(Some)
    }

    /// Return a context manager for the buffer of the host.
    ///
    /// `with storage.host() as array:` gives a NumPy array, up to date, and marks the buffer as
    /// written at the end.
    #[pyo3(name = "host")]
    fn host_side<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let _inside = Inside::enter(py);
        py.import(intern!(py, "dlfield.storages.sides"))?.call_method1(intern!(py, "host"), (slf,))
    }

    /// Return the buffer on the GPU, up to date, as a GPUStorage. Zero-copy.
    fn _device_side(slf: &Bound<'_, Self>) -> PyResult<Py<Self>> {
        sides::device_side(slf, "device()")
    }

    /// Wait for all work on the GPU, including that of other libraries.
    fn _finish(&self, py: Python<'_>) -> PyResult<()> {
        let Some(ordinal) = self.storage().residence().ordinal() else { return Ok(()) };
        Ok(py.detach(|| synchronize(ordinal))?) // WAIT for all work on the GPU
    }

    /// Return a NumPy array over the buffer of the host, up to date, in the storage's order of axes.
    ///
    /// Zero-copy; the array holds a reference. It is read-only if the storage is.
    ///
    /// Raises
    /// ------
    /// GTNoSuchBufferError
    ///     Without a buffer on the host.
    fn to_numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        doors::array(slf, "to_numpy")
    }

    /// Return `to_cupy()` if there is a buffer on a GPU, else `to_numpy()` (GDP-3).
    fn to_ndarray<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        match slf.get().storage().residence() {
            Residence::Host => doors::array(slf, "to_ndarray"),
            _ => sides::cupy(slf, "to_ndarray"),
        }
    }

    /// A memoryview of the host buffer, as `numpy.ndarray.data` (GDP-3); None without one.
    #[getter]
    fn data<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyMemoryView>>> {
        let py = slf.py();
        if matches!(slf.get().storage().residence(), Residence::Device(_)) {
            return Ok(None);
        }
        PyMemoryView::from(slf.as_any()).map(Some).map_err(|error| {
            let nameless = error.is_instance_of::<PyBufferError>(py);
            if nameless { absent(py, format!("data: {}", error.value(py))) } else { error }
        })
    }

    /// Return a torch tensor over the memory, on the GPU if the buffer there is up to date.
    ///
    /// Zero-copy; the tensor holds a reference.
    ///
    /// Raises
    /// ------
    /// BufferError
    ///     For a read-only storage, since torch writes what it shares.
    /// ImportError
    ///     Without torch.
    fn to_torch<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().storage().managed().readonly() {
            return Err(PyBufferError::new_err(
                "to_torch: expected a writable storage, got a read-only one, which torch would \
                 write; use copy().to_torch(), or torch.from_dlpack(storage) and never write the \
                 tensor",
            ));
        }
        let py = slf.py();
        let way_out = "pip install torch, or use to_numpy()";
        let without = |error| missing(error, py, "to_torch", "torch", way_out);
        static TENSOR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        if let Some(host) = slf.get().storage().plain_host()
            && host.device() == Device::CPU
            && let Some(tensor) =
                hand_over(TENSOR.import(py, "torch", "Tensor").map_err(without)?, host)?
        {
            return Ok(tensor);
        }
        let _inside = Inside::enter(py);
        py.import(intern!(py, "torch"))
            .map_err(without)?
            .call_method1(intern!(py, "from_dlpack"), (slf,))
    }

    /// Return a JAX array over the memory, on the GPU if the buffer there is up to date.
    ///
    /// JAX arrays are immutable: do not write the storage afterwards.
    ///
    /// Parameters
    /// ----------
    /// copy
    ///     With True JAX makes a copy. Otherwise the array shares the memory; JAX never copies
    ///     silently.
    ///
    /// Raises
    /// ------
    /// BufferError
    ///     If JAX cannot share the memory: gaps between elements, misaligned memory, 64-bit types
    ///     while x64 is off, axes in another order than C before JAX 0.8.
    /// ImportError
    ///     Without JAX.
    #[pyo3(signature = (copy = None))]
    fn to_jax<'py>(
        &self,
        py: Python<'py>,
        copy: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let copy = copy.map(|copy| switch("copy", "True, False or None", copy)).transpose()?;
        let on_host = !self.storage().is_device_newest();
        let memory = self.side(py, on_host, "to_jax")?.clone();
        let memory = if on_host { memory.for_host() } else { memory.for_device() };
        to_jax(py, &memory, copy)
    }

    /// Return a CuPy array over the buffer of the GPU, up to date (GDP-3). Zero-copy.
    ///
    /// Raises
    /// ------
    /// GTNoSuchBufferError
    ///     Without a buffer on a GPU.
    /// BufferError
    ///     For a read-only storage, since CuPy writes what it shares.
    /// ImportError
    ///     Without CuPy.
    fn to_cupy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        sides::cupy(slf, "to_cupy")
    }

    /// Copy the device buffer to the host if it is newer, or if `force` is True (GDP-3), and wait.
    ///
    /// Copies nothing if there is one buffer.
    #[pyo3(signature = (*, force = false))]
    fn device_to_host(&self, py: Python<'_>, force: bool) -> PyResult<()> {
        Ok(py.detach(|| self.storage().device_to_host(force))?)
    }

    /// Copy the host buffer to the device if it is newer, or if `force` is True (GDP-3), and wait.
    ///
    /// Copies nothing if there is one buffer.
    #[pyo3(signature = (*, force = false))]
    fn host_to_device(&self, py: Python<'_>, force: bool) -> PyResult<()> {
        Ok(py.detach(|| self.storage().host_to_device(force))?)
    }

    /// As `host_to_device`, without a wait: for work that is in order with the device buffer.
    fn _host_to_device_in_order(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.storage().host_to_device_in_order())?)
    }

    /// Mark the device buffer as written (GDP-3). No effect if there is one buffer.
    fn set_device_modified(&self, py: Python<'_>) {
        py.detach(|| self.storage().set_dirty(Dirty::Device));
    }

    /// Mark the host buffer as written (GDP-3). No effect if there is one buffer.
    fn set_host_modified(&self, py: Python<'_>) {
        py.detach(|| self.storage().set_dirty(Dirty::Host));
    }

    /// Mark both buffers as equal (GDP-3). No effect if there is one buffer.
    fn set_synchronized(&self, py: Python<'_>) {
        py.detach(|| self.storage().set_dirty(Dirty::Neither));
    }

    /// Copy the newer buffer to the other one (GDP-3), and wait for it.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        let storage = self.storage();
        Ok(py.detach(|| {
            storage.device_to_host(false).and_then(|()| storage.host_to_device(false))
        })?)
    }

    /// GDP-3: the host buffer under None, that of a GPU under "gpu", with dims and halo if known.
    ///
    /// Reading it copies nothing. `acquire` brings a buffer up to date, `touch` marks it as
    /// written; both hold a reference to the storage. Absent for bfloat16 and float8.
    #[getter]
    fn __gt_data_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        doors::data_interface(slf)
    }

    /// Return DLPack's device: (1, 0) for host memory, (2, n) for a GPU.
    ///
    /// Of two buffers it is the one that is up to date, that of the GPU if both are.
    fn __dlpack_device__(&self) -> (i64, i32) {
        let device = self.storage().announced();
        (device.code(), device.ordinal)
    }

    /// Return a DLPack capsule that holds a reference.
    ///
    /// Zero-copy unless `copy=True`, or the host asks for memory that is only on a GPU. Versioned
    /// with `max_version=(1, 0)` or higher, else legacy. `stream` waits for work in flight: None is
    /// the legacy default stream, -1 does not wait.
    ///
    /// Raises
    /// ------
    /// BufferError
    ///     For negative strides, for another device, and for read-only memory in a legacy capsule.
    /// RuntimeError
    ///     For a stream with memory of the host, as NumPy.
    /// ValueError
    ///     For streams that DLPack does not allow, and for another `copy`.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<&Bound<'py, PyAny>>,
        dl_device: Option<&Bound<'py, PyAny>>,
        copy: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        Self::capsule(slf, &ExportRequest { stream, max_version, dl_device, copy })
    }
}

impl PyStorage {
    /// A DLPack capsule of the requested side, by default the announced one.
    pub(crate) fn capsule<'py>(
        slf: &Bound<'py, Self>,
        request: &ExportRequest<'_, 'py>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        doors::capsule(slf, request)
    }
}

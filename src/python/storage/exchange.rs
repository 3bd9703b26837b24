//! `Storage`: its buffers as arrays of other libraries, and GDP-3's methods that keep them in step.

use pyo3::exceptions::PyBufferError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyMemoryView};

use super::class::PyStorage;
use super::{doors, sides};
use crate::cuda::synchronize;
use crate::device::Device;
use crate::protocol::dlpack::ExportRequest;
use crate::python::exceptions::absent;
use crate::python::options::switch;
use crate::python::{jax, torch};
use crate::storage::{Buffers, Residence};
use crate::sync::Newer;

#[pymethods]
impl PyStorage {
    /// `"gpu"` where there is a buffer on a GPU, else None (GDP-3). Called, a context manager that gives
    /// that buffer and says at the end that it was written: `with storage.device() as array:`.
    #[getter(device)]
    fn device_name<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if slf.get().residence().ordinal().is_none() {
            return Ok(None);
        }
        let py = slf.py();
        let class = py.import(intern!(py, "dlfield._sides"))?.getattr(intern!(py, "Device"))?;
        class.call1((slf,)).map(Some)
    }

    /// The number of that GPU, as CUDA counts them; None without one.
    #[getter]
    fn device_id(&self) -> Option<i32> {
        self.residence().ordinal()
    }

    /// The `cupy.cuda.MemoryPointer` of the buffer on the GPU, None where there is none (GDP-3).
    #[getter]
    fn device_data<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.residence().ordinal().is_none() {
            return Ok(None);
        }
        sides::cupy(py, self, "device_data")?.getattr(intern!(py, "data")).map(Some)
    }

    /// A context manager that gives the buffer of the host as a NumPy array, up to date, and says at the
    /// end that it was written.
    #[pyo3(name = "host")]
    fn host_side<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        py.import(intern!(py, "dlfield._sides"))?.call_method1(intern!(py, "host"), (slf,))
    }

    /// The buffer on the GPU, up to date, as a GPUStorage over the same memory. Zero-copy.
    fn _device_side(&self, py: Python<'_>) -> PyResult<Py<Self>> {
        sides::on_device(py, self, "device()")
    }

    /// Waits until all work on the GPU is done, also that of other libraries.
    fn _finish(&self, py: Python<'_>) -> PyResult<()> {
        let Some(ordinal) = self.residence().ordinal() else { return Ok(()) };
        Ok(py.detach(|| synchronize(ordinal))?) // WAIT for all work on the GPU
    }

    /// A NumPy array over the buffer of the host, up to date, in the storage's axis order. Zero-copy;
    /// read-only where the storage is. GTNoSuchBufferError where there is no such buffer.
    fn to_numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        doors::array(slf, "to_numpy")
    }

    /// A CuPy array over the buffer of the GPU where there is one, else a NumPy array (GDP-3).
    fn to_ndarray<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        match slf.get().residence() {
            Residence::Host => doors::array(slf, "to_ndarray"),
            _ => sides::cupy(slf.py(), slf.get(), "to_ndarray"),
        }
    }

    /// A memoryview of the host buffer, as `numpy.ndarray.data`; None where there is none (GDP-3).
    #[getter]
    fn data<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyMemoryView>>> {
        let py = slf.py();
        if matches!(slf.get().residence(), Residence::Device(_)) {
            return Ok(None);
        }
        PyMemoryView::from(slf.as_any()).map(Some).map_err(|error| {
            let nameless = error.is_instance_of::<PyBufferError>(py);
            if nameless { absent(py, format!("data: {}", error.value(py))) } else { error }
        })
    }

    /// A torch tensor over the memory: of a GPU's buffer where there is one that is up to date. Zero-copy.
    ///
    /// torch writes what it shares: a read-only storage is refused.
    fn to_torch<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().managed().readonly() {
            return Err(PyBufferError::new_err(
                "to_torch: expected a writable storage, got a read-only one, which torch would write; use \
                 copy().to_torch(), or torch.from_dlpack(storage) and never write the tensor",
            ));
        }
        let py = slf.py();
        if let Buffers::Host(host) = slf.get().buffers()
            && host.device() == Device::CPU
            && host.timeline().is_none()
            && let Some(tensor) = torch::tensor_over(py, host)?
        {
            return Ok(tensor);
        }
        py.import(intern!(py, "torch"))?.call_method1(intern!(py, "from_dlpack"), (slf,))
    }

    /// A JAX array over the memory. Zero-copy, or an error: JAX is never made to copy silently.
    ///
    /// JAX arrays are immutable: do not write the storage afterwards. `copy=True` copies.
    #[pyo3(signature = (copy = None))]
    fn to_jax<'py>(
        &self,
        py: Python<'py>,
        copy: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let copy = copy.map(|copy| switch("copy", "True, False or None", copy)).transpose()?;
        let memory = match self.buffers().of_device() {
            Some(device) if self.buffers().is_on_device() => {
                let at = device.device().announced();
                self.device(py, "to_jax")?.seen_at(at)
            }
            _ => self.host(py, "to_jax")?.seen_at(Device::CPU),
        };
        jax::to_jax(py, &memory, copy)
    }

    /// A CuPy array over the buffer of the GPU, up to date (GDP-3). Zero-copy. GTNoSuchBufferError where
    /// there is no such buffer.
    fn to_cupy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        sides::cupy(py, self, "to_cupy")
    }

    /// Copies the device buffer to the host where it is newer, or with `force` in any case (GDP-3), and
    /// waits for what dlfield does to the host's. Copies nothing where there is one buffer.
    #[pyo3(signature = (*, force = false))]
    fn device_to_host(&self, py: Python<'_>, force: bool) -> PyResult<()> {
        sides::device_to_host(py, self, force)
    }

    /// Copies the host buffer to the device where it is newer, or with `force` in any case (GDP-3), and
    /// waits for what dlfield does to the device's. Copies nothing where there is one buffer.
    #[pyo3(signature = (*, force = false))]
    fn host_to_device(&self, py: Python<'_>, force: bool) -> PyResult<()> {
        sides::host_to_device(py, self, force)
    }

    /// Says that the device buffer was written (GDP-3). Means nothing where there is one buffer.
    fn set_device_modified(&self, py: Python<'_>) {
        sides::set_newer(py, self, Newer::Device);
    }

    /// Says that the host buffer was written (GDP-3). Means nothing where there is one buffer.
    fn set_host_modified(&self, py: Python<'_>) {
        sides::set_newer(py, self, Newer::Host);
    }

    /// Says that both buffers are equal (GDP-3). Means nothing where there is one buffer.
    fn set_synchronized(&self, py: Python<'_>) {
        sides::set_newer(py, self, Newer::Neither);
    }

    /// Copies whichever buffer is newer to the other (GDP-3), and waits for it.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        sides::device_to_host(py, self, false)?;
        sides::host_to_device(py, self, false)
    }

    /// GDP-3's data interface: the buffer of the host under None, that of a GPU under "gpu", each as it
    /// is, with dims and halo where known. `acquire` brings it up to date, `touch` says that it was
    /// written. Its functions hold a reference to the storage.
    #[getter]
    fn __gt_data_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        doors::data_interface(slf)
    }

    /// DLPack's device pair: host memory is (1, 0), memory of a GPU (2, n). Of two buffers that which is
    /// up to date, the GPU's where both are.
    fn __dlpack_device__(&self) -> (i64, i32) {
        let device = doors::announced(self);
        (device.code(), device.ordinal)
    }

    /// A DLPack capsule. Zero-copy unless `copy=True`, or memory of a GPU is asked for on the host; the
    /// capsule holds a reference. `stream` waits for what is in flight.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<&Bound<'py, PyAny>>,
        dl_device: Option<&Bound<'py, PyAny>>,
        copy: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        doors::capsule(slf, &ExportRequest { stream, max_version, dl_device, copy })
    }
}

//! What the classes hold, and how their objects are made.

use std::sync::{Arc, PoisonError, RwLock};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::cuda::Stream;
use crate::error::Result;
use crate::field::{Field, Halo};
use crate::managed::Managed;
use crate::protocol::dlpack::exchange::Exchanged;
use crate::protocol::keep::Keep;
use crate::python::exceptions::absent;
use crate::python::sync_state::PySyncState;
use crate::storage::{Buffers, Residence, Spec, Storage};

/// A field: memory with named dimensions, halo and alignment.
///
/// Made by `zeros`, `as_storage` and their like. Every view, capsule and exported array holds one
/// reference to the memory, which is freed or given back when the last of them is gone. Strides
/// are in bytes, as in NumPy.
///
/// `storage[key]` with integers, slices, None and `...` is a view that shares memory: slices keep
/// dims and what is left of the halo, an integer drops its dimension, and None leaves a storage
/// without dims. An integer for every dimension gives a number. Lists, masks and arrays of indices
/// give a NumPy array of its own, without names. `storage[key] = value` broadcasts and converts as
/// NumPy does. Where storage and value have names, dimensions go where their names say. An array in
/// a key stands for the dimensions that NumPy takes it for: where it has their names in another
/// order it is transposed, other names of the same kind are refused, and unrelated ones do not
/// count.
#[pyclass(subclass, frozen, weakref, name = "Storage", module = "dlfield")]
pub(in crate::python) struct PyStorage {
    /// Never changes: consumers point into it.
    buffers: Keep<Buffers>,
    /// Its halo can be set.
    field: RwLock<Arc<Field>>,
    door: Option<&'static str>,
    /// The object that all views of a pair share.
    sync: Option<Py<PySyncState>>,
}

/// What storages with a buffer on the host have in common: the doors of host memory.
#[pyclass(subclass, frozen, extends = PyStorage, name = "HostBackedStorage", module = "dlfield._core")]
pub(in crate::python) struct HostBacked;

/// A storage in host memory.
#[pyclass(frozen, extends = HostBacked, name = "CPUStorage", module = "dlfield")]
pub(in crate::python) struct CpuStorage;

/// Memory on a GPU alone (GDP-3). It has no buffer on the host: what needs one is absent or raises
/// GTNoSuchBufferError (`np.asarray` and `DataArray.values` BufferError), and values come and go by copies.
#[pyclass(frozen, extends = PyStorage, name = "GPUStorage", module = "dlfield")]
pub(super) struct GpuStorage;

/// Memory on host and GPU, kept in step by dlfield (GDP-3): each side is brought up to date before it
/// is handed out, by one copy, and none where the other side was not written.
///
/// What a view of another library writes cannot be seen. Say it with `set_host_modified()` or
/// `set_device_modified()`, or work in `with storage.host() as array:` and `with storage.device() as
/// array:`, which say it at the end.
#[pyclass(frozen, extends = HostBacked, name = "SoftwareManagedGPUStorage", module = "dlfield")]
pub(super) struct SoftwareManagedGpuStorage;

/// Memory that host and GPU share, kept in step by CUDA (GDP-3). Before the host gets it, dlfield waits
/// for the work that it knows of.
#[pyclass(frozen, extends = HostBacked, name = "CUDAManagedGPUStorage", module = "dlfield")]
pub(super) struct CudaManagedGpuStorage;

impl PyStorage {
    /// A new Python object for a storage that came through `door` (`None`: allocated here).
    pub(in crate::python) fn wrap(
        py: Python<'_>,
        storage: Storage,
        door: Option<&'static str>,
    ) -> PyResult<Py<Self>> {
        let sync = storage.sync_state().map(|state| Py::new(py, PySyncState::of(state)));
        let sync = sync.transpose()?;
        Self::wrap_with(py, storage, door, sync)
    }

    /// As `wrap`, with the object for the state of a pair, where there is one already.
    pub(in crate::python) fn wrap_with_state(
        py: Python<'_>,
        storage: Storage,
        door: Option<&'static str>,
        sync: Option<Py<PySyncState>>,
    ) -> PyResult<Py<Self>> {
        match (storage.sync_state(), sync) {
            (Some(_), Some(sync)) => Self::wrap_with(py, storage, door, Some(sync)),
            _ => Self::wrap(py, storage, door),
        }
    }

    /// As `wrap`, for a pair whose state is an object already.
    pub(in crate::python) fn wrap_with(
        py: Python<'_>,
        storage: Storage,
        door: Option<&'static str>,
        sync: Option<Py<PySyncState>>,
    ) -> PyResult<Py<Self>> {
        let residence = storage.residence();
        let (buffers, field) = storage.into_parts();
        let base = Self { buffers: Keep::new(buffers), field: RwLock::new(field), door, sync };
        let base = PyClassInitializer::from(base);
        if let Residence::Device(_) = residence {
            return Ok(Bound::new(py, base.add_subclass(GpuStorage))?.into_super().unbind());
        }
        let base = base.add_subclass(HostBacked);
        let made = match residence {
            Residence::Mirrored(_) => {
                Bound::new(py, base.add_subclass(SoftwareManagedGpuStorage))?.into_super()
            }
            Residence::Unified(_) => {
                Bound::new(py, base.add_subclass(CudaManagedGpuStorage))?.into_super()
            }
            _ => Bound::new(py, base.add_subclass(CpuStorage))?.into_super(),
        };
        Ok(made.into_super().unbind())
    }

    /// Shape, strides and type of the memory. To read or write values ask for `host` or `device`.
    pub(in crate::python) fn managed(&self) -> &Managed {
        self.buffers.managed()
    }

    /// Which buffers there are.
    pub(in crate::python) fn residence(&self) -> Residence {
        self.storage().residence()
    }

    pub(in crate::python) fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// The buffer of the host, up to date and with nothing in flight; waits without the GIL.
    ///
    /// # Errors
    /// GTNoSuchBufferError where there is none.
    pub(in crate::python) fn host(&self, py: Python<'_>, what: &str) -> PyResult<Managed> {
        match &*self.buffers {
            Buffers::Host(one) if one.timeline().is_none() => Ok(one.clone()),
            Buffers::Device(_) | Buffers::DeviceOf(_) => Err(absent(
                py,
                format!(
                    "{what}: expected a storage with a buffer on the host, got one on a GPU alone; use copies \
                     (storage(..., device='cpu')), to_cupy(), or make it with managed='gt4py'"
                ),
            )),
            _ => {
                let host = py.detach(|| self.storage().on_host())?;
                // Whoever has it may write it at any time, and dlfield's copies must not read it late.
                if let Some(timeline) = host.timeline() {
                    timeline.hand_out();
                }
                Ok(host)
            }
        }
    }

    /// The buffer of the device, up to date once the work in its timeline is done.
    ///
    /// # Errors
    /// GTNoSuchBufferError where there is none.
    pub(in crate::python) fn device(&self, py: Python<'_>, what: &str) -> PyResult<Managed> {
        if self.buffers.of_device().is_none() {
            let text = format!(
                "{what}: expected a storage with a buffer on a GPU, got one in host memory; use to_numpy(), or make \
                 it with device='gpu'"
            );
            return Err(absent(py, text));
        }
        Ok(py.detach(|| self.storage().on_device())?)
    }

    /// The buffer with the newest values, for a copy to start from: the device's where both are new.
    ///
    /// # Errors
    /// What CUDA refuses where one side of a pair is brought up to date.
    pub(in crate::python) fn newest(&self, py: Python<'_>) -> PyResult<&Managed> {
        match &*self.buffers {
            Buffers::HostOf(_) => drop(self.host(py, "values")?),
            Buffers::DeviceOf(_) => drop(self.device(py, "values")?),
            _ => {}
        }
        Ok(match self.buffers.of_device() {
            Some(device) if self.buffers.is_on_device() => device,
            _ => self.buffers.managed(),
        })
    }

    /// Names, halo and alignment, as they are now.
    pub(in crate::python) fn field(&self) -> Arc<Field> {
        Arc::clone(&self.field.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Both, without Python around them. Copies no element.
    pub(in crate::python) fn storage(&self) -> Storage {
        Storage::from_parts(self.buffers.clone(), self.field())
    }

    pub(in crate::python) fn door(&self) -> Option<&'static str> {
        self.door
    }

    /// What all views of a pair share; `None` for other storages.
    pub(in crate::python) fn sync(&self) -> Option<&Py<PySyncState>> {
        self.sync.as_ref()
    }

    /// A part or another order of this storage.
    pub(super) fn view(&self, py: Python<'_>, view: Storage) -> PyResult<Py<Self>> {
        let sync = self.sync.as_ref().map(|sync| sync.clone_ref(py));
        Self::wrap_with(py, view, self.door, sync)
    }

    /// Another halo for the same memory; views that exist keep theirs.
    pub(super) fn put_halo(&self, halo: Option<Halo>) -> PyResult<()> {
        let (_, field) = self.storage().with_halo(halo)?.into_parts();
        *self.field.write().unwrap_or_else(PoisonError::into_inner) = field;
        Ok(())
    }
}

impl Exchanged for PyStorage {
    fn managed(&self, py: Python<'_>) -> Result<&Managed> {
        match &*self.buffers {
            Buffers::Host(one) if one.timeline().is_none() => Ok(one),
            buffers => py.detach(|| exchanged(buffers, &self.storage())),
        }
    }

    fn wrap(py: Python<'_>, managed: Managed) -> PyResult<Py<PyAny>> {
        let near = Residence::of(managed.device());
        let storage = Storage::wrap(managed, &Spec { near, ..Spec::default() })?;
        Ok(Self::wrap(py, storage, Some("dlpack_c_exchange_api"))?.into_any())
    }
}

/// The buffer that counts, in order with the stream on which dlfield works: the table's users put
/// their work there (dlpack.h, `current_work_stream`).
fn exchanged<'a>(buffers: &'a Buffers, storage: &Storage) -> Result<&'a Managed> {
    let device = buffers.of_device().filter(|_| buffers.is_on_device());
    let Some(device) = device else {
        storage.on_host()?;
        if let Some(timeline) = buffers.managed().timeline() {
            timeline.hand_out();
        }
        return Ok(buffers.managed());
    };
    storage.on_device()?;
    if let Some(timeline) = device.timeline() {
        timeline.join(Stream::current(device.device().ordinal)?)?; // WAIT for what is in flight
        timeline.hand_out();
    }
    Ok(device)
}

/// What a class gives when it is called. An object of it is never made without memory.
pub(super) fn constructed<'py>(
    class: &Bound<'py, PyType>,
    data: &Bound<'py, PyTuple>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    let construct =
        py.import(intern!(py, "dlfield._constructors"))?.getattr(intern!(py, "construct"))?;
    construct.call((class, data), options)
}

/// A copy as `spec` wishes, made without holding the GIL.
pub(in crate::python) fn copy_with(
    py: Python<'_>,
    managed: &Managed,
    spec: &Spec,
) -> PyResult<Storage> {
    // SAFETY: the values are the user's to guard against other threads, as in NumPy; the copy
    // reads bytes and no type of it has invalid patterns.
    Ok(py.detach(|| unsafe { Storage::copy_of(managed, spec) })?)
}

//! The classes and the making of their objects.

use std::sync::{Mutex, PoisonError};

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::interpreter::{InObject, Inside};
use crate::managed::Managed;
use crate::protocol::{Held, StorageClass, use_class};
use crate::storage::{Residence, Spec, Storage};

/// A field: memory with named dimensions, halo and alignment.
///
/// Made by `zeros`, `as_storage` and their like. Every view, capsule and exported array holds one
/// reference to the memory, which is freed, or given back to its producer, when the last of them is
/// gone, on whichever thread that is. Strides are in bytes, as in NumPy. Operators, comparisons and
/// universal functions compute by the names of the dimensions.
///
/// `storage[key]` with integers, slices, None and ``...`` is a view that shares memory. Slices keep
/// dims and the rest of the halo, an integer drops its dimension, and None makes a view without
/// dims. An integer for every dimension gives a number. Lists, masks and arrays of indices give a
/// new NumPy array without names. `storage[key] = value` broadcasts and converts as NumPy does. If
/// storage and value have names, dimensions match by name; names that the storage lacks are refused.
/// If the storage has fewer than three dimensions, all among I, J and K, a value with three unnamed
/// axes is read as I, J, K. A named array in a key needs the names of the dimensions that it indexes,
/// in any order; a one-dimensional array of indices may have any unrelated name.
#[pyclass(subclass, frozen, weakref, name = "Storage", module = "dlfield")]
pub(crate) struct PyStorage {
    storage: InObject<Storage>,
    /// Name of the protocol that the memory came through; None if dlfield allocated it.
    #[pyo3(get)]
    pub(super) door: Option<&'static str>,
    /// An array over the memory, kept because making one takes longer than the rest of a bound call.
    array: Mutex<Option<Py<PyAny>>>,
}

/// What storages with a buffer on the host have in common: the doors of host memory.
#[pyclass(subclass, frozen, extends = PyStorage)]
#[pyo3(name = "HostBackedStorage", module = "dlfield._core")]
pub(crate) struct HostBacked;

/// A storage in host memory.
#[pyclass(frozen, extends = HostBacked, name = "CPUStorage", module = "dlfield")]
pub(crate) struct CpuStorage;

/// Memory on a GPU alone (GDP-3).
///
/// It has no buffer on the host: what needs one is absent or raises GTNoSuchBufferError
/// (`np.asarray` and `DataArray.values` raise BufferError). Copies bring values in and out.
#[pyclass(frozen, extends = PyStorage, name = "GPUStorage", module = "dlfield")]
pub(crate) struct GpuStorage;

/// Memory on host and GPU, kept in step by dlfield (GDP-3).
///
/// dlfield brings a side up to date before handing it out; this copies only if the other side was
/// written. dlfield cannot see what a view of another library writes: report it with
/// `set_host_modified()` or `set_device_modified()`, or use `with storage.host() as array:` and
/// `with storage.device() as array:`, which report it at the end.
#[pyclass(frozen, extends = HostBacked, name = "SoftwareManagedGPUStorage", module = "dlfield")]
pub(crate) struct SoftwareManagedGpuStorage;

/// Memory that host and GPU share, kept in step by CUDA (GDP-3).
///
/// Before the host gets it, dlfield waits for the work that it knows of.
#[pyclass(frozen, extends = HostBacked, name = "CUDAManagedGPUStorage", module = "dlfield")]
pub(crate) struct CudaManagedGpuStorage;

/// Registers the class with the doors.
pub(crate) fn introduce() {
    fn read<'a>(obj: &'a Bound<'_, PyAny>) -> Option<Held<'a>> {
        let object = obj.cast::<PyStorage>().ok()?.get();
        Some((object.storage(), object.door))
    }
    use_class(StorageClass {
        read,
        wrap: |py, storage, door| Ok(PyStorage::wrap(py, storage, Some(door))?.into_any()),
    });
}

/// The number of references to an object.
pub(crate) fn references(object: &Bound<'_, PyAny>) -> isize {
    // SAFETY: the object is alive, and its interpreter is attached.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }
}

impl PyStorage {
    /// A new Python object for a storage that came through `door` (`None`: allocated here).
    pub(crate) fn wrap(
        py: Python<'_>,
        storage: Storage,
        door: Option<&'static str>,
    ) -> PyResult<Py<Self>> {
        let residence = storage.residence();
        // SAFETY: a field of a class of Python's.
        let storage = unsafe { InObject::new(storage) };
        let base = PyClassInitializer::from(Self { storage, door, array: Mutex::default() });
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

    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Keeps an array over the memory for the next stencil.
    pub(crate) fn keep_array(&self, array: &Bound<'_, PyAny>) {
        let mut kept = self.array.lock().unwrap_or_else(PoisonError::into_inner);
        let before = kept.replace(array.clone().unbind());
        drop(kept); // first: what the array before lets go may be anything
        drop(before);
    }

    /// The array that was kept. Whoever got it may have changed its shape, strides and flags.
    pub(crate) fn kept_array<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let kept = self.array.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().map(|array| array.bind(py).clone())
    }

    /// True if a view or an export holds the memory, too, or something the array that was kept.
    pub(crate) fn is_shared(&self, py: Python<'_>) -> bool {
        let kept = self.kept_array(py);
        let own = if kept.is_some() { 2 } else { 1 };
        kept.is_some_and(|array| references(&array) > 2) || self.storage.managed().holders() > own
    }

    /// The buffer of the host, up to date and with nothing in flight; waits without the GIL.
    ///
    /// # Errors
    /// GTNoSuchBufferError that names `what` needs it, if there is none.
    pub(crate) fn host(&self, py: Python<'_>, what: &str) -> PyResult<&Managed> {
        match self.storage.plain_host() {
            Some(host) => Ok(host),
            None => Ok(py.detach(|| self.storage.host()).map_err(|error| error.about(what))?),
        }
    }

    /// The buffer of the device, up to date once the work in its timeline is done; errors as above.
    pub(crate) fn device(&self, py: Python<'_>, what: &str) -> PyResult<&Managed> {
        Ok(py.detach(|| self.storage.device()).map_err(|error| error.about(what))?)
    }

    /// The buffer of either side.
    pub(super) fn side(&self, py: Python<'_>, on_host: bool, what: &str) -> PyResult<&Managed> {
        if on_host { self.host(py, what) } else { self.device(py, what) }
    }

    /// A part or another order of this storage.
    pub(super) fn view(&self, py: Python<'_>, view: Storage) -> PyResult<Py<Self>> {
        Self::wrap(py, view, self.door)
    }
}

/// Gives a class the constructor of all: the same as `storage(...)`. No object of it is ever made
/// without memory.
macro_rules! constructed_as_storage {
    ($($class:ty),+) => {$(
        #[pymethods]
        impl $class {
            /// The same as `storage(...)`, for memory of the kind that the class names.
            #[new]
            #[classmethod]
            #[pyo3(signature = (*data, **options))]
            fn construct<'py>(
                class: &Bound<'py, PyType>,
                data: &Bound<'py, PyTuple>,
                options: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let py = class.py();
                let _inside = Inside::enter(py);
                let module = py.import(intern!(py, "dlfield.storages.constructors"))?;
                module.getattr(intern!(py, "construct"))?.call((class, data), options)
            }
        }
    )+};
}

constructed_as_storage!(
    PyStorage,
    CpuStorage,
    GpuStorage,
    SoftwareManagedGpuStorage,
    CudaManagedGpuStorage
);

/// A copy as `spec` requests, made without holding the GIL.
pub(crate) fn copy_with(py: Python<'_>, memory: &Managed, spec: &Spec) -> PyResult<Storage> {
    // SAFETY: the user excludes writes of other threads, as in NumPy; the copy reads bytes, of
    // which every pattern is valid.
    Ok(py.detach(|| unsafe { Storage::copy_of(memory, spec) })?)
}

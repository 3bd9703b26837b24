//! What the classes hold, and how their objects are made.

use std::sync::{Arc, PoisonError, RwLock};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::field::{Field, Halo};
use crate::managed::Managed;
use crate::protocol::dlpack::exchange::Exchanged;
use crate::protocol::keep::Keep;
use crate::storage::{Spec, Storage};

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
    host: Keep<Managed>,
    /// Its halo can be set.
    field: RwLock<Arc<Field>>,
    door: Option<&'static str>,
}

/// A storage in host memory.
#[pyclass(frozen, extends = PyStorage, name = "CPUStorage", module = "dlfield")]
pub(in crate::python) struct CpuStorage;

/// Memory on a GPU alone. None can be made yet.
#[pyclass(frozen, extends = PyStorage, name = "GPUStorage", module = "dlfield")]
pub(super) struct GpuStorage;

/// Memory on host and GPU, synchronised by dlfield. None can be made yet.
#[pyclass(frozen, extends = PyStorage, name = "SoftwareManagedGPUStorage", module = "dlfield")]
pub(super) struct SoftwareManagedGpuStorage;

/// Memory that host and GPU share, synchronised by CUDA. None can be made yet.
#[pyclass(frozen, extends = PyStorage, name = "CUDAManagedGPUStorage", module = "dlfield")]
pub(super) struct CudaManagedGpuStorage;

impl PyStorage {
    /// A new Python object for a storage that came through `door` (`None`: allocated here).
    pub(in crate::python) fn wrap(
        py: Python<'_>,
        storage: Storage,
        door: Option<&'static str>,
    ) -> PyResult<Py<CpuStorage>> {
        let (host, field) = storage.into_parts();
        let base = Self { host: Keep::new(host), field: RwLock::new(field), door };
        Py::new(py, PyClassInitializer::from(base).add_subclass(CpuStorage))
    }

    /// The memory.
    pub(in crate::python) fn managed(&self) -> &Managed {
        &self.host
    }

    /// Names, halo and alignment, as they are now.
    pub(in crate::python) fn field(&self) -> Arc<Field> {
        Arc::clone(&self.field.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Both, without Python around them. Copies no element.
    pub(in crate::python) fn storage(&self) -> Storage {
        Storage::from_parts(self.host.clone(), self.field())
    }

    pub(in crate::python) fn door(&self) -> Option<&'static str> {
        self.door
    }

    /// A part or another order of this storage.
    pub(super) fn view(&self, py: Python<'_>, view: Storage) -> PyResult<Py<CpuStorage>> {
        Self::wrap(py, view, self.door)
    }

    /// Another halo for the same memory; views that exist keep theirs.
    pub(super) fn put_halo(&self, halo: Option<Halo>) -> PyResult<()> {
        let (_, field) = self.storage().with_halo(halo)?.into_parts();
        *self.field.write().unwrap_or_else(PoisonError::into_inner) = field;
        Ok(())
    }
}

impl Exchanged for PyStorage {
    fn managed(&self) -> &Managed {
        &self.host
    }

    fn wrap(py: Python<'_>, managed: Managed) -> PyResult<Py<PyAny>> {
        let storage = Storage::wrap(managed, &Spec::default())?;
        Ok(Self::wrap(py, storage, Some("dlpack_c_exchange_api"))?.into_any())
    }
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

/// A class of which no object can be made yet.
macro_rules! only_constructed {
    ($class:ident) => {
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
                constructed(class, data, options)
            }
        }
    };
}

only_constructed!(GpuStorage);
only_constructed!(SoftwareManagedGpuStorage);
only_constructed!(CudaManagedGpuStorage);

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

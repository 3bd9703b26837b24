//! What an argument brings along, be it a storage or foreign.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyInt, PyList, PyTuple};

use super::class::PyStorage;
use crate::device::{Device, DeviceKind, Target};
use crate::dtype::DType;
use crate::error::{Error, Failure};
use crate::field::{Field, Said, plain};
use crate::managed::Managed;
use crate::protocol::gt4py::Hooks;
use crate::protocol::{Arrival, Wish, arrive, arrive_as, gt4py};
use crate::python::numpy::dtype_to;
use crate::python::sync_state::PySyncState;
use crate::storage::{Buffers, Residence, Storage};

/// Memory that came in, with what is known of it.
pub(in crate::python) struct Source {
    pub(in crate::python) managed: Managed,
    pub(in crate::python) field: Field,
    /// What it wants called around a computation.
    pub(in crate::python) hooks: Hooks,
    /// The protocol it came through; `None` for memory that dlfield allocated.
    pub(in crate::python) door: Option<&'static str>,
    /// Where a storage of it is, unless somebody wishes otherwise.
    pub(in crate::python) near: Residence,
    /// Of a storage what it shares with its views.
    pub(in crate::python) held: Option<Held>,
}

/// The buffers of a storage, and the object for their state.
pub(in crate::python) struct Held {
    pub(in crate::python) buffers: Buffers,
    pub(in crate::python) sync: Option<Py<PySyncState>>,
}

impl Source {
    /// A storage is taken as it is, everything else through the doors. Copies nothing.
    pub(in crate::python) fn of(data: &Bound<'_, PyAny>) -> Result<Self, Failure> {
        Self::of_as(data, Wish::Share)
    }

    /// As `of`, for memory that is wanted somewhere.
    pub(in crate::python) fn of_as(data: &Bound<'_, PyAny>, wish: Wish) -> Result<Self, Failure> {
        if let Ok(storage) = data.cast::<PyStorage>() {
            return Self::of_storage(storage, wish);
        }
        let outside = from_outside(data, wish)?;
        let Some(storage) = storage_inside(data.py(), &outside) else {
            return Self::foreign(outside);
        };
        let mut source = Self::of_storage(&storage, wish)?;
        source.field.dims = outside.said.dims;
        Ok(source)
    }

    fn of_storage(storage: &Bound<'_, PyStorage>, wish: Wish) -> Result<Self, Failure> {
        let (py, storage) = (storage.py(), storage.get());
        let held = Held {
            buffers: storage.buffers().clone(),
            sync: storage.sync().map(|sync| sync.clone_ref(py)),
        };
        Ok(Self {
            managed: side_of(py, storage, wish)?,
            field: Field::clone(&storage.field()),
            hooks: Hooks::default(),
            door: storage.door(),
            near: storage.residence(),
            held: Some(held),
        })
    }

    /// As `of_as`, for a copy: a NumPy array that cannot be shared (byte-swapped, or with strides
    /// that are no multiple of its items) is copied into one that can, and numbers go through NumPy,
    /// which is told the type that is wanted of them, so that no value goes by way of another.
    pub(in crate::python) fn to_copy(
        data: &Bound<'_, PyAny>,
        wish: Wish,
        dtype: Option<DType>,
    ) -> Result<Self, Failure> {
        match Self::of_as(data, wish) {
            Err(Failure::Ours(Error::Buffer(text))) => match native_copy(data)? {
                // The copy is a plain array: what a subclass says of itself comes along.
                Some(copy) => {
                    let said = Said { dims: gt4py::dims(data)?, ..Said::default() };
                    Self::foreign(Arrival { said, ..arrive(&copy)? })
                }
                None => Err(Error::Buffer(text).into()),
            },
            Err(Failure::Ours(Error::Type(text))) => match numbers(data, dtype)? {
                Some(copy) => Self::foreign(arrive(&copy)?),
                None => Err(Error::Type(text).into()),
            },
            answer => answer,
        }
    }

    fn foreign(arrival: Arrival) -> Result<Self, Failure> {
        let Arrival { managed, said, hooks, door, .. } = arrival;
        let field = said.into_field(managed.layout().shape());
        Ok(Self { hooks, ..Self::of_memory(managed, field, door) })
    }

    /// Memory of which nothing else is known.
    pub(in crate::python) fn plain(managed: Managed, door: &'static str) -> Self {
        let field = Field::clone(&plain(managed.layout().ndim()));
        Self::of_memory(managed, field, Some(door))
    }

    fn of_memory(managed: Managed, field: Field, door: Option<&'static str>) -> Self {
        let near = Residence::of(managed.device());
        let device = managed.device();
        // Without a driver what CUDA manages is memory of the host.
        let shared = device.kind == DeviceKind::CudaManaged && near == Residence::Host;
        let managed = managed.seen_at(if shared { Device::CPU } else { device });
        Self { managed, field, hooks: Hooks::default(), door, near, held: None }
    }

    /// A storage over host memory, about which nothing more is wished for.
    pub(in crate::python) fn into_storage(self) -> Result<Storage, Error> {
        self.field.check(self.managed.layout().shape())?;
        Ok(Storage::from_parts(Buffers::Host(self.managed), Arc::new(self.field)))
    }

    /// The memory for as long as somebody likes: acquired now, released when the last view of it is
    /// gone (GDP-3's functions; most arrays have none).
    pub(in crate::python) fn keep(&self, py: Python<'_>) -> PyResult<Managed> {
        let managed = self.managed.clone();
        if self.hooks.is_empty() {
            return Ok(managed);
        }
        Ok(managed.along_with(self.hooks.acquire(py)?))
    }
}

/// As a storage says of itself, or as an object does through the doors; nothing else is made of it.
pub(in crate::python) fn arrival(data: &Bound<'_, PyAny>, wish: Wish) -> Result<Arrival, Failure> {
    let Ok(storage) = data.cast::<PyStorage>() else {
        let outside = from_outside(data, wish)?;
        let Some(storage) = storage_inside(data.py(), &outside) else {
            return Ok(outside);
        };
        let inner = arrival(storage.as_any(), wish)?;
        let Said { dims, origin, .. } = outside.said;
        let said = Said { dims, halo: inner.said.halo, origin: origin.or(inner.said.origin) };
        return Ok(Arrival { said, ..inner });
    };
    let (storage, field) = (storage.get(), storage.get().field());
    let (dims, halo) = (field.dims.clone(), field.halo.clone().into());
    Ok(Arrival {
        managed: side_of(data.py(), storage, wish)?,
        said: Said { dims, halo, origin: field.origin.clone() },
        hooks: hooks_of(data, storage, wish)?,
        door: storage.door(),
        kind: "a read-only storage",
        inside: None,
    })
}

/// The storage that a DataArray holds: it says more of itself than its doors do.
fn storage_inside<'py>(py: Python<'py>, arrival: &Arrival) -> Option<Bound<'py, PyStorage>> {
    arrival.inside.as_ref()?.bind(py).cast::<PyStorage>().ok().cloned()
}

/// What brings the buffer for a computation up to date, and notes that it was written.
fn hooks_of(data: &Bound<'_, PyAny>, storage: &PyStorage, wish: Wish) -> PyResult<Hooks> {
    match (wish, storage.buffers()) {
        (_, Buffers::Host(_)) => Ok(Hooks::default()),
        (Wish::For(Target::Host), _) => {
            Hooks::of_methods(data, "device_to_host", "set_host_modified")
        }
        (Wish::For(Target::Gpu(_)), _) => {
            Hooks::of_methods(data, "host_to_device", "set_device_modified")
        }
        _ => Ok(Hooks::default()),
    }
}

/// Through the doors, to where the wish can use it.
fn from_outside(data: &Bound<'_, PyAny>, wish: Wish) -> Result<Arrival, Failure> {
    let arrival = arrive_as(data, wish)?;
    if matches!(wish, Wish::OnHost | Wish::For(Target::Host)) {
        arrival.managed.check_on_host()?;
    }
    Ok(arrival)
}

/// The buffer of a storage that a wish is for: up to date, but that of a computation to come, which is
/// acquired first.
fn side_of(py: Python<'_>, storage: &PyStorage, wish: Wish) -> Result<Managed, Failure> {
    let buffers = storage.buffers();
    if let Buffers::Host(host) = buffers {
        return Ok(host.clone());
    }
    Ok(match (wish, buffers.of_host(), buffers.of_device()) {
        (Wish::Share, ..) | (Wish::CopyToHost, None, _) => storage.newest(py)?.clone(),
        (Wish::CopyToHost, Some(_), _) => storage.host(py, "device='cpu'")?,
        (Wish::OnHost, ..) => storage.host(py, "device='cpu'")?.seen_at(Device::CPU),
        (Wish::For(Target::Host), Some(host), _) => host.clone(),
        (Wish::OnGpu, _, Some(_)) => storage.device(py, "device='gpu'")?,
        (Wish::For(Target::Gpu(_)), _, Some(device)) => device.clone(),
        (Wish::For(Target::Host), None, _) => {
            storage.managed().check_on_host()?;
            storage.managed().clone()
        }
        (Wish::OnGpu, ..) => storage.newest(py)?.clone(),
        (Wish::For(_), ..) => storage.managed().clone(),
    })
}

/// NumPy's reading of numbers and of lists of them, as the type that is wanted.
fn numbers<'py>(
    data: &Bound<'py, PyAny>,
    dtype: Option<DType>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let listed = data.is_instance_of::<PyList>() || data.is_instance_of::<PyTuple>();
    let number = data.is_instance_of::<PyInt>()
        || data.is_instance_of::<PyFloat>()
        || data.is_instance_of::<PyComplex>();
    if !listed && !number {
        return Ok(None);
    }
    let dtype = dtype.map(|dtype| dtype_to(data.py(), dtype)).transpose()?;
    data.py().import("numpy")?.call_method1("array", (data, dtype)).map(Some)
}

/// A copy in native byte order, where `data` is a NumPy array whose elements are all there.
fn native_copy<'py>(data: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let numpy = data.py().import("numpy")?;
    let masked = numpy.getattr("ma")?.getattr("MaskedArray")?;
    if !data.is_instance(&numpy.getattr("ndarray")?)? || data.is_instance(&masked)? {
        return Ok(None);
    }
    if gt4py::says_more_than_numpy(data)? {
        return Ok(None);
    }
    let native = data.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
    numpy.call_method1("array", (data, native)).map(Some)
}

//! What an argument brings along, be it a storage or foreign.

use pyo3::prelude::*;

use super::storage::PyStorage;
use crate::error::{Error, Failure};
use crate::field::Field;
use crate::layout::Extents;
use crate::managed::Managed;
use crate::protocol::gt4py::Hooks;
use crate::protocol::{Arrival, Wish, arrive, arrive_as, gt4py};

/// Memory that came in, with what is known of it.
pub(super) struct Source {
    pub(super) managed: Managed,
    pub(super) field: Field,
    /// Where it says itself that its domain begins.
    pub(super) origin: Option<Extents>,
    /// What it wants called around a computation.
    pub(super) hooks: Hooks,
    /// The protocol it came through; `None` for memory that dlfield allocated.
    pub(super) door: Option<&'static str>,
    /// What to call it in messages where it is read-only.
    pub(super) kind: &'static str,
    /// Whether it is a storage, whose unknown halo means something.
    pub(super) is_storage: bool,
}

impl Source {
    /// A storage is taken as it is, everything else through the doors. Copies nothing.
    pub(super) fn of(data: &Bound<'_, PyAny>) -> Result<Self, Failure> {
        Self::of_as(data, Wish::Share)
    }

    /// As `of`, for memory that is wanted somewhere.
    pub(super) fn of_as(data: &Bound<'_, PyAny>, wish: Wish) -> Result<Self, Failure> {
        let Ok(storage) = data.cast::<PyStorage>() else {
            return Self::foreign(arrive_as(data, wish)?);
        };
        let (door, storage) = (storage.get().door(), storage.get().storage());
        Ok(Self {
            managed: storage.host().clone(),
            field: storage.field().clone(),
            origin: storage.field().origin.clone(),
            hooks: Hooks::default(),
            door,
            kind: "a read-only storage",
            is_storage: true,
        })
    }

    /// As `of_as`, for a copy: a NumPy array that cannot be shared (byte-swapped, or with strides
    /// that are no multiple of its items) is copied into one that can.
    pub(super) fn to_copy(data: &Bound<'_, PyAny>, wish: Wish) -> Result<Self, Failure> {
        match Self::of_as(data, wish) {
            Err(Failure::Ours(Error::Buffer(text))) => match native_copy(data)? {
                // The copy is a plain array: what a subclass says of itself comes along.
                Some(copy) => Self::foreign(Arrival { dims: gt4py::dims(data)?, ..arrive(&copy)? }),
                None => Err(Error::Buffer(text).into()),
            },
            answer => answer,
        }
    }

    fn foreign(arrival: Arrival) -> Result<Self, Failure> {
        let Arrival { managed, dims, halo, origin, hooks, door, kind } = arrival;
        managed.check_on_host()?;
        let mut field = Field { dims, halo, origin: origin.clone(), ..Field::default() };
        if field.check(managed.layout().shape()).is_err() {
            field.origin = None; // of a field that begins before its memory, or has other names
        }
        Ok(Self { managed, field, origin, hooks, door: Some(door), kind, is_storage: false })
    }

    /// The memory for as long as somebody likes: acquired now, released when the last view of it is
    /// gone (GDP-3's functions; most arrays have none).
    pub(super) fn keep(&mut self, py: Python<'_>) -> PyResult<Managed> {
        let managed = self.managed.clone();
        if self.hooks.is_empty() {
            return Ok(managed);
        }
        Ok(managed.along_with(self.hooks.acquire(py)?))
    }
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

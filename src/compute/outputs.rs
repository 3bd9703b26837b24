//! Where a function writes: arrays of the caller, or new storages.

use pyo3::intern;
use pyo3::prelude::*;
use smallvec::SmallVec;

use super::given::{Given, array_of, check_storage_at, elsewhere, has_the_last_word, memory_at};
use crate::device::Target;
use crate::error::Error;
use crate::field::{Joined, Operand, show_dims};
use crate::managed::Managed;
use crate::protocol::is_plain_ndarray;
use crate::protocol::read::wrong_type;
use crate::python::storage::PyStorage;
use crate::storage::{Residence, Storage};
use crate::sync::Dirty;

/// An output.
#[derive(Clone)]
pub(super) enum Output<'py> {
    /// A storage, of the caller's or a new one.
    Storage(Bound<'py, PyStorage>),
    /// An array of NumPy.
    Array(Bound<'py, PyAny>),
}

impl<'py> Output<'py> {
    /// Reads an output; `None` if its class is to decide what happens.
    pub(super) fn read(object: &Bound<'py, PyAny>, what: &str) -> PyResult<Option<Self>> {
        if let Ok(storage) = object.cast::<PyStorage>() {
            let object = storage.get();
            if object.storage().residence() == Residence::Host {
                object.host(storage.py(), what)?;
            }
            object.storage().check_assignable().map_err(|error| error.about(what))?;
            return Ok(Some(Self::Storage(storage.clone())));
        }
        if is_plain_ndarray(object) {
            return Ok(Some(Self::Array(object.clone())));
        }
        if has_the_last_word(object)? {
            return Ok(None);
        }
        let expected = "a storage or a NumPy array as out";
        Err(wrong_type(what, expected, object)
            .followed_by("; pass dlfield.as_storage(array)")
            .into())
    }

    /// A new storage.
    pub(super) fn new(py: Python<'py>, made: Storage) -> PyResult<Self> {
        Ok(Self::Storage(PyStorage::wrap(py, made, None)?.into_bound(py)))
    }

    pub(super) fn object(&self) -> Bound<'py, PyAny> {
        match self {
            Self::Storage(storage) => storage.clone().into_any(),
            Self::Array(array) => array.clone(),
        }
    }

    /// True if an operand is this storage, on the host.
    pub(super) fn is(&self, given: &Given<'py>) -> bool {
        matches!((self, given), (Self::Storage(own), Given::Storage(other, _)) if own.is(other))
    }

    /// The buffers of a storage.
    pub(super) fn residence(&self) -> Option<Residence> {
        match self {
            Self::Storage(storage) => Some(storage.get().storage().residence()),
            Self::Array(_) => None,
        }
    }

    /// Refuses an output that cannot be written at `target`.
    pub(super) fn check_at(&self, target: Target, what: &str) -> PyResult<()> {
        match self {
            Self::Storage(storage) => check_storage_at(storage, target, what),
            Self::Array(_) if target == Target::Host => Ok(()),
            Self::Array(_) => Err(elsewhere(what, target, "an array of NumPy as out").into()),
        }
    }

    /// A storage, and memory of its layout.
    pub(super) fn storage(&self) -> Option<(&Bound<'py, PyStorage>, &Managed)> {
        match self {
            Self::Storage(storage) => Some((storage, storage.get().storage().managed())),
            Self::Array(_) => None,
        }
    }

    /// The array that NumPy writes.
    pub(super) fn value(&self, what: &str) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Storage(storage) => array_of(storage, what, false),
            Self::Array(array) => Ok(array.clone()),
        }
    }

    /// The memory of a storage at a target where it has some; `None` for an array of NumPy.
    pub(super) fn memory_at(
        &self,
        py: Python<'py>,
        target: Target,
        what: &str,
    ) -> PyResult<Option<&Managed>> {
        match self {
            Self::Storage(storage) => match storage.get().storage().residence() {
                Residence::Host => Ok(Some(storage.get().storage().managed())),
                _ => memory_at(py, storage.get(), target, what).map(Some),
            },
            Self::Array(_) => Ok(None),
        }
    }

    /// Marks the side that was written.
    pub(super) fn mark(&self, py: Python<'_>, written: Dirty) {
        if let Self::Storage(storage) = self {
            let storage = storage.get().storage();
            if storage.sync_state().is_some() {
                py.detach(|| storage.set_dirty(written));
            }
        }
    }

    /// Refuses an output of another shape or order than the result.
    fn check(&self, joined: &Joined) -> PyResult<()> {
        let (shape, dims) = match self {
            Self::Storage(storage) => {
                (storage.get().storage().shape().to_vec(), storage.get().storage().dims())
            }
            Self::Array(array) => (array.getattr(intern!(array.py(), "shape"))?.extract()?, None),
        };
        if let (Some(own), Some(dims)) = (&dims, &joined.dims)
            && own != dims
        {
            return Err(Error::Argument(format!(
                "out: expected the dims {}, got {}; transpose or rename it",
                show_dims(dims),
                show_dims(own)
            ))
            .into());
        }
        if shape == joined.shape.as_slice() {
            return Ok(());
        }
        Err(Error::Argument(format!(
            "out: expected an array of the result's shape {:?}, got shape {shape:?}; pass one of \
             that shape, or none",
            joined.shape.as_slice()
        ))
        .into())
    }
}

/// What operands have in common, in the shape of the outputs if there are any.
pub(super) fn join(given: &[Given<'_>], outputs: &[Option<Output<'_>>]) -> PyResult<Joined> {
    let operands: SmallVec<[_; 4]> = given.iter().filter_map(Given::operand).collect();
    join_operands(&operands, outputs)
}

/// As [`join`].
pub(super) fn join_operands(
    operands: &[Operand<'_>],
    outputs: &[Option<Output<'_>>],
) -> PyResult<Joined> {
    let target = outputs.iter().flatten().find_map(Output::storage);
    let target = target.map(|(storage, memory)| (storage.get().storage().field(), memory));
    let joined = match &target {
        None => Joined::new(operands)?,
        Some((field, memory)) => {
            let target = Operand { shape: memory.layout().shape(), field: Some(field) };
            Joined::within(target, operands)?
        }
    };
    for output in outputs.iter().flatten() {
        output.check(&joined)?;
    }
    Ok(joined)
}

//! What comes in: memory that can be trusted, with what its object says of it.

use std::borrow::Cow;
use std::sync::LazyLock;

use pyo3::prelude::*;

use super::hooks::Hooks;
use crate::device::Device;
use crate::field::{Dims, Field, Labelled};
use crate::managed::Managed;
use crate::storage::{Residence, Spec, Storage};

/// Memory that came in, with what its object says of it.
pub(crate) struct Arrival {
    pub(crate) memory: Managed,
    pub(crate) labels: Labelled,
    /// What the object wants called around a computation.
    pub(crate) hooks: Hooks,
    /// Name of the door it came through; `None` for memory that dlfield allocated.
    pub(crate) door: Option<&'static str>,
    /// What messages call it if it is read-only.
    pub(crate) readonly_kind: &'static str,
    /// All of the storage that it is a buffer of, unless it is for a computation.
    pub(crate) storage: Option<Box<Storage>>,
}

impl Arrival {
    /// Names of the axes, if they have any.
    pub(crate) fn dims(&self) -> Option<&Dims> {
        self.labels.dims()
    }

    /// The memory for as long as it is used: acquired now, and released when the last view of it is
    /// gone (GDP-3's hooks; most arrays have none).
    ///
    /// # Errors
    /// What `acquire` raises.
    #[inline]
    pub(crate) fn acquired(self, py: Python<'_>) -> PyResult<Managed> {
        self.hooks.acquired(py, self.memory)
    }

    /// True for memory of the host of which nothing else is known.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        let unlabelled = matches!(self.labels, Labelled::Nothing);
        let alone = self.hooks.is_empty() && self.storage.is_none();
        unlabelled && alone && self.memory.device() == Device::CPU
    }

    /// The storage of the host that came in, if nothing around it says anything else, and if its
    /// aligned element has no index that would have to be pinned.
    pub(crate) fn take_storage(&mut self) -> Option<Storage> {
        match &self.labels {
            Labelled::AsField(field) if field.alignment <= 1 => {}
            _ => return None,
        }
        let storage = self.storage.take_if(|storage| storage.plain_host().is_some());
        storage.map(|storage| *storage)
    }

    /// The labels that came in, as those of a field of this shape.
    pub(crate) fn field(&self, shape: &[i64]) -> Field {
        self.labels.clone().into_labels().into_field(shape)
    }

    /// A storage over the memory, before options change anything: with what is known of it, where
    /// it is.
    #[inline]
    pub(crate) fn spec(&self) -> Cow<'static, Spec> {
        // The usual one is made once: it is large.
        static OF_AN_ARRAY: LazyLock<Spec> = LazyLock::new(Spec::default);
        let default_residence = Residence::for_memory_on(self.memory.device());
        let shape = self.memory.layout().shape();
        match &self.storage {
            Some(storage) => {
                let Field { dims, halo, origin, .. } = self.field(shape);
                let field = Field { dims, halo, origin, ..Field::clone(&storage.field()) };
                Cow::Owned(Spec::like(field.with_fixed_index(shape), storage.residence()))
            }
            None => match self.labels {
                Labelled::Nothing if default_residence == OF_AN_ARRAY.default_residence => {
                    Cow::Borrowed(&*OF_AN_ARRAY)
                }
                Labelled::Nothing => Cow::Owned(Spec { default_residence, ..Spec::default() }),
                _ => Cow::Owned(Spec::like(self.field(shape), default_residence)),
            },
        }
    }
}

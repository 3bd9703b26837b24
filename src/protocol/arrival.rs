//! What comes in: memory that can be trusted, with what its object says of it.

use pyo3::prelude::*;

use super::hooks::Hooks;
use crate::field::{Dims, Field, Labels};
use crate::managed::Managed;
use crate::storage::{Residence, Spec, Storage};

/// Memory that came in, with what its object says of it.
pub(crate) struct Arrival {
    pub(crate) memory: Managed,
    /// `None` if nothing is labelled.
    pub(crate) labels: Option<Box<Labels>>,
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
        self.labels.as_ref()?.dims.as_ref()
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

    /// A storage over the memory, before options change anything: with what is known of it, where
    /// it is.
    #[inline]
    pub(crate) fn spec(&self) -> Spec {
        let default_residence = Residence::for_memory_on(self.memory.device());
        let shape = self.memory.layout().shape();
        match &self.storage {
            Some(storage) => {
                let labels = self.labels.as_deref().cloned().unwrap_or_default();
                let Field { dims, halo, origin, .. } = labels.into_field(shape);
                let field = Field { dims, halo, origin, ..Field::clone(&storage.field()) };
                Spec::like(field.with_fixed_index(shape), storage.residence())
            }
            None => match self.labels.as_deref().cloned() {
                Some(labels) => Spec::like(labels.into_field(shape), default_residence),
                None => Spec { default_residence, ..Spec::default() },
            },
        }
    }
}

//! Memory that one call leaves to the next. A list of arguments is large enough for the allocator to
//! tidy up at each request, which costs more than the rest of the list.

use std::sync::{Mutex, PoisonError};

use crate::stencil::Argument;

/// An empty list that has grown before, or a new one where another call has that.
#[derive(Default)]
pub(super) struct Scratch(Mutex<Vec<Option<Argument>>>);

impl Scratch {
    pub(super) fn take(&self) -> Vec<Option<Argument>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Drops the arguments, which may run code of their producers, and keeps the list.
    pub(super) fn put(&self, mut arguments: Vec<Option<Argument>>) {
        arguments.clear();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = arguments;
    }
}

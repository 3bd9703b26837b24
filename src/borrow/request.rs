//! Requests to borrow elements, and when they conflict.
#![forbid(unsafe_code)]

use crate::layout::{Layout, may_overlap};
use crate::managed::Managed;

/// Elements, and the requested access to them.
#[derive(Clone)]
pub(crate) struct BorrowRequest {
    pub(crate) address: usize,
    pub(crate) layout: Layout,
    pub(crate) writes: bool,
}

/// Existing access that prevents a borrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BorrowConflict {
    IsRead,
    IsWritten,
}

impl BorrowRequest {
    /// Requests all elements of `memory`.
    pub(crate) fn new(memory: &Managed, writes: bool) -> Self {
        Self { address: memory.position(), layout: memory.layout().clone(), writes }
    }

    /// Checks for conflicts with other borrows.
    pub(super) fn check_free<'a>(
        &self,
        mut live: impl Iterator<Item = &'a Self>,
    ) -> Result<(), BorrowConflict> {
        let meets = |other: &&Self| {
            (self.writes || other.writes)
                && may_overlap(&other.layout, other.address, &self.layout, self.address)
        };
        match live.find(meets) {
            None => Ok(()),
            Some(Self { writes: true, .. }) => Err(BorrowConflict::IsWritten),
            Some(_) => Err(BorrowConflict::IsRead),
        }
    }
}

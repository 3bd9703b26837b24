//! Memory: who may read and who may write, for typed access from Rust.
//!
//! Storages and their views share memory at will, and none of them knows of the others. What the
//! compiler checks for one array is therefore checked here, at run time and by address: as long as somebody
//! reads elements nobody else writes them, and as long as somebody writes them nobody else has them. Two views
//! that interleave and have no byte in common do not disturb each other.
//!
//! Only access through this crate's views is seen, and copies between the buffers of a pair. What Python, or
//! whoever else was given the memory, does to it meanwhile is for whoever gave it to answer for, as everywhere
//! where arrays are exchanged. Extension modules of one interpreter have this crate, and a list, each for itself: from
//! the first array on that comes from Python, or goes there, they all use that of one of them.
#![forbid(unsafe_code)]

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::{Error, Result};
use crate::layout::{Layout, may_overlap};
use crate::managed::Managed;

/// Somebody has the elements; until it is dropped.
pub(crate) struct Borrow {
    number: u64,
    list: &'static dyn List,
}

/// Who wants which elements, and what for.
#[derive(Clone)]
pub(crate) struct Claim {
    pub(crate) address: usize,
    pub(crate) layout: Layout,
    pub(crate) writes: bool,
}

/// What a list answers where somebody else has one of the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    IsRead,
    IsWritten,
}

/// Where borrows are noted.
pub(crate) trait List: Send + Sync {
    /// Notes the claim, and gives it a number to leave by.
    fn enter(&self, claim: Claim) -> std::result::Result<u64, Taken>;
    fn leave(&self, number: u64);
}

/// The list of this module.
pub(crate) struct Own {
    live: Mutex<Vec<Entry>>,
    numbers: AtomicU64,
    /// The one that is used instead, once it is known; set while `live` is locked.
    of_others: OnceLock<Box<dyn List>>,
}

struct Entry {
    number: u64,
    process: u32,
    claim: Claim,
    /// Its number in the list of others, where it was noted before that was known.
    there: Option<u64>,
}

pub(crate) static OWN: Own = Own::new();

impl Borrow {
    /// For reading. Others may read too.
    ///
    /// # Errors
    /// [`Error::Buffer`] where somebody writes one of the elements.
    pub(crate) fn shared(memory: &Managed) -> Result<Self> {
        Self::of(memory, false)
    }

    /// For writing, and for nobody else.
    ///
    /// # Errors
    /// [`Error::Buffer`] where somebody has one of the elements, for memory that is read-only, and where
    /// several indices name one element.
    #[cfg_attr(not(feature = "ndarray"), allow(dead_code, reason = "Arrow's arrays are only read"))]
    pub(crate) fn exclusive(memory: &Managed) -> Result<Self> {
        if memory.layout().overlaps_itself() {
            return Err(Error::Buffer(
                "field: expected an index for each element, got memory in which several name one; make a copy of it"
                    .into(),
            ));
        }
        if memory.readonly() {
            return Err(Error::Buffer(
                "field: expected memory that may be written, got read-only memory; make a copy of it".into(),
            ));
        }
        Self::of(memory, true)
    }

    /// For a copy into memory that is dlfield's to bring up to date.
    ///
    /// # Errors
    /// [`Error::Buffer`] where somebody has one of the elements.
    pub(crate) fn overwriting(memory: &Managed) -> Result<Self> {
        Self::of(memory, true)
    }

    fn of(memory: &Managed, writes: bool) -> Result<Self> {
        let claim = Claim { address: memory.address(), layout: memory.layout().clone(), writes };
        OWN.note(claim).map_err(|other| taken(writes, other))
    }
}

impl Drop for Borrow {
    fn drop(&mut self) {
        self.list.leave(self.number);
    }
}

impl fmt::Debug for Borrow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Borrow").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Own {
    const fn new() -> Self {
        Self {
            live: Mutex::new(Vec::new()),
            numbers: AtomicU64::new(0),
            of_others: OnceLock::new(),
        }
    }

    /// In the list that is used now.
    fn note(&'static self, claim: Claim) -> std::result::Result<Borrow, Taken> {
        let mut live = self.live();
        let Some(list) = self.of_others.get() else {
            return Ok(Borrow { number: self.put(&mut live, claim)?, list: self });
        };
        claim.check_free(&live)?; // of two from before that met, one is here alone
        drop(live);
        Ok(Borrow { number: list.enter(claim)?, list: &**list })
    }

    /// From here on borrows are noted in a list that others use too, and so are those that there are. Only the first
    /// call counts.
    #[cfg(any(feature = "python", test))]
    pub(crate) fn share(&self, list: Box<dyn List>) {
        let mut live = self.live();
        if self.of_others.set(list).is_err() {
            return;
        }
        let (list, process) = (self.of_others.get(), std::process::id());
        for one in live.iter_mut().filter(|one| one.process == process) {
            // Where it is taken there, both have it: nothing is left to be done but to refuse all others.
            one.there = list.and_then(|list| list.enter(one.claim.clone()).ok());
        }
    }

    fn put(&self, live: &mut Vec<Entry>, claim: Claim) -> std::result::Result<u64, Taken> {
        claim.check_free(live)?;
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        live.push(Entry { number, process: std::process::id(), claim, there: None });
        Ok(number)
    }

    fn live(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl List for Own {
    fn enter(&self, claim: Claim) -> std::result::Result<u64, Taken> {
        self.put(&mut self.live(), claim)
    }

    fn leave(&self, number: u64) {
        let mut live = self.live();
        let Some(place) = live.iter().position(|one| one.number == number) else { return };
        let left = live.swap_remove(place);
        if let (Some(list), Some(there)) = (self.of_others.get(), left.there) {
            list.leave(there);
        }
    }
}

impl Claim {
    /// Nobody of this process has one of the elements in a way that this would disturb. A child has copies of its
    /// parent's memory, and none of the parent's other threads.
    fn check_free(&self, live: &[Entry]) -> std::result::Result<(), Taken> {
        let process = std::process::id();
        let mut of_process = live.iter().filter(|one| one.process == process).map(|one| &one.claim);
        let meets = |other: &&Self| {
            (self.writes || other.writes)
                && may_overlap(&other.layout, other.address, &self.layout, self.address)
        };
        match of_process.find(meets) {
            None => Ok(()),
            Some(Self { writes: true, .. }) => Err(Taken::IsWritten),
            Some(_) => Err(Taken::IsRead),
        }
    }
}

fn taken(writes: bool, other: Taken) -> Error {
    let wanted = if writes { "to write" } else { "to read" };
    let other = match other {
        Taken::IsWritten => "written",
        Taken::IsRead => "read",
    };
    Error::Buffer(format!(
        "field: expected memory {wanted} that nobody else has, got elements that are being {other} through another \
         view, argument or Arrow array; let that go first, or pass a copy"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc::{Fill, allocate, plan};
    use crate::dtype::DType;

    fn field() -> Managed {
        allocate(&plan(&[4, 6], DType::Float64, &[0, 1], 1, &[]).unwrap(), Fill::Zeros).unwrap()
    }

    #[test]
    fn many_may_read_and_then_nobody_writes() {
        let field = field();
        let readers = [Borrow::shared(&field).unwrap(), Borrow::shared(&field).unwrap()];
        let text = Borrow::exclusive(&field).unwrap_err().to_string();
        assert!(text.contains("being read through another view"), "{text}");
        drop(readers);
        assert!(Borrow::exclusive(&field).is_ok());
    }

    #[test]
    fn a_writer_excludes_readers_and_other_writers() {
        let field = field();
        let writer = Borrow::exclusive(&field).unwrap();
        assert!(Borrow::shared(&field.narrow(0, 3, 1).unwrap()).is_err());
        assert!(Borrow::exclusive(&field.permute(&[1, 0]).unwrap()).is_err());
        drop(writer);
        assert!(Borrow::shared(&field).is_ok());
    }

    #[test]
    fn parts_that_share_no_byte_are_written_at_once() {
        let field = field();
        let left = Borrow::exclusive(&field.narrow(1, 0, 3).unwrap()).unwrap();
        let right = Borrow::exclusive(&field.narrow(1, 3, 3).unwrap());
        assert!(right.is_ok(), "their rows interleave");
        drop(left);
    }

    /// Two modules: the list of the first, and one that will use it.
    fn two_lists() -> (&'static Own, &'static Own) {
        (Box::leak(Box::new(Own::new())), Box::leak(Box::new(Own::new())))
    }

    struct Of(&'static Own);

    impl List for Of {
        fn enter(&self, claim: Claim) -> std::result::Result<u64, Taken> {
            self.0.enter(claim)
        }

        fn leave(&self, number: u64) {
            self.0.leave(number);
        }
    }

    fn claim(memory: &Managed, writes: bool) -> Claim {
        Claim { address: memory.address(), layout: memory.layout().clone(), writes }
    }

    #[test]
    fn what_others_have_is_taken_here_too() {
        let ((first, second), field) = (two_lists(), field());
        second.share(Box::new(Of(first)));
        let reader = first.note(claim(&field, false)).unwrap();
        assert_eq!(second.note(claim(&field, true)).unwrap_err(), Taken::IsRead);
        drop(reader);
        let writer = second.note(claim(&field, true)).unwrap();
        assert_eq!(first.note(claim(&field, false)).unwrap_err(), Taken::IsWritten);
        drop(writer);
        assert!(first.note(claim(&field, true)).is_ok());
    }

    #[test]
    fn what_was_there_before_is_known_to_others_until_it_is_dropped() {
        let ((first, second), field) = (two_lists(), field());
        let before = second.note(claim(&field, true)).unwrap();
        second.share(Box::new(Of(first)));
        for list in [first, second] {
            assert_eq!(list.note(claim(&field, false)).unwrap_err(), Taken::IsWritten);
        }
        drop(before);
        for list in [first, second] {
            assert!(list.note(claim(&field, true)).is_ok());
        }
    }

    #[test]
    fn where_two_from_before_meet_nobody_else_gets_the_elements_until_both_are_gone() {
        let ((first, second), field) = (two_lists(), field());
        let before = [first, second].map(|list| list.note(claim(&field, true)).unwrap());
        second.share(Box::new(Of(first)));
        for one in before {
            assert!(second.note(claim(&field, false)).is_err());
            drop(one);
        }
        assert!(second.note(claim(&field, true)).is_ok());
    }

    #[test]
    fn only_the_first_list_that_is_shared_counts() {
        let ((first, second), (third, _), field) = (two_lists(), two_lists(), field());
        second.share(Box::new(Of(first)));
        second.share(Box::new(Of(third)));
        let _writer = second.note(claim(&field, true)).unwrap();
        assert!(first.note(claim(&field, true)).is_err());
        assert!(third.note(claim(&field, true)).is_ok());
    }

    #[test]
    fn read_only_memory_and_a_broadcast_are_not_written() {
        let text = Borrow::exclusive(&field().into_readonly()).unwrap_err().to_string();
        assert!(text.contains("read-only"), "{text}");
    }
}

//! Memory: borrows of elements, for typed access from Rust.
//!
//! Storages and their views share memory freely, without knowing of each other. The rule that the
//! compiler checks for one array is therefore checked here, at run time and by address: elements
//! have any number of readers or one writer. Views that interleave without sharing a byte do not
//! conflict.
//!
//! Only access through this crate's views, and copies between the buffers of a pair, are tracked.
//! Python and other users of the memory are not: exporting the memory means to answer for them.
//! Each extension module has a copy of this crate, with a list of its own. From the first array
//! that crosses the border to Python on, all modules of an interpreter use the list of one of them.
#![forbid(unsafe_code)]

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::{Error, Result};
use crate::layout::{Layout, may_overlap};
use crate::managed::Managed;

/// A borrow of elements, until it is dropped.
pub(crate) struct Borrow {
    number: u64,
    list: &'static dyn BorrowList,
}

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

/// A number in a list of borrows, or the conflict that prevents one.
type Entered<T = u64> = std::result::Result<T, BorrowConflict>;

/// A list of live borrows.
pub(crate) trait BorrowList: Send + Sync {
    /// Enters a borrow, and returns its number.
    fn enter(&self, request: BorrowRequest) -> Entered;
    /// Removes what was entered with a number.
    fn leave(&self, number: u64);
}

/// The list of this extension module.
pub(crate) struct OwnBorrows {
    first: ProcessBorrows,
    /// Never reused, not even in forked children.
    numbers: AtomicU64,
    /// The list to use instead, once it is known. Set while the own one is locked.
    shared: OnceLock<Box<dyn BorrowList>>,
}

/// The borrows of one process. A forked child has a copy of its parent's memory and none of its
/// parent's other threads, one of which may hold the lock for ever: it begins a list of its own.
struct ProcessBorrows {
    /// 0 until a process uses the list.
    process: AtomicU32,
    live: Mutex<Vec<LiveBorrow>>,
    /// That of a forked child.
    next: OnceLock<Box<ProcessBorrows>>,
}

struct LiveBorrow {
    /// Borrows that were made at once have the same number.
    number: u64,
    request: BorrowRequest,
    /// Number in the shared list, for borrows made before that was known.
    shared_number: Option<u64>,
}

pub(crate) static OWN: OwnBorrows = OwnBorrows::new();

impl Borrow {
    /// Borrows elements for reading, together with other readers.
    ///
    /// # Errors
    /// [`Error::Buffer`] while one of the elements is borrowed for writing.
    pub(crate) fn shared(memory: &Managed) -> Result<Self> {
        Self::new(memory, false)
    }

    /// Borrows elements for writing.
    ///
    /// # Errors
    /// [`Error::Buffer`] while one of the elements is borrowed, for read-only memory, and if
    /// several indices name one element.
    pub(crate) fn exclusive(memory: &Managed) -> Result<Self> {
        if memory.layout().overlaps_itself() {
            return Err(Error::Buffer(
                "field: expected one index per element, got memory in which several indices name \
                 one element; copy it first"
                    .into(),
            ));
        }
        if memory.readonly() {
            return Err(Error::Buffer(
                "field: expected writable memory, got read-only memory; copy it first".into(),
            ));
        }
        Self::new(memory, true)
    }

    /// Borrows elements for a copy that brings a buffer of a pair up to date.
    ///
    /// # Errors
    /// [`Error::Buffer`] while one of the elements is borrowed.
    pub(crate) fn overwriting(memory: &Managed) -> Result<Self> {
        Self::new(memory, true)
    }

    fn new(memory: &Managed, writes: bool) -> Result<Self> {
        let request = BorrowRequest::new(memory, writes);
        OWN.borrow(request).map_err(|conflict| refusal(writes, conflict))
    }

    /// Borrows elements of several fields: all, or none. The caller has checked that the requests
    /// do not conflict with each other.
    ///
    /// # Errors
    /// The number of a request that conflicts with another borrow, and [`Error::Buffer`].
    pub(crate) fn all(requests: &[BorrowRequest]) -> Result<Vec<Self>, (usize, Error)> {
        OWN.borrow_all(requests).map_err(|(number, conflict)| {
            (number, refusal(requests.get(number).is_some_and(|one| one.writes), conflict))
        })
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

impl OwnBorrows {
    const fn new() -> Self {
        let first = ProcessBorrows::new();
        Self { first, numbers: AtomicU64::new(0), shared: OnceLock::new() }
    }

    /// Enters a borrow in the list in use.
    fn borrow(&'static self, request: BorrowRequest) -> Entered<Borrow> {
        let mut live = self.live();
        let Some(list) = self.shared.get() else {
            return Ok(Borrow { number: self.push(&mut live, request)?, list: self });
        };
        request.check_free(&live)?; // some borrows may be in this list alone (share)
        drop(live);
        Ok(Borrow { number: list.enter(request)?, list: &**list })
    }

    /// Enters borrows in the list in use: all at once in the own list, where they get one number.
    fn borrow_all(
        &'static self,
        requests: &[BorrowRequest],
    ) -> Result<Vec<Borrow>, (usize, BorrowConflict)> {
        let mut live = self.live();
        for (at, request) in requests.iter().enumerate() {
            request.check_free(&live).map_err(|conflict| (at, conflict))?;
        }
        let Some(list) = self.shared.get() else {
            let number = self.next_number();
            let entered = |one: &BorrowRequest| LiveBorrow::new(number, one.clone());
            live.extend(requests.iter().map(entered));
            return Ok(vec![Borrow { number, list: self }]);
        };
        drop(live);
        let enter = |(at, request): (usize, &BorrowRequest)| {
            let number = list.enter(request.clone()).map_err(|conflict| (at, conflict))?;
            Ok(Borrow { number, list: &**list })
        };
        requests.iter().enumerate().map(enter).collect()
    }

    /// Switches to a list shared with others, and enters existing borrows there. Only the first
    /// call has an effect.
    pub(crate) fn share(&self, list: Box<dyn BorrowList>) {
        let mut live = self.live();
        if self.shared.set(list).is_err() {
            return;
        }
        let list = self.shared.get();
        for one in live.iter_mut() {
            // If the borrow conflicts there, both exist already. New ones are refused until both
            // end.
            one.shared_number = list.and_then(|list| list.enter(one.request.clone()).ok());
        }
    }

    fn push(&self, live: &mut Vec<LiveBorrow>, request: BorrowRequest) -> Entered {
        request.check_free(live)?;
        let number = self.next_number();
        live.push(LiveBorrow::new(number, request));
        Ok(number)
    }

    fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// The borrows of this process.
    fn live(&self) -> MutexGuard<'_, Vec<LiveBorrow>> {
        let here = std::process::id();
        let mut list = &self.first;
        while !list.belongs_to(here) {
            list = list.next.get_or_init(|| Box::new(ProcessBorrows::new()));
        }
        list.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProcessBorrows {
    const fn new() -> Self {
        Self { process: AtomicU32::new(0), live: Mutex::new(Vec::new()), next: OnceLock::new() }
    }

    /// True if the list is that of this process, or becomes it now.
    fn belongs_to(&self, process: u32) -> bool {
        let claimed =
            self.process.compare_exchange(0, process, Ordering::Relaxed, Ordering::Relaxed);
        claimed.is_ok() || claimed == Err(process)
    }
}

impl BorrowList for OwnBorrows {
    fn enter(&self, request: BorrowRequest) -> Entered {
        self.push(&mut self.live(), request)
    }

    fn leave(&self, number: u64) {
        self.live().retain(|one| {
            let ends = one.number == number;
            if let (true, Some(list), Some(number)) = (ends, self.shared.get(), one.shared_number) {
                list.leave(number);
            }
            !ends
        });
    }
}

impl LiveBorrow {
    fn new(number: u64, request: BorrowRequest) -> Self {
        Self { number, request, shared_number: None }
    }
}

impl BorrowRequest {
    /// Requests all elements of a field.
    pub(crate) fn new(memory: &Managed, writes: bool) -> Self {
        Self { address: memory.position(), layout: memory.layout().clone(), writes }
    }

    /// Checks for conflicts with other borrows.
    fn check_free(&self, live: &[LiveBorrow]) -> Entered<()> {
        let meets = |other: &&Self| {
            (self.writes || other.writes)
                && may_overlap(&other.layout, other.address, &self.layout, self.address)
        };
        match live.iter().map(|one| &one.request).find(meets) {
            None => Ok(()),
            Some(Self { writes: true, .. }) => Err(BorrowConflict::IsWritten),
            Some(_) => Err(BorrowConflict::IsRead),
        }
    }
}

fn refusal(writes: bool, conflict: BorrowConflict) -> Error {
    let wanted =
        if writes { "write that nothing else uses" } else { "read that nothing else writes" };
    let conflict = match conflict {
        BorrowConflict::IsWritten => "written",
        BorrowConflict::IsRead => "read",
    };
    Error::Buffer(format!(
        "field: expected memory to {wanted}, got elements that are being {conflict} through \
         another view, argument or Arrow array; drop that first, or pass a copy"
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
    fn several_readers_exclude_writers() {
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
    fn views_without_a_common_byte_have_a_writer_each() {
        let field = field();
        let left = Borrow::exclusive(&field.narrow(1, 0, 3).unwrap()).unwrap();
        let right = Borrow::exclusive(&field.narrow(1, 3, 3).unwrap());
        assert!(right.is_ok(), "their rows only interleave");
        drop(left);
    }

    /// The lists of two modules.
    fn two_lists() -> (&'static OwnBorrows, &'static OwnBorrows) {
        // Reachable for good, as the lists of modules are: the sanitizer looks for what is lost.
        static MADE: Mutex<Vec<&OwnBorrows>> = Mutex::new(Vec::new());
        let make = || -> &'static OwnBorrows { Box::leak(Box::new(OwnBorrows::new())) };
        let made = [make(), make()];
        MADE.lock().unwrap().extend(made);
        made.into()
    }

    struct SharedList(&'static OwnBorrows);

    impl BorrowList for SharedList {
        fn enter(&self, request: BorrowRequest) -> Entered {
            self.0.enter(request)
        }

        fn leave(&self, number: u64) {
            self.0.leave(number);
        }
    }

    #[test]
    fn a_borrow_of_another_module_conflicts_here() {
        let ((first, second), field) = (two_lists(), field());
        second.share(Box::new(SharedList(first)));
        let reader = first.borrow(BorrowRequest::new(&field, false)).unwrap();
        assert_eq!(
            second.borrow(BorrowRequest::new(&field, true)).unwrap_err(),
            BorrowConflict::IsRead
        );
        drop(reader);
        let writer = second.borrow(BorrowRequest::new(&field, true)).unwrap();
        assert_eq!(
            first.borrow(BorrowRequest::new(&field, false)).unwrap_err(),
            BorrowConflict::IsWritten
        );
        drop(writer);
        assert!(first.borrow(BorrowRequest::new(&field, true)).is_ok());
    }

    #[test]
    fn a_borrow_from_before_sharing_conflicts_in_both_lists_until_it_is_dropped() {
        let ((first, second), field) = (two_lists(), field());
        let before = second.borrow(BorrowRequest::new(&field, true)).unwrap();
        second.share(Box::new(SharedList(first)));
        for list in [first, second] {
            assert_eq!(
                list.borrow(BorrowRequest::new(&field, false)).unwrap_err(),
                BorrowConflict::IsWritten
            );
        }
        drop(before);
        for list in [first, second] {
            assert!(list.borrow(BorrowRequest::new(&field, true)).is_ok());
        }
    }

    #[test]
    fn two_conflicting_borrows_from_before_sharing_exclude_others_until_both_are_dropped() {
        let ((first, second), field) = (two_lists(), field());
        let before =
            [first, second].map(|list| list.borrow(BorrowRequest::new(&field, true)).unwrap());
        second.share(Box::new(SharedList(first)));
        for one in before {
            assert!(second.borrow(BorrowRequest::new(&field, false)).is_err());
            drop(one);
        }
        assert!(second.borrow(BorrowRequest::new(&field, true)).is_ok());
    }

    #[test]
    fn several_borrows_are_made_together_or_not_at_all_in_any_list() {
        let ((first, second), field) = (two_lists(), field());
        let halves = [0, 2].map(|from| field.narrow(0, from, 2).unwrap());
        let requests = halves.each_ref().map(|half| BorrowRequest::new(half, true));
        for list in [first, second, second] {
            let reader = list.borrow(BorrowRequest::new(&halves[1], false)).unwrap();
            assert_eq!(list.borrow_all(&requests).unwrap_err(), (1, BorrowConflict::IsRead));
            drop(reader);
            let both = list.borrow_all(&requests).unwrap();
            assert!(
                halves.iter().all(|half| list.borrow(BorrowRequest::new(half, false)).is_err())
            );
            drop(both);
            assert!(list.borrow(BorrowRequest::new(&field, true)).is_ok());
            second.share(Box::new(SharedList(first)));
        }
    }

    #[test]
    fn only_the_first_list_that_is_shared_counts() {
        let ((first, second), (third, _), field) = (two_lists(), two_lists(), field());
        second.share(Box::new(SharedList(first)));
        second.share(Box::new(SharedList(third)));
        let _writer = second.borrow(BorrowRequest::new(&field, true)).unwrap();
        assert!(first.borrow(BorrowRequest::new(&field, true)).is_err());
        assert!(third.borrow(BorrowRequest::new(&field, true)).is_ok());
    }

    #[test]
    fn read_only_memory_is_not_borrowed_for_writing() {
        let text = Borrow::exclusive(&field().into_readonly()).unwrap_err().to_string();
        assert!(text.contains("read-only"), "{text}");
    }
}

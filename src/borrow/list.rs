//! Borrows, and the list of live ones. `request` decides which of them conflict.
#![forbid(unsafe_code)]

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::request::{BorrowConflict, BorrowRequest};
use crate::error::{Error, Result};
use crate::managed::Managed;

/// A borrow of elements, or several made at once. It ends when this is dropped.
pub(crate) struct Borrow {
    number: u64,
    list: &'static dyn BorrowList,
}

/// The answer of a list: a number, or the conflict that prevents the borrow.
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
    /// The next number. Forked children go on counting, so that none of their borrows has the number of
    /// one that they inherit.
    next: AtomicU64,
    /// True while a borrow may be alive in this list, also one of a parent process.
    in_use: AtomicBool,
    /// The list to use instead, once it is known. Set while the own one is locked.
    shared: OnceLock<Box<dyn BorrowList>>,
}

/// The borrows of one process. A forked child inherits the list, but not the other threads, one of
/// which may have held the lock. It begins a list of its own.
struct ProcessBorrows {
    /// 0 until a process uses the list.
    process: AtomicU32,
    live: Mutex<Vec<LiveBorrow>>,
    /// The list of a forked child.
    next: OnceLock<Box<ProcessBorrows>>,
}

struct LiveBorrow {
    /// Shared by borrows that were made at once.
    number: u64,
    request: BorrowRequest,
    /// Number in the shared list, for borrows made before sharing.
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

    /// Borrows elements that a copy overwrites. Unlike [`Borrow::exclusive`], takes read-only memory,
    /// and elements that several indices name.
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

    /// Checks that elements may be written now by code that borrows nothing, such as Python's.
    ///
    /// # Errors
    /// [`Error::Buffer`] while one of the elements is borrowed.
    pub(crate) fn check_unused(memory: &Managed) -> Result<()> {
        if OWN.may_be_used() { Self::new(memory, true).map(drop) } else { Ok(()) }
    }

    /// Borrows elements of several fields: all, or none. The caller has checked that the requests
    /// do not conflict with each other.
    ///
    /// # Errors
    /// The index of a request that conflicts with another borrow, and [`Error::Buffer`].
    pub(crate) fn all(requests: &[BorrowRequest]) -> Result<Vec<Self>, (usize, Error)> {
        OWN.borrow_all(requests).map_err(|(index, conflict)| {
            (index, refusal(requests.get(index).is_some_and(|one| one.writes), conflict))
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
    pub(super) const fn new() -> Self {
        let first = ProcessBorrows::new();
        Self {
            first,
            next: AtomicU64::new(0),
            in_use: AtomicBool::new(false),
            shared: OnceLock::new(),
        }
    }

    /// True if a borrow may be alive: one in this list, or any once a list is shared.
    fn may_be_used(&self) -> bool {
        self.in_use.load(Ordering::Acquire) || self.shared.get().is_some()
    }

    /// Enters a borrow in the list in use.
    pub(super) fn borrow(&'static self, request: BorrowRequest) -> Entered<Borrow> {
        let mut live = self.live();
        let Some(list) = self.shared.get() else {
            return Ok(Borrow { number: self.push(&mut live, request)?, list: self });
        };
        check_free(&live, &request)?; // some borrows may be in this list alone (share)
        drop(live);
        Ok(Borrow { number: list.enter(request)?, list: &**list })
    }

    /// Enters borrows in the list in use: all at once in the own list, where they get one number.
    pub(super) fn borrow_all(
        &'static self,
        requests: &[BorrowRequest],
    ) -> Result<Vec<Borrow>, (usize, BorrowConflict)> {
        let mut live = self.live();
        for (at, request) in requests.iter().enumerate() {
            check_free(&live, request).map_err(|conflict| (at, conflict))?;
        }
        let Some(list) = self.shared.get() else {
            let number = self.next_number();
            let entered = |one: &BorrowRequest| LiveBorrow::new(number, one.clone());
            self.in_use.store(true, Ordering::Release);
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
            // On a conflict both borrows exist already. Ours then stays in this list alone, and each
            // list refuses new borrows until its own ends.
            one.shared_number = list.and_then(|list| list.enter(one.request.clone()).ok());
        }
    }

    fn push(&self, live: &mut Vec<LiveBorrow>, request: BorrowRequest) -> Entered {
        check_free(live, &request)?;
        let number = self.next_number();
        self.in_use.store(true, Ordering::Release);
        live.push(LiveBorrow::new(number, request));
        Ok(number)
    }

    fn next_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
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
        let mut live = self.live();
        live.retain(|one| {
            let ends = one.number == number;
            if let (true, Some(list), Some(number)) = (ends, self.shared.get(), one.shared_number) {
                list.leave(number);
            }
            !ends
        });
        self.in_use.store(!live.is_empty(), Ordering::Release);
    }
}

impl LiveBorrow {
    fn new(number: u64, request: BorrowRequest) -> Self {
        Self { number, request, shared_number: None }
    }
}

fn check_free(live: &[LiveBorrow], request: &BorrowRequest) -> Entered<()> {
    request.check_free(live.iter().map(|one| &one.request))
}

fn refusal(writes: bool, conflict: BorrowConflict) -> Error {
    let wanted =
        if writes { "memory that nothing else uses" } else { "memory that nothing else writes" };
    let conflict = match conflict {
        BorrowConflict::IsWritten => "written",
        BorrowConflict::IsRead => "read",
    };
    Error::Buffer(format!(
        "field: expected {wanted}, got elements that are being {conflict} through \
         another view, argument or Arrow array; drop that first, or pass a copy"
    ))
}

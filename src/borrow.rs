//! Memory: who may read and who may write, for typed access from Rust.
//!
//! Storages and their views share memory at will, and none of them knows of the others. What the
//! compiler checks for one array is therefore checked here, at run time and by address: as long as somebody
//! reads elements nobody else writes them, and as long as somebody writes them nobody else has them. Two views
//! that interleave and have no byte in common do not disturb each other.
//!
//! Only access through this crate's views is seen, and copies between the buffers of a pair. What Python, or
//! whoever else was given the memory, does to it meanwhile is for whoever gave it to answer for, as everywhere
//! where arrays are exchanged. Two extension modules of one process have this crate, and this list, each for itself.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::layout::{Layout, may_overlap};
use crate::managed::Managed;

/// Somebody has the elements; until it is dropped.
#[derive(Debug)]
pub(crate) struct Borrow {
    number: u64,
}

struct Entry {
    number: u64,
    process: u32,
    address: usize,
    layout: Layout,
    writes: bool,
}

static LIVE: Mutex<Vec<Entry>> = Mutex::new(Vec::new());
static NUMBERS: AtomicU64 = AtomicU64::new(0);

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
        let (address, layout, process) = (memory.address(), memory.layout(), std::process::id());
        let mut live = live();
        // A child has copies of its parent's memory, and none of the parent's other threads.
        let meets = |one: &&Entry| {
            (writes || one.writes)
                && one.process == process
                && may_overlap(&one.layout, one.address, layout, address)
        };
        if let Some(other) = live.iter().find(meets) {
            return Err(taken(writes, other.writes));
        }
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        live.push(Entry { number, process, address, layout: layout.clone(), writes });
        Ok(Self { number })
    }
}

impl Drop for Borrow {
    fn drop(&mut self) {
        let mut live = live();
        if let Some(place) = live.iter().position(|one| one.number == self.number) {
            live.swap_remove(place);
        }
    }
}

fn live() -> MutexGuard<'static, Vec<Entry>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn taken(writes: bool, other_writes: bool) -> Error {
    let wanted = if writes { "to write" } else { "to read" };
    let other = if other_writes { "written" } else { "read" };
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

    #[test]
    fn read_only_memory_and_a_broadcast_are_not_written() {
        let text = Borrow::exclusive(&field().into_readonly()).unwrap_err().to_string();
        assert!(text.contains("read-only"), "{text}");
    }
}

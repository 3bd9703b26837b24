//! Memory: borrows of elements, for typed access from Rust.
//!
//! Storages and their views share memory freely, without knowing of each other. The rule that the
//! compiler checks for one array is therefore checked here, at run time and by address: elements
//! have any number of readers or one writer. Views that interleave without sharing a byte do not
//! conflict.
//!
//! Only access through this crate's views, and copies between the buffers of a pair, are tracked.
//! What Python writes into a storage, by assignment or arithmetic, is refused while a view uses it.
//! Other users of the memory are not tracked: exporting the memory means to answer for them.
//! Each extension module has a copy of this crate, with a list of its own. From the first array
//! that crosses the border to Python on, all modules of an interpreter use the list of one of them.

mod request;
mod list;

pub(crate) use list::{Borrow, BorrowList, OWN};
pub(crate) use request::{BorrowConflict, BorrowRequest};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod explored;

//! Readers, writers, several borrows at once, and the lists of two modules.

use std::sync::Mutex;

use super::list::{Borrow, BorrowList, OwnBorrows};
use super::request::{BorrowConflict, BorrowRequest};
use crate::alloc::{Fill, allocate, plan};
use crate::dtype::DType;
use crate::managed::Managed;

pub(super) fn field() -> Managed {
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
pub(super) fn two_lists() -> (&'static OwnBorrows, &'static OwnBorrows) {
    // Reachable for good, as the lists of modules are: the sanitizer looks for what is lost.
    static MADE: Mutex<Vec<&OwnBorrows>> = Mutex::new(Vec::new());
    let make = || -> &'static OwnBorrows { Box::leak(Box::new(OwnBorrows::new())) };
    let made = [make(), make()];
    MADE.lock().unwrap().extend(made);
    made.into()
}

pub(super) struct SharedList(pub(super) &'static OwnBorrows);

impl BorrowList for SharedList {
    fn enter(&self, request: BorrowRequest) -> Result<u64, BorrowConflict> {
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
    let before = [first, second].map(|list| list.borrow(BorrowRequest::new(&field, true)).unwrap());
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
        assert!(halves.iter().all(|half| list.borrow(BorrowRequest::new(half, false)).is_err()));
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

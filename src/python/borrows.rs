//! One list of borrows for all modules of an interpreter that contain this crate: the package
//! `dlfield`, and extension modules.
//!
//! The first module publishes its list in the interpreter's own dict, and the others use it. The
//! list is a table of C functions, because each module may come from another compiler; the number
//! in its name is the version of the table. Modules are never unloaded, so the table stays valid.

use std::ffi::{CStr, c_int};
use std::panic::catch_unwind;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use pyo3::{Borrowed, ffi};

use crate::borrow::{BorrowConflict, BorrowList, BorrowRequest, OWN};
use crate::layout::{Extents, Layout, MAX_NDIM};

const NAME: &CStr = c"dlfield.borrows.1";

/// The functions of a list, for C.
#[repr(C)]
struct BorrowFunctions {
    /// Enters a borrow, writes its number, and returns one of the constants below.
    enter: unsafe extern "C" fn(request: *const CBorrowRequest, number: *mut u64) -> c_int,
    /// Removes a borrow.
    leave: extern "C" fn(number: u64),
}

/// A [`BorrowRequest`], for C. Strides count elements; `writes` is 0 or 1.
#[repr(C)]
struct CBorrowRequest {
    address: usize,
    itemsize: usize,
    ndim: usize,
    shape: *const i64,
    strides: *const i64,
    writes: u8,
}

const ENTERED: c_int = 0;
const IS_READ: c_int = 1;
const IS_WRITTEN: c_int = 2;

static FUNCTIONS: BorrowFunctions = BorrowFunctions { enter, leave };

/// Shares one list of borrows with the package `dlfield` and all other extension modules of the
/// interpreter that contain this crate.
///
/// A module does so automatically when it takes its first array as an argument, or returns its
/// first storage. A module that gets memory only in other ways (Arrow, DLPack) calls this function
/// when it is initialised.
///
/// # Errors
/// Python's `MemoryError`.
///
/// # Example
///
/// ```no_run
/// use dlfield::pyo3::prelude::*;
///
/// fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
///     dlfield::share_borrows(module.py())
/// }
/// ```
pub fn share_borrows(py: Python<'_>) -> PyResult<()> {
    static DONE: AtomicBool = AtomicBool::new(false); // a PyO3 module is of one interpreter alone
    // No lock: a finaliser may run meanwhile and call this again. A second call has no effect.
    if !DONE.load(Ordering::Acquire) {
        join(py)?;
        DONE.store(true, Ordering::Release);
    }
    Ok(())
}

/// Publishes this module's list, or uses the one that is published already.
fn join(py: Python<'_>) -> PyResult<()> {
    let Some(published) = interpreter_dict(py) else { return Ok(()) };
    let own = NonNull::from(&FUNCTIONS);
    // SAFETY: the pointer is to a static, of the type that the name stands for.
    let capsule = unsafe { PyCapsule::new_with_pointer(py, own.cast(), NAME) }?;
    let first = published.call_method1("setdefault", (NAME.to_string_lossy(), capsule))?;
    // Anything else under this name is not a list.
    let Ok(capsule) = first.cast_into::<PyCapsule>() else { return Ok(()) };
    let Ok(first) = capsule.pointer_checked(Some(NAME)) else { return Ok(()) };
    if first != own.cast() {
        // SAFETY: the capsule's name says that it holds such a table; modules are never unloaded.
        let first: &'static BorrowFunctions = unsafe { first.cast().as_ref() };
        OWN.share(Box::new(FirstModule(first)));
    }
    Ok(())
}

/// The dict for per-interpreter state of extension modules.
fn interpreter_dict(py: Python<'_>) -> Option<Bound<'_, PyDict>> {
    // SAFETY: `py` proves that the interpreter is attached.
    let interpreter = unsafe { ffi::PyInterpreterState_Get() };
    // SAFETY: the interpreter is attached, and `interpreter` is the current one.
    let dict = unsafe { ffi::PyInterpreterState_GetDict(interpreter) };
    // SAFETY: `dict` is a borrowed reference, or NULL (without an error) if there is no dict.
    let dict = unsafe { Borrowed::from_ptr_or_opt(py, dict) }?;
    dict.to_owned().cast_into().ok()
}

/// The list of the first module.
struct FirstModule(&'static BorrowFunctions);

impl BorrowList for FirstModule {
    fn enter(&self, request: BorrowRequest) -> Result<u64, BorrowConflict> {
        let (shape, strides) = (request.layout.shape(), request.layout.strides());
        let request = CBorrowRequest {
            address: request.address,
            itemsize: request.layout.itemsize(),
            ndim: shape.len(),
            shape: shape.as_ptr(),
            strides: strides.as_ptr(),
            writes: request.writes.into(),
        };
        let mut number = 0;
        // SAFETY: `request`, its shape and strides, and `number` outlive the call.
        match unsafe { (self.0.enter)(&raw const request, &raw mut number) } {
            ENTERED => Ok(number),
            IS_READ => Err(BorrowConflict::IsRead),
            _ => Err(BorrowConflict::IsWritten), // unknown answers count as refusals
        }
    }

    fn leave(&self, number: u64) {
        (self.0.leave)(number);
    }
}

/// Enters a borrow of another module.
///
/// # Safety
/// `request` is valid for reads, and its pointers (never NULL) for reads of `ndim` numbers each.
/// `number` is valid for a write.
unsafe extern "C" fn enter(request: *const CBorrowRequest, number: *mut u64) -> c_int {
    // SAFETY: the caller guarantees that `request` is valid for reads.
    let request = unsafe { request.read() };
    let CBorrowRequest { address, itemsize, ndim, shape, strides, writes } = request;
    // An impossible layout is refused, which is always safe; so is what ends in a panic.
    let ndim = if ndim <= MAX_NDIM { ndim } else { return IS_WRITTEN };
    // SAFETY: the caller guarantees `ndim` extents.
    let shape = unsafe { std::slice::from_raw_parts(shape, ndim) };
    // SAFETY: the caller guarantees `ndim` strides.
    let strides = unsafe { std::slice::from_raw_parts(strides, ndim) };
    let layout = Layout::new(Extents::from_slice(shape), Extents::from_slice(strides), itemsize);
    let Ok(layout) = layout else { return IS_WRITTEN };
    let request = BorrowRequest { address, layout, writes: writes != 0 };
    match catch_unwind(|| OWN.enter(request)).unwrap_or(Err(BorrowConflict::IsWritten)) {
        Ok(given) => {
            // SAFETY: the caller guarantees that `number` is valid for a write.
            unsafe { number.write(given) };
            ENTERED
        }
        Err(BorrowConflict::IsRead) => IS_READ,
        Err(BorrowConflict::IsWritten) => IS_WRITTEN,
    }
}

/// Removes a borrow of another module. After a panic it stays, and others are refused.
extern "C" fn leave(number: u64) {
    let _no_panic_leaves = catch_unwind(|| OWN.leave(number));
}

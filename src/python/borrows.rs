//! One list of borrows for all modules of an interpreter that have this crate compiled in: the package `dlfield`, and
//! the extension modules of others.
//!
//! Who comes first shows its list in the interpreter's own dict, the rest use that. What is shown are functions of C,
//! since each module may come from another compiler; the number in the name is that of their shape. A module is
//! never unloaded, so that they stay.

use std::ffi::{CStr, c_int};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use pyo3::{Borrowed, ffi};

use crate::borrow::{Claim, List, OWN, Taken};
use crate::layout::{Extents, Layout, MAX_NDIM};

const NAME: &CStr = c"dlfield.borrows.1";

/// The functions of a list.
#[repr(C)]
struct Table {
    /// Notes who wants the elements, and writes the number to leave by; the answer is one of those below.
    enter: unsafe extern "C" fn(wanted: *const Wanted, number: *mut u64) -> c_int,
    leave: extern "C" fn(number: u64),
}

/// A [`Claim`], for C: strides in elements, and 0 for who only reads.
#[repr(C)]
struct Wanted {
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

static TABLE: Table = Table { enter, leave };

/// Notes who reads and who writes which elements in one list with the package `dlfield` and all other extension modules
/// of the interpreter that have this crate compiled in.
///
/// A module does so by itself when it takes its first array as an argument, or returns its first storage. One that gets
/// memory on other ways alone (Arrow, DLPack) calls it when it is initialised.
///
/// # Errors
/// What Python raises where it has no memory.
pub fn share_borrows(py: Python<'_>) -> PyResult<()> {
    static DONE: AtomicBool = AtomicBool::new(false);
    // Nothing that waits: a finaliser may run on the way, and come here again. To do it twice does nothing.
    if !DONE.load(Ordering::Acquire) {
        join(py)?;
        DONE.store(true, Ordering::Release);
    }
    Ok(())
}

/// Uses the list of whoever was first.
fn join(py: Python<'_>) -> PyResult<()> {
    let Some(shown) = interpreter_dict(py) else { return Ok(()) };
    let own = NonNull::from(&TABLE);
    // SAFETY: a static is there for ever, and who asks for the name gets it as what it is.
    let capsule = unsafe { PyCapsule::new_with_pointer(py, own.cast(), NAME) }?;
    let first = shown.call_method1("setdefault", (NAME.to_string_lossy(), capsule))?;
    // What somebody else has put there under this name is none of ours.
    let Ok(capsule) = first.cast_into::<PyCapsule>() else { return Ok(()) };
    let Ok(first) = capsule.pointer_checked(Some(NAME)) else { return Ok(()) };
    if first != own.cast() {
        // SAFETY: the capsule's name says that it is a table of this shape, and modules stay.
        let first: &'static Table = unsafe { first.cast().as_ref() };
        OWN.share(Box::new(OfFirst(first)));
    }
    Ok(())
}

/// The dict in which extension modules keep what belongs to the interpreter.
fn interpreter_dict(py: Python<'_>) -> Option<Bound<'_, PyDict>> {
    // SAFETY: called with the interpreter attached, as `py` says.
    let interpreter = unsafe { ffi::PyInterpreterState_Get() };
    // SAFETY: as above; the interpreter is the one that runs.
    let dict = unsafe { ffi::PyInterpreterState_GetDict(interpreter) };
    // SAFETY: a borrowed reference, or NULL where there is no dict, without an error.
    let dict = unsafe { Borrowed::from_ptr_or_opt(py, dict) }?;
    dict.to_owned().cast_into().ok()
}

/// The list of the module that was first.
struct OfFirst(&'static Table);

impl List for OfFirst {
    fn enter(&self, claim: Claim) -> Result<u64, Taken> {
        let (shape, strides) = (claim.layout.shape(), claim.layout.strides());
        let wanted = Wanted {
            address: claim.address,
            itemsize: claim.layout.itemsize(),
            ndim: shape.len(),
            shape: shape.as_ptr(),
            strides: strides.as_ptr(),
            writes: claim.writes.into(),
        };
        let mut number = 0;
        // SAFETY: `wanted` and what it points to stay until the call is over, and so does the number.
        match unsafe { (self.0.enter)(&raw const wanted, &raw mut number) } {
            ENTERED => Ok(number),
            IS_READ => Err(Taken::IsRead),
            _ => Err(Taken::IsWritten), // or an answer to come: no, to be safe
        }
    }

    fn leave(&self, number: u64) {
        (self.0.leave)(number);
    }
}

/// # Safety
/// `wanted` points to as many extents and strides as it says, by pointers that are not NULL where there are none
/// either, and `number` to a place for one.
unsafe extern "C" fn enter(wanted: *const Wanted, number: *mut u64) -> c_int {
    // SAFETY: the caller's promise.
    let Wanted { address, itemsize, ndim, shape, strides, writes } = unsafe { wanted.read() };
    // Who says more than there can be is told that it is taken, which is safe.
    let ndim = if ndim <= MAX_NDIM { ndim } else { return IS_WRITTEN };
    // SAFETY: the caller's promise.
    let shape = unsafe { std::slice::from_raw_parts(shape, ndim) };
    // SAFETY: the caller's promise.
    let strides = unsafe { std::slice::from_raw_parts(strides, ndim) };
    let layout = Layout::new(Extents::from_slice(shape), Extents::from_slice(strides), itemsize);
    let Ok(layout) = layout else { return IS_WRITTEN };
    match OWN.enter(Claim { address, layout, writes: writes != 0 }) {
        Ok(given) => {
            // SAFETY: the caller's promise.
            unsafe { number.write(given) };
            ENTERED
        }
        Err(Taken::IsRead) => IS_READ,
        Err(Taken::IsWritten) => IS_WRITTEN,
    }
}

extern "C" fn leave(number: u64) {
    OWN.leave(number);
}

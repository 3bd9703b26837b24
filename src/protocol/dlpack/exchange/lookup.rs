//! From a type to its exchange table, once per type.

use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock, PoisonError};

use dlpark::ffi::{
    DLManagedTensorVersioned, DLPACK_MAJOR_VERSION, DLPackExchangeAPI, DLPackExchangeAPIHeader,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyType, PyWeakrefMethods, PyWeakrefReference};

use super::NAME;

/// Gives an owning tensor over an object: 0, or -1 with a Python exception set.
pub(super) type FromPy = unsafe extern "C" fn(
    object: *mut std::ffi::c_void,
    out: *mut *mut DLManagedTensorVersioned,
) -> std::ffi::c_int;

/// A chain of older tables is followed this far; a cycle must end.
const MAX_TABLES: usize = 16;

/// Types that have a table. Each is kept alive, so that its address means nothing else; once all
/// places are taken, further types are looked up every time.
static FOUND: [OnceLock<(Py<PyType>, FromPy)>; 8] = [const { OnceLock::new() }; 8];

/// Types that had no table when they were asked, by address. They are not kept alive. One that is
/// given a table later goes on through its other doors.
static ABSENT: [Mutex<Option<Py<PyWeakrefReference>>>; 256] = [const { Mutex::new(None) }; 256];

/// The function that makes tensors of objects of this class, where the class has a table with one.
///
/// A table that cannot be used counts as none: there are other doors.
///
/// # Errors
/// What the class raises when it is asked for the attribute.
pub(super) fn from_py(class: &Bound<'_, PyType>) -> PyResult<Option<FromPy>> {
    let absent = ABSENT.get((class.as_ptr().addr() >> 4) % ABSENT.len());
    if absent.is_some_and(|absent| is_about(absent, class)) {
        return Ok(None);
    }
    let known = FOUND.iter().map_while(OnceLock::get).find(|known| known.0.is(class));
    if let Some((_, function)) = known {
        return Ok(Some(*function));
    }
    let found = ask(class)?;
    match (found, absent) {
        (Some(function), _) => remember(class, function),
        (None, Some(absent)) => remember_absence(absent, class)?,
        (None, None) => {}
    }
    Ok(found)
}

type Absent = Mutex<Option<Py<PyWeakrefReference>>>;

/// Whether it was this type, and not one that is gone and lay at the same address.
fn is_about(absent: &Absent, class: &Bound<'_, PyType>) -> bool {
    let py = class.py();
    let known = {
        let locked = absent.lock().unwrap_or_else(PoisonError::into_inner);
        locked.as_ref().map(|known| known.clone_ref(py))
    };
    known.and_then(|known| known.bind(py).upgrade()).is_some_and(|one| one.is(class))
}

fn remember_absence(absent: &Absent, class: &Bound<'_, PyType>) -> PyResult<()> {
    let reference = PyWeakrefReference::new(class)?.unbind();
    let before = absent.lock().unwrap_or_else(PoisonError::into_inner).replace(reference);
    drop(before); // with the lock given back
    Ok(())
}

fn remember(class: &Bound<'_, PyType>, function: FromPy) {
    for place in &FOUND {
        if place.set((class.clone().unbind(), function)).is_ok() {
            return;
        }
    }
}

fn ask(class: &Bound<'_, PyType>) -> PyResult<Option<FromPy>> {
    let found = class.getattr_opt(intern!(class.py(), "__dlpack_c_exchange_api__"))?;
    let Some(capsule) = found.and_then(|found| found.cast_into::<PyCapsule>().ok()) else {
        return Ok(None); // early versions of the protocol put a number here
    };
    if !capsule.is_valid_checked(Some(NAME)) {
        return Ok(None);
    }
    Ok(usable(capsule.pointer_checked(Some(NAME))?.cast()))
}

/// The first table of a version that is known here, and its function.
fn usable(first: NonNull<DLPackExchangeAPIHeader>) -> Option<FromPy> {
    let mut next = Some(first);
    for _ in 0..MAX_TABLES {
        let table = next.filter(|table| table.is_aligned())?;
        // SAFETY: a capsule of this name points to a table that lives as long as the process, and
        // every table begins with this header (dlpack.h); so do those behind prev_api.
        let header = unsafe { table.read() };
        if header.version.major == DLPACK_MAJOR_VERSION {
            // SAFETY: as above; with this major version the whole table is there.
            let table = unsafe { table.cast::<DLPackExchangeAPI>().read() };
            return table.managed_tensor_from_py_object_no_sync;
        }
        next = NonNull::new(header.prev_api);
    }
    None
}

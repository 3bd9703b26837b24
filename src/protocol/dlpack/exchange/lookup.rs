//! From a type to its exchange table, once per type.

use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock, PoisonError};

use dlpark::ffi::{
    DLManagedTensorVersioned, DLPACK_MAJOR_VERSION, DLPackCurrentWorkStream, DLPackExchangeAPI,
    DLPackExchangeAPIHeader, DLPackManagedTensorToPyObjectNoSync,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyType, PyWeakrefMethods, PyWeakrefReference};

/// The name of the capsule over a table (dlpack.h).
pub(super) const NAME: &CStr = c"dlpack_exchange_api";

/// Gives an owning tensor over an object: 0, or -1 with a Python exception set.
pub(super) type FromPy = unsafe extern "C" fn(
    object: *mut std::ffi::c_void,
    out: *mut *mut DLManagedTensorVersioned,
) -> std::ffi::c_int;

/// The functions of a table that are used here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Functions {
    pub(super) from_py: FromPy,
    /// Makes an object over an owning tensor, which it takes: 0, or -1 with a Python exception set.
    pub(super) to_py: DLPackManagedTensorToPyObjectNoSync,
    /// Gives the stream on which the library of the type works on a device: 0, or not.
    pub(super) work_stream: DLPackCurrentWorkStream,
}

/// The number of older tables that are followed; a chain may be a cycle.
const MAX_TABLES: usize = 16;

/// Types that have a table. Each is kept alive, so that no other type gets its address. Once all
/// places are taken, further types are looked up every time.
static FOUND: [OnceLock<(Py<PyType>, Functions)>; 8] = [const { OnceLock::new() }; 8];

type Absent = Mutex<Option<Py<PyWeakrefReference>>>;

/// Types that had no table when they were asked, by address. They are not kept alive. A type that
/// gets a table later still comes in through its other doors.
static ABSENT: [Absent; 256] = [const { Mutex::new(None) }; 256];

/// The functions for objects of this class, if the class has a table that can make tensors. A table
/// that cannot be used counts as absent: there are other doors.
pub(super) fn functions(class: &Bound<'_, PyType>) -> PyResult<Option<Functions>> {
    let known = FOUND.iter().map_while(OnceLock::get).find(|known| known.0.is(class));
    if let Some((_, functions)) = known {
        return Ok(Some(*functions));
    }
    let absent = ABSENT.get((class.as_ptr().addr() >> 4) % ABSENT.len());
    if absent.is_some_and(|absent| is_about(absent, class)) {
        return Ok(None);
    }
    let found = ask(class)?;
    match (found, absent) {
        (Some(functions), _) => {
            let mut places = FOUND.iter();
            let _is_kept =
                places.any(|place| place.set((class.clone().unbind(), functions)).is_ok());
        }
        (None, Some(absent)) => remember_absence(absent, class)?,
        (None, None) => {}
    }
    Ok(found)
}

/// True for this type, false for an earlier one at the same address.
fn is_about(absent: &Absent, class: &Bound<'_, PyType>) -> bool {
    let py = class.py();
    let locked = absent.lock().unwrap_or_else(PoisonError::into_inner);
    let known = locked.as_ref().map(|known| known.clone_ref(py));
    drop(locked);
    known.and_then(|known| known.bind(py).upgrade()).is_some_and(|one| one.is(class))
}

fn remember_absence(absent: &Absent, class: &Bound<'_, PyType>) -> PyResult<()> {
    let reference = PyWeakrefReference::new(class)?.unbind();
    let before = absent.lock().unwrap_or_else(PoisonError::into_inner).replace(reference);
    drop(before); // with the lock given back
    Ok(())
}

fn ask(class: &Bound<'_, PyType>) -> PyResult<Option<Functions>> {
    let found = class.getattr_opt(intern!(class.py(), "__dlpack_c_exchange_api__"))?;
    let Some(capsule) = found.and_then(|found| found.cast_into::<PyCapsule>().ok()) else {
        return Ok(None); // early versions of the protocol put a number here
    };
    if !capsule.is_valid_checked(Some(NAME)) {
        return Ok(None);
    }
    Ok(usable(capsule.pointer_checked(Some(NAME))?.cast()))
}

/// The functions of the first table of a version that is known here.
fn usable(first: NonNull<DLPackExchangeAPIHeader>) -> Option<Functions> {
    let mut next = Some(first);
    for _ in 0..MAX_TABLES {
        let table = next.filter(|table| table.is_aligned())?;
        // SAFETY: a capsule of this name points to a table that lives as long as the process, and
        // every table begins with this header (dlpack.h); so do those behind prev_api.
        let header = unsafe { table.read() };
        if header.version.major == DLPACK_MAJOR_VERSION {
            // SAFETY: the pointer of the header; this major version has the whole table behind it.
            let table = unsafe { table.cast::<DLPackExchangeAPI>().read() };
            let from_py = table.managed_tensor_from_py_object_no_sync?;
            return Some(Functions {
                from_py,
                to_py: table.managed_tensor_to_py_object_no_sync,
                work_stream: table.current_work_stream,
            });
        }
        next = NonNull::new(header.prev_api);
    }
    None
}

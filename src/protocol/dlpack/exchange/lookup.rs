//! From a type to its exchange table, once per type.

use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock, PoisonError};

use dlpark::ffi::{
    DLDeviceType, DLManagedTensorVersioned, DLPACK_MAJOR_VERSION, DLPackExchangeAPI,
    DLPackExchangeAPIHeader,
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

/// Makes an object over an owning tensor, which it takes: 0, or -1 with a Python exception set.
pub(super) type ToPy = unsafe extern "C" fn(
    tensor: *mut DLManagedTensorVersioned,
    out: *mut *mut std::ffi::c_void,
) -> std::ffi::c_int;

/// Gives the stream on which the library of the type works on a device: 0, or not.
pub(super) type WorkStream = unsafe extern "C" fn(
    device_type: DLDeviceType,
    device_id: i32,
    out: *mut *mut std::ffi::c_void,
) -> std::ffi::c_int;

/// The functions of a table that are used here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Functions {
    pub(super) from_py: FromPy,
    pub(super) to_py: Option<ToPy>,
    pub(super) work_stream: Option<WorkStream>,
}

/// A chain of older tables is followed this far; a cycle must end.
const MAX_TABLES: usize = 16;

/// Types that have a table. Each is kept alive, so that its address means nothing else; once all
/// places are taken, further types are looked up every time.
static FOUND: [OnceLock<(Py<PyType>, Functions)>; 8] = [const { OnceLock::new() }; 8];

/// Types that had no table when they were asked, by address. They are not kept alive. One that is
/// given a table later goes on through its other doors.
static ABSENT: [Mutex<Option<Py<PyWeakrefReference>>>; 256] = [const { Mutex::new(None) }; 256];

/// The functions for objects of this class, where the class has a table that can make tensors.
///
/// A table that cannot be used counts as none: there are other doors.
///
/// # Errors
/// What the class raises when it is asked for the attribute.
pub(super) fn functions(class: &Bound<'_, PyType>) -> PyResult<Option<Functions>> {
    let absent = ABSENT.get((class.as_ptr().addr() >> 4) % ABSENT.len());
    if absent.is_some_and(|absent| is_about(absent, class)) {
        return Ok(None);
    }
    let known = FOUND.iter().map_while(OnceLock::get).find(|known| known.0.is(class));
    if let Some((_, functions)) = known {
        return Ok(Some(*functions));
    }
    let found = ask(class)?;
    match (found, absent) {
        (Some(functions), _) => remember(class, functions),
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

fn remember(class: &Bound<'_, PyType>, functions: Functions) {
    for place in &FOUND {
        if place.set((class.clone().unbind(), functions)).is_ok() {
            return;
        }
    }
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
            // SAFETY: as above; with this major version the whole table is there.
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

//! Producer: the exchange table of the class of storages.
//!
//! Every function returns 0, or -1 with an exception set, and lets no panic out. dlpack.h has most of
//! them called with the interpreter; a caller without it is served as well. `to_py` takes over its
//! tensor only if it returns 0: dlpack.h leaves open which side owns it after a failure, and consumers
//! free it.

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};

use dlpark::ffi::{
    DLDeviceType, DLManagedTensorVersioned, DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION,
    DLPackExchangeAPI, DLPackExchangeAPIHeader, DLPackVersion, DLTensor,
};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::lookup::NAME;
use crate::alloc::{Fill, Plan, allocate, allocate_for};
use crate::cuda::{Kind, Stream};
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};
use crate::interpreter::attached;
use crate::managed::{Managed, Refusal, Untrusted, read_prototype};
use crate::protocol::class;
use crate::protocol::dlpack::tensor::{borrowed, to_versioned};
use crate::protocol::read::shown;
use crate::storage::{Residence, Spec, Storage};

/// A table that threads may share.
struct ExchangeTable(DLPackExchangeAPI);

// SAFETY: never written; its one pointer is NULL.
unsafe impl Sync for ExchangeTable {}

static TABLE: ExchangeTable = ExchangeTable(DLPackExchangeAPI {
    header: DLPackExchangeAPIHeader {
        version: DLPackVersion { major: DLPACK_MAJOR_VERSION, minor: DLPACK_MINOR_VERSION },
        prev_api: ptr::null_mut(),
    },
    managed_tensor_allocator: Some(allocator),
    managed_tensor_from_py_object_no_sync: Some(from_py),
    managed_tensor_to_py_object_no_sync: Some(to_py),
    dltensor_from_py_object_no_sync: Some(view),
    current_work_stream: Some(current_work_stream),
});

/// The capsule over the table, for the attribute `__dlpack_c_exchange_api__` of the class of
/// storages.
pub(crate) fn capsule(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
    let table = NonNull::from(&TABLE.0).cast::<c_void>();
    // SAFETY: a static table, which needs no destructor, under the name that dlpack.h gives it.
    unsafe { PyCapsule::new_with_pointer(py, table, NAME) }
}

/// Runs `f` for a caller that wants 0 or -1 and an exception. There is no exception once Python has
/// ended, nor on a thread that Python does not know.
fn answer(f: impl FnOnce(Python<'_>) -> PyResult<()>) -> c_int {
    let done = attached(|py| {
        let done = catch_unwind(AssertUnwindSafe(|| f(py)));
        let panicked = |_| {
            Err(PyBufferError::new_err(
                "DLPack exchange table: expected an answer, got a panic; please report it",
            ))
        };
        done.unwrap_or_else(panicked).map_err(|error| error.restore(py))
    });
    if done == Some(Ok(())) { 0 } else { -1 }
}

/// Passes on the memory of a storage that a consumer points to: the buffer with the newest values,
/// in order with the stream that the table names.
fn with_memory<R>(
    py: Python<'_>,
    object: *mut c_void,
    f: impl FnOnce(&Managed) -> Result<R>,
) -> PyResult<R> {
    // SAFETY: NULL, or an object that the caller holds meanwhile (dlpack.h).
    let object = unsafe { Bound::from_borrowed_ptr_or_opt(py, object.cast::<ffi::PyObject>()) };
    let storage = object.as_ref().and_then(class::read).map(|held| held.0);
    let storage = storage.ok_or_else(|| {
        let got = object.as_ref().map_or_else(|| "NULL".into(), |object| shown(object));
        PyTypeError::new_err(format!("DLPack exchange table: expected a Storage, got {got}"))
    })?;
    let memory = match storage.plain_host() {
        Some(host) => host,
        None => py.detach(|| newest_in_order(storage))?,
    };
    Ok(f(memory)?)
}

/// The newest buffer, in order with the stream that the table names, on which its users work
/// (dlpack.h, `current_work_stream`).
fn newest_in_order(storage: &Storage) -> Result<&Managed> {
    if !storage.is_device_newest() {
        return storage.host();
    }
    let device = storage.device()?;
    if let Some(timeline) = device.timeline() {
        timeline.join(Stream::current(device.device().ordinal)?)?; // WAIT for what is in flight
    }
    Ok(device)
}

/// `DLPackManagedTensorFromPyObjectNoSync`: an owning tensor, for the consumer to release.
unsafe extern "C" fn from_py(
    object: *mut c_void,
    out: *mut *mut DLManagedTensorVersioned,
) -> c_int {
    answer(|py| {
        let tensor = with_memory(py, object, |memory| to_versioned(memory, false))?;
        // SAFETY: room for a pointer, as dlpack.h has it.
        unsafe { out.write(tensor.into_raw()) };
        Ok(())
    })
}

/// `DLPackDLTensorFromPyObjectNoSync`: a tensor that lives as long as the object is held.
unsafe extern "C" fn view(object: *mut c_void, out: *mut DLTensor) -> c_int {
    answer(|py| {
        let tensor = with_memory(py, object, borrowed)?;
        // SAFETY: room for a tensor, as dlpack.h has it.
        unsafe { out.write(tensor) };
        Ok(())
    })
}

/// `DLPackManagedTensorToPyObjectNoSync`: an object over a tensor, which it takes. A refused tensor
/// stays the caller's.
unsafe extern "C" fn to_py(tensor: *mut DLManagedTensorVersioned, out: *mut *mut c_void) -> c_int {
    answer(|py| {
        let tensor =
            NonNull::new(tensor).filter(|tensor| tensor.is_aligned()).ok_or_else(|| {
                PyBufferError::new_err(format!(
                    "DLPack exchange table: expected a tensor, got the pointer {tensor:p}, which \
                     is NULL or not aligned"
                ))
            })?;
        // SAFETY: an owning tensor, which the caller gives away (dlpack.h).
        let checked = unsafe { Untrusted::from_versioned(tensor) }.check();
        let managed = checked.and_then(|checked| checked.into_managed(false));
        let managed = managed.map_err(Refusal::give_back)?;
        let owner = ManuallyDrop::new(managed.owner()); // never dropped if no object is made
        if let Some(timeline) = managed.timeline().filter(|_| !managed.device().is_host()) {
            // The caller has worked on the stream that the table names.
            timeline.leave(Stream::current(managed.device().ordinal)?)?;
        }
        let default_residence = Residence::for_memory_on(managed.device());
        let spec = Spec { default_residence, ..Spec::default() };
        let object = class::wrap(py, Storage::wrap(managed, &spec)?, "dlpack_c_exchange_api")?;
        drop(ManuallyDrop::into_inner(owner));
        // SAFETY: room for a pointer, as dlpack.h has it; the reference is the caller's.
        unsafe { out.write(object.into_ptr().cast()) };
        Ok(())
    })
}

/// `DLPackCurrentWorkStream`: NULL for host memory, dlfield's stream for a device.
unsafe extern "C" fn current_work_stream(
    device_type: DLDeviceType,
    device_id: i32,
    out: *mut *mut c_void,
) -> c_int {
    let device = Device::from_dlpack(i64::from(device_type.0.cast_signed()), device_id);
    let stream = device.and_then(|device| match device.kind {
        DeviceKind::Cuda => Stream::current(device.ordinal).map(Stream::handle),
        _ => device.check_on_host().map(|()| 0),
    });
    match stream {
        Ok(handle) => {
            // SAFETY: room for a pointer, as dlpack.h has it.
            unsafe { out.write(ptr::with_exposed_provenance_mut(handle)) };
            0
        }
        Err(error) => {
            // Host work may ask without the interpreter; only the refusal needs it.
            let _is_silent_at_the_end = attached(|py| PyErr::from(error).restore(py));
            -1
        }
    }
}

type SetError = Option<unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char)>;

/// `DLPackManagedTensorAllocator`: new memory, in C order, for a consumer's results. Called
/// with or without the interpreter; errors go to `set_error`.
unsafe extern "C" fn allocator(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    context: *mut c_void,
    set_error: SetError,
) -> c_int {
    // SAFETY: NULL, or a tensor that the caller holds meanwhile (dlpack.h).
    let prototype = unsafe { prototype.as_ref() };
    let panicked = || {
        Error::Buffer("DLPack allocator: expected an answer, got a panic; please report it".into())
    };
    let made = catch_unwind(|| allocate_like(prototype)).unwrap_or_else(|_| Err(panicked()));
    let error = match made {
        Ok(tensor) => {
            // SAFETY: room for a pointer, as dlpack.h has it.
            unsafe { out.write(tensor.into_raw()) };
            return 0;
        }
        Err(error) => error,
    };
    if let Some(set_error) = set_error {
        let text = CString::new(error.to_string()).unwrap_or_default();
        // SAFETY: the caller's function with the caller's context; it copies the texts.
        unsafe { set_error(context, error.python_name().as_ptr(), text.as_ptr()) };
    }
    -1
}

fn allocate_like(
    prototype: Option<&DLTensor>,
) -> Result<dlpark::Managed<DLManagedTensorVersioned>> {
    let prototype = prototype
        .ok_or_else(|| Error::Buffer("DLPack allocator: expected a prototype, got NULL".into()))?;
    let (shape, dtype, device) = read_prototype(prototype)?;
    let plan = Plan::compact(shape, dtype)?;
    let managed = match device {
        Device::CPU => allocate(&plan, Fill::Nothing)?,
        Device { kind: DeviceKind::Cuda, ordinal } => allocate_on_gpu(&plan, ordinal)?,
        _ => {
            return Err(Error::Device(format!(
                "DLPack allocator: expected ordinary host memory or a CUDA device, got {device}"
            )));
        }
    };
    to_versioned(&managed, false)
}

/// Memory for a consumer that works on the stream which the table names.
fn allocate_on_gpu(plan: &Plan, ordinal: i32) -> Result<Managed> {
    let managed = allocate_for(plan, Kind::Device, ordinal, Fill::Nothing)?;
    if let Some(timeline) = managed.timeline() {
        timeline.join(Stream::current(ordinal)?)?; // WAIT until the memory is there
    }
    Ok(managed)
}

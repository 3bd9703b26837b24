//! Producer: the exchange table of a class of ours.
//!
//! Every function answers 0, or -1 with an exception set, and lets no panic out. The tensor given
//! to `to_py` is taken over only where it answers 0: dlpack.h leaves open who has it after a
//! failure, and consumers free it themselves.

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};

use dlpark::ffi::{
    DLDeviceType, DLManagedTensorVersioned, DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION,
    DLPackExchangeAPI, DLPackExchangeAPIHeader, DLPackVersion, DLTensor,
};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3::{PyClass, ffi};

use super::NAME;
use crate::alloc::{Fill, Plan, allocate, allocate_for, check_shape, plan};
use crate::cuda::{Kind, Stream};
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};
use crate::managed::{Imported, Managed, read_prototype};
use crate::protocol::dlpack::tensor::{borrowed, to_versioned};

/// A class whose objects hold memory, and can be made over memory from elsewhere.
pub(crate) trait Exchanged:
    PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Sync
{
    /// The memory of an object, which stays where it is: that of a device in order with the stream that
    /// the table names.
    ///
    /// # Errors
    /// What CUDA refuses. Waits without the GIL.
    fn managed(&self, py: Python<'_>) -> Result<&Managed>;

    /// A new object over `managed`.
    fn wrap(py: Python<'_>, managed: Managed) -> PyResult<Py<PyAny>>;
}

/// A table that threads may share.
struct Table(DLPackExchangeAPI);

// SAFETY: never written; its one pointer is NULL.
unsafe impl Sync for Table {}

trait HasTable: Exchanged {
    const TABLE: &'static Table = &Table(DLPackExchangeAPI {
        header: DLPackExchangeAPIHeader {
            version: DLPackVersion { major: DLPACK_MAJOR_VERSION, minor: DLPACK_MINOR_VERSION },
            prev_api: ptr::null_mut(),
        },
        managed_tensor_allocator: Some(allocator),
        managed_tensor_from_py_object_no_sync: Some(from_py::<Self>),
        managed_tensor_to_py_object_no_sync: Some(to_py::<Self>),
        dltensor_from_py_object_no_sync: Some(view_of::<Self>),
        current_work_stream: Some(current_work_stream),
    });
}

impl<T: Exchanged> HasTable for T {}

/// The capsule over the table of `T`, for the attribute `__dlpack_c_exchange_api__` of the class.
pub(crate) fn capsule<T: Exchanged>(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
    let table = NonNull::from(&T::TABLE.0).cast::<c_void>();
    // SAFETY: a static table, which needs no destructor, under the name that dlpack.h gives it.
    unsafe { PyCapsule::new_with_pointer(py, table, NAME) }
}

/// Runs `f` for a caller that wants 0 or -1 and an exception.
fn answer(f: impl FnOnce(Python<'_>) -> PyResult<()>) -> c_int {
    // SAFETY: dlpack.h lets these functions be called with the interpreter attached only.
    let py = unsafe { Python::assume_attached() };
    let done = catch_unwind(AssertUnwindSafe(|| f(py)));
    let error = match done {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => error,
        Err(_) => PyBufferError::new_err(
            "DLPack exchange table: expected an answer, got a panic; please report it",
        ),
    };
    error.restore(py);
    -1
}

/// The memory behind an object pointer of a consumer.
fn memory_of<T: Exchanged, R>(
    py: Python<'_>,
    object: *mut c_void,
    f: impl FnOnce(&Managed) -> Result<R>,
) -> PyResult<R> {
    // SAFETY: NULL, or an object that the caller holds meanwhile (dlpack.h).
    let object = unsafe { Bound::from_borrowed_ptr_or_opt(py, object.cast::<ffi::PyObject>()) };
    let object = object.as_ref().and_then(|object| object.cast::<T>().ok());
    let object = object.ok_or_else(|| {
        PyTypeError::new_err(format!(
            "DLPack exchange table: expected a {}, got another object",
            T::NAME
        ))
    })?;
    Ok(f(object.get().managed(py)?)?)
}

/// `DLPackManagedTensorFromPyObjectNoSync`: an owning tensor, for the consumer to release.
unsafe extern "C" fn from_py<T: Exchanged>(
    object: *mut c_void,
    out: *mut *mut DLManagedTensorVersioned,
) -> c_int {
    answer(|py| {
        let tensor = memory_of::<T, _>(py, object, |managed| to_versioned(managed, false))?;
        // SAFETY: room for a pointer, as dlpack.h has it.
        unsafe { out.write(tensor.into_raw()) };
        Ok(())
    })
}

/// `DLPackDLTensorFromPyObjectNoSync`: a tensor that lives as long as the object is held.
unsafe extern "C" fn view_of<T: Exchanged>(object: *mut c_void, out: *mut DLTensor) -> c_int {
    answer(|py| {
        let tensor = memory_of::<T, _>(py, object, borrowed)?;
        // SAFETY: room for a tensor, as dlpack.h has it.
        unsafe { out.write(tensor) };
        Ok(())
    })
}

/// `DLPackManagedTensorToPyObjectNoSync`: an object over a tensor, which is ours from then on.
unsafe extern "C" fn to_py<T: Exchanged>(
    tensor: *mut DLManagedTensorVersioned,
    out: *mut *mut c_void,
) -> c_int {
    answer(|py| {
        let tensor =
            NonNull::new(tensor).filter(|tensor| tensor.is_aligned()).ok_or_else(|| {
                PyBufferError::new_err("DLPack exchange table: expected a tensor, got NULL")
            })?;
        // SAFETY: an owning tensor, which the caller gives away (dlpack.h). It is dropped only
        // once it was found good: until then it is the caller's.
        let mut imported = ManuallyDrop::new(unsafe { Imported::from_versioned(tensor) });
        if let Err(error) = imported.locate() {
            ManuallyDrop::into_inner(imported).leave();
            return Err(error.into());
        }
        // What was located is valid: from here on nothing fails that would release it.
        let managed = ManuallyDrop::into_inner(imported).validate()?;
        let owner = ManuallyDrop::new(managed.owner()); // never dropped where there is no object
        if let Some(timeline) = managed.timeline().filter(|_| !managed.device().is_host()) {
            // Whoever made it has worked on the stream that the table names.
            timeline.leave(Stream::current(managed.device().ordinal)?)?;
        }
        let object = T::wrap(py, managed)?;
        drop(ManuallyDrop::into_inner(owner));
        // SAFETY: room for a pointer, as dlpack.h has it; the reference is the caller's.
        unsafe { out.write(object.into_ptr().cast()) };
        Ok(())
    })
}

/// `DLPackCurrentWorkStream`: host memory has none; on a device that on which dlfield works.
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
    let error = match stream {
        Ok(handle) => {
            // SAFETY: room for a pointer, as dlpack.h has it.
            unsafe { out.write(ptr::with_exposed_provenance_mut(handle)) };
            return 0;
        }
        Err(error) => error,
    };
    // Host work may ask without the interpreter; only the refusal needs it.
    let _ = Python::try_attach(|py| PyErr::from(error).restore(py));
    -1
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
    check_shape(&shape, dtype)?;
    let ranks: Vec<i64> = (0_i64..).take(shape.len()).collect();
    let plan = plan(&shape, dtype, &ranks, 1, &[])?;
    let managed = match device {
        Device::CPU => allocate(&plan, Fill::Nothing)?,
        Device { kind: DeviceKind::Cuda, ordinal } => on_device(&plan, ordinal)?,
        _ => {
            let text = format!(
                "DLPack allocator: expected ordinary host memory or a CUDA device, got {device}"
            );
            return Err(Error::Device(text));
        }
    };
    to_versioned(&managed, false)
}

/// Memory for a consumer that works on the stream which the table names.
fn on_device(plan: &Plan, ordinal: i32) -> Result<Managed> {
    let managed = allocate_for(plan, Kind::Device, ordinal, Fill::Nothing)?;
    if let Some(timeline) = managed.timeline() {
        timeline.join(Stream::current(ordinal)?)?; // WAIT until the memory is there
        timeline.hand_out();
    }
    Ok(managed)
}

//! A managed tensor for a consumer: dlpark's structs, filled from a [`Managed`].

use std::ffi::{CStr, c_void};

#[cfg(feature = "python")]
use dlpark::ffi::DLTensor;
use dlpark::ffi::{DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensorVersioned};
use dlpark::metadata::Dynamic;
use dlpark::{DlpackFlags, ManagedTensorBase};

use crate::error::{Error, Result};
use crate::layout::Extents;
use crate::managed::Managed;

/// Names of capsules, which say which struct a capsule holds and whether it was consumed (DLPack's
/// Python specification).
pub(super) const VERSIONED: &CStr = c"dltensor_versioned";
pub(super) const USED_VERSIONED: &CStr = c"used_dltensor_versioned";
pub(super) const LEGACY: &CStr = c"dltensor";
pub(super) const USED_LEGACY: &CStr = c"used_dltensor";

/// A versioned tensor over the same memory, to be released by its deleter. Copies no element.
///
/// READ_ONLY is set for read-only memory, IS_COPIED if the caller has just made a copy.
///
/// # Errors
/// [`Error::Buffer`] for negative strides, on which `torch.from_dlpack` aborts the process.
pub(super) fn to_versioned(
    managed: &Managed,
    copied: bool,
) -> Result<dlpark::Managed<DLManagedTensorVersioned>> {
    let mut flags = DlpackFlags::empty();
    flags.set(DlpackFlags::READ_ONLY, managed.readonly());
    flags.set(DlpackFlags::IS_COPIED, copied);
    export(managed, flags)
}

/// A legacy tensor over the same memory. The struct cannot say that memory is read-only: the
/// caller answers for it.
#[cfg(feature = "python")]
pub(super) fn to_legacy(
    managed: &Managed,
) -> Result<dlpark::Managed<dlpark::ffi::DLManagedTensor>> {
    export(managed, DlpackFlags::empty())
}

fn export<M: ManagedTensorBase>(
    managed: &Managed,
    flags: DlpackFlags,
) -> Result<dlpark::Managed<M>> {
    let layout = managed.layout();
    let strides = strides_for_export(managed)?;
    let prepared = Dynamic::new(layout.shape(), strides.as_slice()).prepare_as::<M>();
    let prepared = prepared.map_err(|error| Error::Buffer(format!("DLPack export: {error}")))?;
    let mut tensor = prepared.initialize(Box::new(managed.owner()));
    let (code, bits) = managed.dtype().dlpack();
    // The offset goes into data, as in all libraries; byte_offset stays 0.
    tensor.set_data(data(managed)).set_device(device(managed)?);
    tensor.set_dtype(DLDataType { code: DLDataTypeCode(code), bits, lanes: 1 });
    // SAFETY: flags describe the memory (to_versioned); IS_COPIED comes from a caller who has just
    // made the only reference.
    unsafe { tensor.set_flags_unchecked(flags) };
    // SAFETY: Managed vouches for data, shape and strides; shape and strides were copied into the
    // tensor, and the owner in its context keeps the elements until the deleter runs.
    Ok(unsafe { tensor.finish() })
}

/// A tensor that borrows shape and strides from `managed` and says nothing about who may write.
///
/// # Errors
/// [`Error::Buffer`] for read-only memory, which the struct cannot name, and for negative strides.
#[cfg(feature = "python")]
pub(super) fn borrowed(managed: &Managed) -> Result<DLTensor> {
    let layout = managed.layout();
    if managed.readonly() {
        return Err(Error::Buffer(
            "DLPack view: expected writable memory, got read-only memory, which a plain DLTensor \
             cannot say; ask for a managed tensor, or hand over a copy"
                .into(),
        ));
    }
    if strides_for_export(managed)?.as_slice() != layout.strides() {
        return Err(Error::Buffer(
            "DLPack view: expected strides of at least 0, got negative ones; ask for a managed \
             tensor"
                .into(),
        ));
    }
    let (code, bits) = managed.dtype().dlpack();
    Ok(DLTensor {
        data: data(managed),
        device: device(managed)?,
        ndim: i32::try_from(layout.ndim()).unwrap_or(0), // at most MAX_NDIM
        dtype: DLDataType { code: DLDataTypeCode(code), bits, lanes: 1 },
        // C has no const here; consumers only read.
        shape: layout.shape().as_ptr().cast_mut(),
        strides: layout.strides().as_ptr().cast_mut(),
        byte_offset: 0,
    })
}

/// NULL for no elements, as torch and pyarrow have it.
fn data(managed: &Managed) -> *mut c_void {
    if managed.layout().size() == 0 { std::ptr::null_mut() } else { managed.data().cast() }
}

/// Strides in elements. Negative ones of a single element have no meaning and become positive.
fn strides_for_export(managed: &Managed) -> Result<Extents> {
    let layout = managed.layout();
    let empty = layout.size() == 0;
    layout.axes().enumerate().map(|(axis, (extent, stride))| {
        if stride >= 0 || extent <= 1 || empty {
            return Ok(stride.max(0));
        }
        Err(Error::Buffer(format!(
            "DLPack export: expected strides of at least 0, got {stride} elements on axis {axis}; \
             several consumers abort on them: hand over a copy, or use the buffer protocol"
        )))
    }).collect()
}

fn device(managed: &Managed) -> Result<DLDevice> {
    let device = managed.device().announced();
    let code = u32::try_from(device.code())
        .map_err(|_| Error::Buffer(format!("DLPack export: unknown device {device}")))?;
    Ok(DLDevice { device_type: DLDeviceType(code), device_id: device.ordinal })
}

#[cfg(test)]
mod tests {
    use std::ptr::NonNull;

    use dlpark::ffi::DLManagedTensor;

    use super::*;
    use crate::alloc::{Fill, allocate, plan};
    use crate::dtype::DType;
    use crate::managed::Untrusted;

    fn field() -> Managed {
        allocate(&plan(&[3, 4], DType::Float32, &[1, 0], 1, &[]).unwrap(), Fill::Zeros).unwrap()
    }

    #[test]
    fn a_round_trip_keeps_address_layout_and_owner() {
        let field = field();
        let owner = field.owner();
        let raw = to_versioned(&field, false).unwrap().into_raw();
        // SAFETY: just made by to_versioned, and owned here.
        let back =
            unsafe { Untrusted::from_versioned(NonNull::new(raw).unwrap()) }.validate().unwrap();
        assert_eq!((back.address(), back.layout()), (field.address(), field.layout()));
        drop(back);
        assert_eq!(owner.count(), 2, "the field and this test: the export let go");
    }

    #[test]
    fn a_legacy_round_trip_releases_once_too() {
        let field = field();
        let owner = field.owner();
        let raw = export::<DLManagedTensor>(&field, DlpackFlags::empty()).unwrap().into_raw();
        // SAFETY: just made by export, and owned here.
        drop(unsafe { Untrusted::from_legacy(NonNull::new(raw).unwrap()) });
        assert_eq!(owner.count(), 2);
    }

    #[test]
    fn read_only_memory_stays_read_only() {
        let raw = to_versioned(&field().into_readonly(), false).unwrap().into_raw();
        // SAFETY: as above.
        let back = unsafe { Untrusted::from_versioned(NonNull::new(raw).unwrap()) };
        assert!(back.validate().unwrap().readonly());
    }
}

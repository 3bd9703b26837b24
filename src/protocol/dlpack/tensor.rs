//! A managed tensor for a consumer: DLPack's structs, filled from a [`Managed`]. The structs and
//! constants are dlpark's; the tensor is made here in one allocation with its extents and strides.

use std::ffi::{CStr, c_void};

use dlpark::ffi::{
    DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensorVersioned, DLTensor,
};
use dlpark::{DlpackFlags, ManagedTensorBase};

use crate::device::Device;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::managed::{Managed, Owner};

/// Names of capsules, which say which struct a capsule holds and whether it was consumed (DLPack's
/// Python specification).
pub(super) const VERSIONED: &CStr = c"dltensor_versioned";
pub(super) const USED_VERSIONED: &CStr = c"used_dltensor_versioned";
pub(super) const LEGACY: &CStr = c"dltensor";
pub(super) const USED_LEGACY: &CStr = c"used_dltensor";

/// A tensor in one allocation with its extents and strides, which are its own: a consumer that
/// changes them changes nothing else. Its deleter frees the allocation.
#[repr(C)]
struct Export<M> {
    /// Comes first, so that a consumer's pointer to it is a pointer to the whole.
    tensor: M,
    /// Extents, then strides, of a tensor with few dimensions.
    numbers: [i64; 2 * FEW],
    /// The same of a tensor with more.
    more_numbers: Vec<i64>,
    /// Keeps the elements.
    owner: Owner,
}

/// Dimensions for which an export has room.
const FEW: usize = 6;

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
    to_versioned_on(managed, managed.device(), copied)
}

/// As [`to_versioned`], labelled with another device that reaches the memory.
///
/// # Errors
/// As [`to_versioned`].
pub(super) fn to_versioned_on(
    managed: &Managed,
    device: Device,
    copied: bool,
) -> Result<dlpark::Managed<DLManagedTensorVersioned>> {
    let mut flags = DlpackFlags::empty();
    flags.set(DlpackFlags::READ_ONLY, managed.readonly());
    flags.set(DlpackFlags::IS_COPIED, copied);
    export(managed, device, flags)
}

/// A legacy tensor over the same memory. The struct cannot say that memory is read-only: the
/// caller answers for it.
///
/// # Errors
/// As [`to_versioned`].
#[cfg(feature = "python")]
pub(super) fn to_legacy_on(
    managed: &Managed,
    device: Device,
) -> Result<dlpark::Managed<dlpark::ffi::DLManagedTensor>> {
    export(managed, device, DlpackFlags::empty())
}

fn export<M: ManagedTensorBase>(
    managed: &Managed,
    device: Device,
    flags: DlpackFlags,
) -> Result<dlpark::Managed<M>> {
    let layout = managed.layout();
    check_strides(layout)?;
    let descriptor = descriptor(managed, device)?;
    let place = Box::into_raw(Box::<Export<M>>::new_uninit()).cast::<Export<M>>();
    let mut tensor = M::from_parts(descriptor, place.cast(), Some(delete::<M>));
    // SAFETY: flags describe the memory (to_versioned); IS_COPIED comes from a caller who has just
    // made the only reference.
    unsafe { tensor.set_flags_unchecked(flags) };
    let numbers = [0; 2 * FEW];
    let more_numbers = if layout.ndim() > FEW { vec![0; 2 * layout.ndim()] } else { Vec::new() };
    // SAFETY: room for one, allocated above.
    unsafe { place.write(Export { tensor, numbers, more_numbers, owner: managed.owner() }) };
    // SAFETY: written above, and owned here.
    unsafe { &mut *place }.fill(layout);
    // SAFETY: Managed vouches for data, shape and strides, and the allocation, which never moves,
    // keeps them until the deleter frees it.
    let made = unsafe { dlpark::Managed::from_raw(place.cast::<M>()) };
    made.map_err(|error| Error::Buffer(format!("DLPack export: {error}")))
}

impl<M: ManagedTensorBase> Export<M> {
    /// Writes extents and strides where they stay, and has the tensor point to them.
    fn fill(&mut self, layout: &Layout) {
        let ndim = layout.ndim();
        let few = ndim <= FEW;
        let numbers = if few { self.numbers.as_mut_slice() } else { &mut self.more_numbers };
        let (shape, strides) = numbers.split_at_mut(ndim);
        shape.copy_from_slice(layout.shape());
        for (stride, &from) in strides.iter_mut().zip(layout.strides()) {
            *stride = from.max(0); // negative ones have no meaning here
        }
        let tensor = self.tensor.tensor_mut();
        (tensor.shape, tensor.strides) = (shape.as_mut_ptr(), strides.as_mut_ptr());
    }
}

/// The deleter of an exported tensor.
///
/// # Safety
/// `tensor` comes from [`export`] with the same `M`, and is not used again.
unsafe extern "C" fn delete<M>(tensor: *mut M) {
    // SAFETY: the first field of an allocation that export gave away.
    drop(unsafe { Box::from_raw(tensor.cast::<Export<M>>()) });
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
    check_strides(layout)?;
    if layout.strides().iter().any(|&stride| stride < 0) {
        return Err(Error::Buffer(
            "DLPack view: expected strides of at least 0, got negative ones; ask for a managed \
             tensor"
                .into(),
        ));
    }
    descriptor(managed, managed.device())
}

/// Describes the memory, with the extents and strides of its layout.
fn descriptor(managed: &Managed, device: Device) -> Result<DLTensor> {
    let layout = managed.layout();
    let (code, bits) = managed.dtype().dlpack();
    Ok(DLTensor {
        // The offset goes into data, as in all libraries.
        data: data(managed),
        device: announced(device)?,
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

/// Refuses negative strides. Those of a single element have no meaning, and none has without
/// elements.
///
/// # Errors
/// [`Error::Buffer`].
fn check_strides(layout: &Layout) -> Result<()> {
    if layout.strides().iter().all(|&stride| stride >= 0) {
        return Ok(());
    }
    let negative = |&(_, (extent, stride)): &(usize, (i64, i64))| stride < 0 && extent > 1;
    match layout.axes().enumerate().find(negative).filter(|_| layout.size() > 0) {
        None => Ok(()),
        Some((axis, (_, stride))) => Err(Error::Buffer(format!(
            "DLPack export: expected strides of at least 0, got {stride} elements on axis {axis}; \
             several consumers abort on them: hand over a copy, or use the buffer protocol"
        ))),
    }
}

fn announced(device: Device) -> Result<DLDevice> {
    let device = device.announced();
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
        let raw = export::<DLManagedTensor>(&field, field.device(), DlpackFlags::empty())
            .unwrap()
            .into_raw();
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

//! DLPack tensors with any claims: a tensor is refused, or its span holds all its elements, and a
//! copy has their values. Its deleter is called once either way.
#![no_main]

use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use arbitrary::{Arbitrary, Result, Unstructured};
use dlfield::{Managed, Storage};
use dlpark::DlpackFlags;
use dlpark::ffi::{
    DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensorVersioned, DLPackVersion,
    DLTensor,
};
use fuzz::elements::distances;
use libfuzzer_sys::fuzz_target;

/// The memory that every tensor claims to describe a part of, and the elements visited in it.
const BYTES: usize = 4096;

static RELEASED: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug, Arbitrary)]
struct Claims {
    #[arbitrary(with = mostly(1_u32))]
    major: u32,
    flags: u64,
    #[arbitrary(with = kind)]
    dtype: (u8, u8, u16),
    #[arbitrary(with = mostly(1_u32))]
    device_type: u32,
    #[arbitrary(with = mostly(0_i32))]
    device_id: i32,
    /// Another number of dimensions than there are extents, which must be refused unread.
    ndim: Option<i32>,
    #[arbitrary(with = extents)]
    shape: Box<[i64]>,
    #[arbitrary(with = extents)]
    strides: Box<[i64]>,
    has_strides: bool,
    #[arbitrary(with = offset)]
    byte_offset: u64,
    #[arbitrary(with = mostly(false))]
    null: bool,
}

/// This value three times out of four.
fn mostly<'a, T: Arbitrary<'a> + Copy>(value: T) -> impl Fn(&mut Unstructured<'a>) -> Result<T> {
    move |input| if input.ratio(3, 4)? { Ok(value) } else { T::arbitrary(input) }
}

/// Code, bits and lanes, mostly of a number.
fn kind(input: &mut Unstructured<'_>) -> Result<(u8, u8, u16)> {
    let code = input.int_in_range(0..=20)?;
    let bits = *input.choose(&[8, 16, 32, 64, 128, 0, 7])?;
    Ok((code, bits, mostly(1)(input)?))
}

/// A few numbers, mostly small. The box ends where they end, so that a read past them is found.
fn extents(input: &mut Unstructured<'_>) -> Result<Box<[i64]>> {
    let length = input.int_in_range(0..=6)?;
    (0..length)
        .map(|_| if input.ratio(7, 8)? { input.int_in_range(-9..=70) } else { input.arbitrary() })
        .collect()
}

fn offset(input: &mut Unstructured<'_>) -> Result<u64> {
    if input.ratio(7, 8)? { input.int_in_range(0..=BYTES as u64) } else { input.arbitrary() }
}

/// The memory behind a tensor. The tensor's deleter frees it.
struct Owner {
    tensor: DLManagedTensorVersioned,
    _shape: Box<[i64]>,
    _strides: Option<Box<[i64]>>,
}

unsafe extern "C" fn release(tensor: *mut DLManagedTensorVersioned) {
    RELEASED.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the tensor is live until here.
    let owner = unsafe { (*tensor).manager_ctx };
    // SAFETY: `raw` made the owner of a box.
    drop(unsafe { Box::from_raw(owner.cast::<Owner>()) });
}

fn raw(mut claims: Claims, data: *mut u8) -> NonNull<DLManagedTensorVersioned> {
    let length = claims.shape.len();
    let ndim = claims.ndim.filter(|ndim| !(0..=64).contains(ndim));
    let ndim = ndim.unwrap_or(i32::try_from(length).unwrap_or(0));
    let mut strides = claims.has_strides.then(|| {
        let mut all = claims.strides.into_vec();
        all.resize(length, 1);
        all.into_boxed_slice()
    });
    let dl_tensor = DLTensor {
        data: if claims.null { null_mut() } else { data.cast::<c_void>() },
        device: DLDevice {
            device_type: DLDeviceType(claims.device_type),
            device_id: claims.device_id,
        },
        ndim,
        dtype: DLDataType {
            code: DLDataTypeCode(claims.dtype.0),
            bits: claims.dtype.1,
            lanes: claims.dtype.2,
        },
        shape: claims.shape.as_mut_ptr(),
        strides: strides.as_mut().map_or(null_mut(), |strides| strides.as_mut_ptr()),
        byte_offset: claims.byte_offset,
    };
    let tensor = DLManagedTensorVersioned {
        version: DLPackVersion { major: claims.major, minor: 0 },
        manager_ctx: null_mut(),
        deleter: Some(release),
        flags: DlpackFlags::from_bits_retain(claims.flags),
        dl_tensor,
    };
    let owner = Box::leak(Box::new(Owner { tensor, _shape: claims.shape, _strides: strides }));
    owner.tensor.manager_ctx = std::ptr::from_mut(owner).cast::<c_void>();
    NonNull::from(&mut owner.tensor)
}

fn bytes_of(memory: &Managed) -> Vec<u8> {
    let width = memory.layout().itemsize();
    let element = |distance: i64| {
        let at = memory.data().wrapping_offset(isize::try_from(distance).unwrap_or(0));
        // SAFETY: the distance of an element within the memory, which is initialised.
        unsafe { std::slice::from_raw_parts(at, width) }
    };
    distances(memory.layout()).into_iter().flat_map(|at| element(at).to_vec()).collect()
}

fn check(storage: &Storage, start: usize) {
    let (memory, layout) = (storage.managed(), storage.managed().layout());
    if layout.size() > BYTES {
        return;
    }
    let (span, width) = (layout.span(), i64::try_from(layout.itemsize()).unwrap_or(0));
    for distance in distances(layout) {
        assert!((span.low as i64..=span.high as i64 - width).contains(&distance), "{layout:?}");
    }
    let first = memory.address().wrapping_add_signed(span.low);
    let inside = first >= start && first.saturating_add(span.len()) <= start + BYTES;
    if inside && memory.device().is_host() {
        let copy = storage.copy().expect("memory for a copy");
        assert_eq!(bytes_of(copy.managed()), bytes_of(memory), "{layout:?}");
    }
}

fuzz_target!(|claims: Claims| {
    let mut memory: Vec<u8> = (0..BYTES).map(|at| at.to_le_bytes()[0]).collect();
    let (before, start) = (RELEASED.load(Ordering::Relaxed), memory.as_ptr().addr());
    let tensor = raw(claims, memory.as_mut_ptr());
    // SAFETY: `raw` gives a tensor of its own; what it claims of elements is checked before they
    // are read.
    if let Ok(storage) = unsafe { Storage::from_dlpack(tensor) } {
        check(&storage, start);
    }
    assert_eq!(RELEASED.load(Ordering::Relaxed), before + 1);
});

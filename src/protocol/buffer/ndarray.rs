//! The buffer of an array of exactly NumPy's class, read from the array's own struct.
//!
//! NumPy's buffer view says the same, at the price of a text for the type and of a record of each
//! view. Arrays that this file cannot tell apart (other types, another byte order, unaligned items)
//! are left to the view.
//!
//! Source: ndarraytypes.h, `PyArrayObject_fields` and `_PyArray_Descr`. Both structs are part of
//! NumPy's ABI. Its number and the class are read once from NumPy's table for C, since what the
//! module calls `ndarray` is any class that somebody put there.

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::managed::{Checked, Described, Owner, check_ndim, read_numbers};
use crate::protocol::attached::DropAttached;
use crate::protocol::producer::{Producer, Recognised};

/// The fields of an array behind the head of an object.
#[repr(C)]
#[derive(Clone, Copy)]
struct ArrayFields {
    data: *mut c_char,
    nd: c_int,
    dimensions: *const isize,
    /// In bytes.
    strides: *const isize,
    base: *mut ffi::PyObject,
    descr: *mut ffi::PyObject,
    flags: c_int,
}

/// The fields of a dtype behind the head of an object, as far as they are used.
#[repr(C)]
#[derive(Clone, Copy)]
struct DescrFields {
    typeobj: *mut ffi::PyTypeObject,
    kind: c_char,
    r#type: c_char,
    byteorder: c_char,
    former_flags: c_char,
    type_num: c_int,
}

const ALIGNED: c_int = 0x100;
const WRITEABLE: c_int = 0x400;
/// A write is still allowed, and warned of.
const WARN_ON_WRITE: c_int = c_int::MIN;

/// The ABI of NumPy 2.
const ABI: c_uint = 0x0200_0000;

/// The claims of an array of exactly NumPy's class; `None` for all others, which have a view.
///
/// The array keeps its memory while something else refers to it: `resize` refuses then, unless it is
/// told not to look, which leaves every view of the array without memory, those of NumPy too.
pub(super) fn read(array: &Bound<'_, PyAny>, known: Recognised) -> Result<Option<Checked>> {
    const { assert!(size_of::<isize>() == size_of::<i64>(), "a platform of 64 bits") }
    if !known.is_exactly(Producer::Numpy) || class(array.py()) != Some(array.get_type_ptr().addr())
    {
        return Ok(None);
    }
    // SAFETY: an object of exactly the class that NumPy's own table names, in an ABI with this
    // struct.
    let fields: ArrayFields = unsafe { behind_head(array.as_ptr()) };
    // SAFETY: an array's descr is a dtype, of the same ABI.
    let descr: DescrFields = unsafe { behind_head(fields.descr) };
    let native = matches!(u8::from_ne_bytes(descr.byteorder.to_ne_bytes()), b'=' | b'|');
    let plain = fields.flags & (ALIGNED | WARN_ON_WRITE) == ALIGNED;
    let Some(dtype) = dtype(descr.type_num).filter(|_| native && plain) else { return Ok(None) };
    let ndim = check_ndim("array", fields.nd)?;
    // SAFETY: an array has nd extents, which do not change before they are copied below.
    let shape = unsafe { read_numbers("array shape", fields.dimensions.cast(), ndim) }?;
    // SAFETY: as for the extents.
    let byte_strides = unsafe { read_numbers("array strides", fields.strides.cast(), ndim) }?;
    let described = Described {
        address: fields.data.addr(),
        shape: shape.unwrap_or_default(),
        byte_strides,
        dtype,
        device: Device::CPU,
        readonly: fields.flags & WRITEABLE == 0,
        owner: Owner::new(DropAttached::new(array.clone().unbind())),
    };
    // SAFETY: an array keeps its memory, which the owner keeps.
    unsafe { Checked::from_described(described) }.map(Some)
}

/// Copies the fields that follow the head of an object.
///
/// # Safety
/// `object` is alive, and `Fields` describes what follows its head.
unsafe fn behind_head<Fields: Copy>(object: *mut ffi::PyObject) -> Fields {
    // SAFETY: the fields of every object follow its head.
    let fields = unsafe { object.add(1) };
    // SAFETY: the caller knows what follows the head.
    unsafe { fields.cast::<Fields>().read() }
}

/// The type by NumPy's number (`NPY_TYPES`); `None` for those that dlfield has not or that need a
/// closer look.
fn dtype(number: c_int) -> Option<DType> {
    const LONG: [DType; 2] = if size_of::<c_long>() == 8 {
        [DType::Int64, DType::UInt64]
    } else {
        [DType::Int32, DType::UInt32]
    };
    Some(match number {
        0 => DType::Bool,
        1 => DType::Int8,
        2 => DType::UInt8,
        3 => DType::Int16,
        4 => DType::UInt16,
        5 => DType::Int32,
        6 => DType::UInt32,
        7 => LONG[0],
        8 => LONG[1],
        9 => DType::Int64,
        10 => DType::UInt64,
        11 => DType::Float32,
        12 => DType::Float64,
        14 => DType::Complex64,
        15 => DType::Complex128,
        23 => DType::Float16,
        _ => return None,
    })
}

/// The address of NumPy's class of arrays, if the NumPy that is loaded has the structs above.
fn class(py: Python<'_>) -> Option<usize> {
    static CLASS: PyOnceLock<Option<usize>> = PyOnceLock::new();
    *CLASS.get_or_init(py, || read_class(py).ok().flatten())
}

/// Reads the number of the ABI and the class from NumPy's table for C.
fn read_class(py: Python<'_>) -> PyResult<Option<usize>> {
    let module = py.import("numpy._core._multiarray_umath")?;
    let capsule = module.getattr("_ARRAY_API")?.cast_into::<PyCapsule>()?;
    let table = capsule.pointer_checked(None)?.cast::<[*const c_void; 3]>();
    // SAFETY: the capsule points to NumPy's table, which lives as long as the process and has some
    // hundred entries.
    let [number, _, class] = unsafe { table.read() };
    // SAFETY: the first one is `unsigned int PyArray_GetNDArrayCVersion(void)` in every ABI.
    let abi = unsafe { std::mem::transmute::<*const c_void, extern "C" fn() -> c_uint>(number) };
    Ok((abi() == ABI).then(|| class.addr())) // the third one is `PyArray_Type`
}

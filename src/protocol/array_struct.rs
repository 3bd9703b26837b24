//! Door: `__array_struct__`, the array interface as a struct of C, for host memory.
//!
//! Source: NumPy's reference, "The array interface protocol", "C-struct access". The capsule owns
//! the struct and the object owns the memory: an import holds both. Read for producers that have
//! nothing else; not written, since consumers that read it read buffers first.

use std::ffi::{c_char, c_int, c_void};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use super::door::{Answer, Request};
use super::producer::Recognised;
use super::read::{aligned, capsule, capsule_name};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Failure, Result};
use crate::interpreter::DropAttached;
use crate::managed::{Checked, Described, Owner, check_ndim, read_numbers};

/// `PyArrayInterface`.
#[repr(C)]
#[derive(Clone, Copy)]
struct ArrayStruct {
    /// The number 2, by which the struct is known.
    two: c_int,
    nd: c_int,
    typekind: c_char,
    itemsize: c_int,
    flags: c_int,
    shape: *const isize,
    /// In bytes.
    strides: *const isize,
    data: *mut c_void,
}

/// The items are in native byte order.
const NOTSWAPPED: c_int = 0x200;
const WRITEABLE: c_int = 0x400;
/// A field behind the others describes a structured type.
const HAS_DESCR: c_int = 0x800;

const WHAT: &str = "__array_struct__";

/// Reads the struct of an object. Zero-copy; holds the object and its capsule.
pub(in crate::protocol) fn import<'py>(
    obj: &Bound<'py, PyAny>,
    _: Request,
    _: Recognised,
) -> Answer<'py> {
    let Some(found) = obj.getattr_opt(intern!(obj.py(), "__array_struct__"))? else {
        return Ok(None);
    };
    let capsule = capsule(WHAT, &found)?;
    let found = struct_in(capsule)?;
    let keep = DropAttached::new((obj.clone().unbind(), capsule.clone().unbind()));
    // SAFETY: the struct of a capsule that `keep` holds, with the object that has the memory.
    let checked = unsafe { check(found, Owner::new(keep)) };
    Ok(Some(checked.map_err(|error| error.about(WHAT))?.into()))
}

/// A copy of the struct in a capsule, which has no name.
fn struct_in(capsule: &Bound<'_, PyCapsule>) -> Result<ArrayStruct, Failure> {
    if !capsule.is_valid_checked(None) {
        let got = capsule_name(capsule);
        let text = format!("{WHAT}: expected a capsule without a name, got {got}");
        return Err(Error::Argument(text).into());
    }
    let place = aligned::<ArrayStruct>(WHAT, capsule, None)?;
    // SAFETY: aligned, and a nameless capsule under this attribute holds such a struct (NumPy's
    // reference).
    Ok(unsafe { place.read() })
}

/// Checks the claims of a struct.
///
/// # Safety
/// `owner` keeps the struct's shape and strides, and the memory that it describes.
unsafe fn check(found: ArrayStruct, owner: Owner) -> Result<Checked> {
    const { assert!(size_of::<isize>() == size_of::<i64>(), "a platform of 64 bits") }
    let ArrayStruct { two, nd, flags, .. } = found;
    if two != 2 || flags & HAS_DESCR != 0 {
        let got = if two == 2 { "a structured type".into() } else { format!("two = {two}") };
        let text = format!("expected the number two and a type of numbers, got {got}");
        return Err(Error::Buffer(text));
    }
    let ndim = check_ndim("array", nd)?;
    // SAFETY: the producer promises `nd` numbers, which the caller keeps.
    let shape = unsafe { read_numbers("shape", found.shape.cast(), ndim) }?;
    // SAFETY: as for the shape; NULL is C order.
    let byte_strides = unsafe { read_numbers("strides", found.strides.cast(), ndim) }?;
    let shape =
        shape.ok_or_else(|| Error::Buffer(format!("shape: expected {ndim} extents, got NULL")))?;
    let described = Described {
        address: found.data.addr(),
        shape,
        byte_strides,
        dtype: dtype(found)?,
        device: Device::CPU,
        readonly: flags & WRITEABLE == 0,
        owner,
    };
    // SAFETY: the memory lives as long as the object that describes it (NumPy's reference), which
    // the caller keeps.
    unsafe { Checked::from_described(described) }
}

/// The type, which has the same words as in a typestr.
fn dtype(found: ArrayStruct) -> Result<DType> {
    let native = found.flags & NOTSWAPPED != 0;
    let little = native == cfg!(target_endian = "little");
    let kind = char::from(found.typekind.to_ne_bytes()[0]);
    let order = if little { '<' } else { '>' };
    DType::from_typestr(&format!("{order}{kind}{}", found.itemsize))
}

//! NumPy's arrays without a buffer view: read from the array's own struct, and made by NumPy's own
//! function for C.
//!
//! A buffer view says the same, at the price of a text for the type and of a record of each view.
//! Arrays that this file cannot tell apart (other types, another byte order, unaligned items) are left
//! to the view.
//!
//! Source: ndarraytypes.h, `PyArrayObject_fields` and `_PyArray_Descr`. Both structs are part of
//! NumPy's ABI. Its number and the class are read once from NumPy's table for C, since anybody can
//! put another class into `numpy.ndarray`.

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
use std::{mem, ptr};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::interpreter::DropAttached;
use crate::layout::{Extents, Layout};
use crate::managed::{Checked, Described, Managed, Owner, check_ndim, read_numbers};
use crate::protocol::producer::is_plain_ndarray;
use crate::short_ways::short_ways;

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
pub(super) fn read(array: &Bound<'_, PyAny>) -> Result<Option<Checked>> {
    const { assert!(size_of::<isize>() == size_of::<i64>(), "a platform of 64 bits") }
    let Some((fields, number)) = plain_fields(array) else { return Ok(None) };
    let Some(dtype) = dtype(number) else { return Ok(None) };
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
        readonly: !is_writable(fields.flags),
        owner: Owner::new(DropAttached::new(array.clone().unbind())),
    };
    // SAFETY: an array keeps its memory, which the owner keeps.
    unsafe { Checked::from_described(described) }.map(Some)
}

/// The form of a plain array of NumPy's: all that dlfield knows of it but its address.
#[derive(Debug)]
pub(crate) struct ArrayForm {
    layout: Layout,
    number: c_int,
    writable: bool,
}

impl ArrayForm {
    /// The form of an array that was imported with this layout; `None` for an array that is not
    /// read from its struct, and for one that has changed since.
    pub(crate) fn new(array: &Bound<'_, PyAny>, layout: &Layout) -> Option<Self> {
        let (fields, number) = plain_fields(array)?;
        dtype(number)?;
        let writable = is_writable(fields.flags);
        let form = Self { layout: layout.clone(), number, writable };
        form.address_of(array).map(|_| form)
    }

    /// The address of an array of this form; `None` for any other object.
    #[inline]
    pub(crate) fn address_of(&self, array: &Bound<'_, PyAny>) -> Option<usize> {
        let (fields, number) = plain_fields(array)?;
        let ndim = usize::try_from(fields.nd).ok()?;
        let writable = is_writable(fields.flags);
        if ndim != self.layout.ndim() || number != self.number || writable != self.writable {
            return None;
        }
        // SAFETY: an array has nd extents, which are read here and now.
        let shape = unsafe { read_numbers("array shape", fields.dimensions.cast(), ndim) };
        // SAFETY: as for the extents.
        let strides = unsafe { read_numbers("array strides", fields.strides.cast(), ndim) };
        let same = shape.ok()?? == self.layout.shape()
            && strides.ok()?? == self.layout.byte_strides()
            && self.layout.lies_in_memory(fields.data.addr());
        same.then(|| fields.data.addr())
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// Shape and type of an array of exactly NumPy's class; `None` for one that this file does not read.
pub(crate) fn shape_and_dtype(array: &Bound<'_, PyAny>) -> Option<(Extents, DType)> {
    let (fields, number) = plain_fields(array)?;
    let ndim = usize::try_from(fields.nd).ok()?;
    // SAFETY: an array has nd extents, which are copied here and now.
    let shape = unsafe { read_numbers("array shape", fields.dimensions.cast(), ndim) };
    Some((shape.ok()??.into(), dtype(number)?))
}

/// The fields and the number of the type of an array of exactly NumPy's class, whose items are
/// aligned and in native byte order.
#[inline(always)]
fn plain_fields(array: &Bound<'_, PyAny>) -> Option<(ArrayFields, c_int)> {
    if !is_plain_ndarray(array) {
        return None;
    }
    let numpy = numpy(array.py()).filter(|numpy| numpy.class == array.get_type_ptr().addr())?;
    // SAFETY: an object of exactly the class that NumPy's own table names, in an ABI with this
    // struct; Python has told the size of the head (`read_table`).
    let fields: ArrayFields = unsafe { behind_head(array.as_ptr(), numpy.head) };
    // SAFETY: an array's descr is a dtype, of the same ABI; the head as above.
    let descr: DescrFields = unsafe { behind_head(fields.descr, numpy.head) };
    let native = matches!(u8::from_ne_bytes(descr.byteorder.to_ne_bytes()), b'=' | b'|');
    (native && fields.flags & ALIGNED != 0).then_some((fields, descr.type_num))
}

/// False also for an array that NumPy warns of writing, such as one of `broadcast_arrays`.
const fn is_writable(flags: c_int) -> bool {
    flags & (WRITEABLE | WARN_ON_WRITE) == WRITEABLE
}

/// True for an array that NumPy warns of writing: asking for a writable buffer is a warning.
pub(super) fn warns_of_writes(array: &Bound<'_, PyAny>) -> bool {
    is_plain_ndarray(array)
        && plain_fields(array).is_some_and(|(fields, _)| fields.flags & WARN_ON_WRITE != 0)
}

/// Copies the fields that follow the head of an object.
///
/// # Safety
/// `object` is alive, its head has `head` bytes, and `Fields` describes what follows.
unsafe fn behind_head<Fields: Copy>(object: *mut ffi::PyObject, head: usize) -> Fields {
    // SAFETY: the fields of an object follow its head, within the object.
    let fields = unsafe { object.byte_add(head) };
    // SAFETY: the caller knows what follows the head.
    unsafe { fields.cast::<Fields>().read() }
}

/// NumPy's numbers for types (`NPY_TYPES`); of two numbers for one type, the usual one first. dlfield
/// has no others, or looks closer at them.
const NUMBERS: [(c_int, DType); 16] = [
    (0, DType::Bool),
    (1, DType::Int8),
    (2, DType::UInt8),
    (3, DType::Int16),
    (4, DType::UInt16),
    (5, DType::Int32),
    (6, DType::UInt32),
    (7, LONG.0),
    (8, LONG.1),
    (9, DType::Int64),
    (10, DType::UInt64),
    (11, DType::Float32),
    (12, DType::Float64),
    (14, DType::Complex64),
    (15, DType::Complex128),
    (23, DType::Float16),
];

/// C's `long` and `unsigned long`.
const LONG: (DType, DType) = if size_of::<c_long>() == 8 {
    (DType::Int64, DType::UInt64)
} else {
    (DType::Int32, DType::UInt32)
};

fn dtype(number: c_int) -> Option<DType> {
    NUMBERS.iter().find(|known| known.0 == number).map(|known| known.1)
}

/// A new NumPy array over the memory of `base`, in the same axis order; `None` for a type, or a
/// NumPy, that this file does not know.
///
/// # Errors
/// The exception that NumPy raises.
///
/// # Safety
/// `base` keeps the memory of `managed`, which the host reaches, for as long as it lives.
pub(crate) unsafe fn array_over<'py>(
    base: &Bound<'py, PyAny>,
    managed: &Managed,
    readonly: bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (py, layout) = (base.py(), managed.layout());
    let number = NUMBERS.iter().find(|known| known.1 == managed.dtype()).map(|known| known.0);
    let Some((numpy, number)) = numpy(py).zip(number) else { return Ok(None) };
    let data = first_element(managed);
    let ndim = c_int::try_from(layout.ndim()).unwrap_or(0);
    let (shape, strides) = (layout.shape().as_ptr().cast(), layout.byte_strides().as_ptr().cast());
    let flags = if readonly { 0 } else { WRITEABLE };
    // SAFETY: a number of NumPy's own types, for which it has a dtype.
    let descr = unsafe { (numpy.descr_from_type)(number) };
    // SAFETY: NumPy's own class and dtype (whose reference it takes), ndim extents and strides, which
    // it copies, and memory that they describe.
    let array = unsafe {
        let class = ptr::with_exposed_provenance_mut(numpy.class);
        (numpy.new_from_descr)(class, descr, ndim, shape, strides, data, flags, ptr::null_mut())
    };
    // SAFETY: a new reference, or NULL with an exception.
    let array = unsafe { Bound::from_owned_ptr_or_err(py, array) }?;
    // SAFETY: a new array without a base, and a reference that it takes.
    let failed = unsafe { (numpy.set_base_object)(array.as_ptr(), base.clone().into_ptr()) };
    if failed != 0 { Err(PyErr::fetch(py)) } else { Ok(Some(array)) }
}

/// The memory of arrays without elements. NumPy allocates where it is given NULL, and reads one
/// element of an empty array in a masked copy that converts.
#[repr(align(64))]
struct Nothing(UnsafeCell<[u8; 64]>);

static NOTHING: Nothing = Nothing(UnsafeCell::new([0; 64]));

// SAFETY: dlfield neither reads nor writes it.
unsafe impl Sync for Nothing {}

/// The address that an array or a buffer over host memory has.
pub(super) fn first_element(managed: &Managed) -> *mut c_void {
    if managed.layout().size() == 0 { NOTHING.0.get().cast() } else { managed.data().cast() }
}

/// The entries of NumPy's table for C that are called here.
struct NumpyTable {
    /// The address of the class of arrays.
    class: usize,
    /// Bytes of the head of every object, which a stable ABI for free-threaded Python leaves open.
    head: usize,
    descr_from_type: DescrFromType,
    new_from_descr: NewFromDescr,
    set_base_object: SetBaseObject,
}

type DescrFromType = unsafe extern "C" fn(c_int) -> *mut ffi::PyObject;
type NewFromDescr = unsafe extern "C" fn(
    class: *mut ffi::PyTypeObject,
    descr: *mut ffi::PyObject,
    ndim: c_int,
    shape: *const isize,
    byte_strides: *const isize,
    data: *mut c_void,
    flags: c_int,
    like: *mut ffi::PyObject,
) -> *mut ffi::PyObject;
type SetBaseObject = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> c_int;

/// NumPy's table, if the NumPy that is installed has the structs above.
fn numpy(py: Python<'_>) -> Option<&'static NumpyTable> {
    static TABLE: PyOnceLock<Option<NumpyTable>> = PyOnceLock::new();
    TABLE.get_or_init(py, || read_table(py).ok().flatten()).as_ref()
}

fn read_table(py: Python<'_>) -> PyResult<Option<NumpyTable>> {
    let module = py.import("numpy._core._multiarray_umath")?;
    let capsule = module.getattr("_ARRAY_API")?.cast_into::<PyCapsule>()?;
    let table = capsule.pointer_checked(None)?.cast::<[*const c_void; 283]>();
    // SAFETY: the capsule points to NumPy's table, which lives as long as the process and has had
    // more entries than these since 1.7.
    let table = unsafe { table.as_ref() };
    let [number, _, class, ..] = *table;
    let (descr_from_type, new_from_descr, set_base_object) = (table[45], table[94], table[282]);
    // SAFETY: the first one is `unsigned int PyArray_GetNDArrayCVersion(void)` in every ABI.
    let abi = unsafe { mem::transmute::<*const c_void, extern "C" fn() -> c_uint>(number) };
    if abi() != ABI || !short_ways() {
        return Ok(None);
    }
    Ok(Some(NumpyTable {
        class: class.expose_provenance(), // `PyArray_Type`
        head: py.get_type::<PyAny>().getattr("__basicsize__")?.extract()?,
        // SAFETY: `PyArray_DescrFromType` of this ABI (__multiarray_api.h).
        descr_from_type: unsafe { mem::transmute::<*const c_void, DescrFromType>(descr_from_type) },
        // SAFETY: `PyArray_NewFromDescr`, as above.
        new_from_descr: unsafe { mem::transmute::<*const c_void, NewFromDescr>(new_from_descr) },
        // SAFETY: `PyArray_SetBaseObject`, as above.
        set_base_object: unsafe { mem::transmute::<*const c_void, SetBaseObject>(set_base_object) },
    }))
}

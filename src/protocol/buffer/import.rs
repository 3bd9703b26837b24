//! Consumer: from an object with a buffer to checked claims.

use std::ffi::{CStr, c_char};
use std::ops::Deref;
use std::ptr;
use std::sync::Arc;

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::{ffi, intern};

use super::ndarray;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result, quoted};
use crate::interpreter::{Inside, give_back, raised_by};
use crate::managed::{Checked, Described, check_ndim, read_numbers};
use crate::protocol::door::{Answer, Request};
use crate::protocol::producer::{Producer, Recognised};

/// The request of a consumer like NumPy: format, shape and strides, without indirection.
const WRITABLE: i32 = ffi::PyBUF_RECORDS;
const READ_ONLY: i32 = ffi::PyBUF_RECORDS_RO;
/// As `READ_ONLY`, of memory in C order alone: there are no strides to compute.
const IN_C_ORDER: i32 = ffi::PyBUF_ND | ffi::PyBUF_FORMAT;

/// A held buffer view, released once. It never moves, since exporters point into it.
pub(crate) struct PyView(Arc<HeldView>);

struct HeldView(ffi::Py_buffer);

// SAFETY: the view is only read after it was filled, and released with the interpreter attached.
unsafe impl Send for HeldView {}
// SAFETY: shared access only reads the filled view.
unsafe impl Sync for HeldView {}

/// Takes a view of an object with a buffer. Zero-copy.
///
/// If an object refuses its buffer (bfloat16 in JAX, device memory) and has `__dlpack__`, that door
/// is tried instead.
pub(in crate::protocol) fn import<'py>(
    obj: &Bound<'py, PyAny>,
    _: Request,
    known: Recognised,
) -> Answer<'py> {
    if let Some(claims) = ndarray::read(obj)? {
        return Ok(Some(claims.into()));
    }
    if !PyView::is_offered(obj) {
        return Ok(None);
    }
    let view = match known.producer {
        // All buffers of JAX are in C order; it refuses any other that it may have one day.
        Producer::Jax => match PyView::with_flags(obj, IN_C_ORDER) {
            Ok(view) if view.len > 0 => Ok(view),
            _ => PyView::with_flags(obj, READ_ONLY), // says all, or why it is refused
        },
        producer if producer.is_immutable() => PyView::with_flags(obj, READ_ONLY),
        _ => PyView::request(obj),
    };
    let refusal = match view {
        Ok(view) => return Ok(Some(view.check(None)?.into())),
        Err(refusal) => refusal,
    };
    let _inside = Inside::enter(obj.py());
    if let Some((integers, dtype)) = unnamed_items(obj)? {
        return Ok(Some(PyView::request(&integers)?.check(Some(dtype))?.into()));
    }
    if is_refusal(obj.py(), &refusal) && obj.hasattr(intern!(obj.py(), "__dlpack__"))? {
        return Ok(None);
    }
    Err(refusal.into())
}

fn is_refusal(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyBufferError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyTypeError>(py)
}

/// A NumPy array of an `ml_dtypes` type has no buffer, but a view of its bytes as integers does. A
/// scalar of such a type is copied.
fn unnamed_items<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyAny>, DType)>> {
    let py = obj.py();
    // Of others `view` may copy, as it does in JAX.
    let Some(array) = of_numpy(obj)? else { return Ok(None) };
    let name = array.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "name"))?;
    match name.extract::<String>().map(|name| DType::from_name(&name)) {
        Ok(Ok(dtype)) if dtype.format().is_none() => {
            let integers = format!("uint{}", 8 * dtype.itemsize());
            Ok(Some((array.call_method1(intern!(py, "view"), (integers,))?, dtype)))
        }
        _ => Ok(None),
    }
}

/// An array of NumPy's as it is, a scalar as an array that cannot be written; `None` for others.
fn of_numpy<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = obj.py();
    let numpy = py.import(intern!(py, "numpy"))?;
    if obj.is_instance(&numpy.getattr(intern!(py, "ndarray"))?)? {
        return Ok(Some(obj.clone()));
    }
    if !obj.is_instance(&numpy.getattr(intern!(py, "generic"))?)? {
        return Ok(None);
    }
    let array = numpy.call_method1(intern!(py, "array"), (obj,))?;
    array.call_method1(intern!(py, "setflags"), (false,))?;
    Ok(Some(array))
}

impl Deref for PyView {
    type Target = ffi::Py_buffer;

    fn deref(&self) -> &Self::Target {
        &self.0.0
    }
}

impl PyView {
    /// True if the class of `obj` has buffers.
    pub(crate) fn is_offered(obj: &Bound<'_, PyAny>) -> bool {
        // SAFETY: asks the type for its slot; any object will do.
        unsafe { ffi::PyObject_CheckBuffer(obj.as_ptr()) != 0 }
    }

    /// Asks `obj` for a writable view, or else for a read-only one.
    pub(crate) fn request(obj: &Bound<'_, PyAny>) -> PyResult<Self> {
        if ndarray::warns_of_writes(obj) {
            return Self::read_only(obj);
        }
        match Self::with_flags(obj, WRITABLE) {
            Err(refusal) if is_refusal(obj.py(), &refusal) => Self::read_only(obj),
            answer => answer,
        }
    }

    /// A view that counts as read-only, whatever it says itself.
    fn read_only(obj: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut view = Self::with_flags(obj, READ_ONLY)?;
        if let Some(held) = Arc::get_mut(&mut view.0) {
            held.0.readonly = 1;
        }
        Ok(view)
    }

    fn with_flags(obj: &Bound<'_, PyAny>, flags: i32) -> PyResult<Self> {
        let mut held = Arc::new(HeldView(ffi::Py_buffer::new()));
        let Some(place) = Arc::get_mut(&mut held) else {
            return Err(raised_by(obj.py(), "buffer"));
        };
        // SAFETY: an object with a buffer slot and room for a view, with the interpreter attached.
        if unsafe { ffi::PyObject_GetBuffer(obj.as_ptr(), &raw mut place.0, flags) } != 0 {
            place.0.obj = ptr::null_mut(); // there is nothing to release
            return Err(raised_by(obj.py(), "buffer"));
        }
        Ok(Self(held))
    }

    /// True if the bytes lie in C order without gaps.
    pub(crate) fn is_contiguous(&self) -> bool {
        // SAFETY: a filled view, only read.
        unsafe { ffi::PyBuffer_IsContiguous(&raw const **self, c_char::from_ne_bytes([b'C'])) != 0 }
    }

    /// Checks the view's claims. A `dtype` overrides the format, which is that of integers.
    fn check(self, dtype: Option<DType>) -> Result<Checked> {
        let ndim = check_ndim("buffer", self.ndim)?;
        let itemsize = usize::try_from(self.itemsize).ok().filter(|&size| size > 0);
        let itemsize = itemsize.ok_or_else(|| {
            let got = self.itemsize;
            Error::Buffer(format!("buffer itemsize: expected at least 1 byte, got {got}"))
        })?;
        let format = DType::from_format(self.format()?, itemsize)?;
        let dtype = dtype.unwrap_or(format);
        if dtype.itemsize() != itemsize {
            return Err(Error::Buffer(format!(
                "buffer: expected items of {} bytes for {dtype}, got a view with items of {itemsize}",
                dtype.itemsize()
            )));
        }
        self.refuse_suboffsets(ndim)?;
        let shape = self.numbers("buffer shape", self.shape, ndim)?.ok_or_else(|| {
            Error::Buffer(format!("buffer shape: expected {ndim} extents, got NULL"))
        })?;
        self.check_len(shape, itemsize)?;
        let described = Described {
            address: self.buf.addr(),
            // None is C order; ctypes gives none, though asked for them.
            byte_strides: self.numbers("buffer strides", self.strides, ndim)?,
            shape,
            dtype,
            device: Device::CPU,
            readonly: self.readonly != 0,
            owner: Arc::clone(&self.0).into(),
        };
        // SAFETY: an exporter keeps the memory of a view valid until it is released, which the
        // owner does when it is dropped (PEP 3118).
        unsafe { Checked::from_described(described) }
    }

    /// The format; NULL means unsigned bytes (PEP 3118).
    fn format(&self) -> Result<&str> {
        if self.format.is_null() {
            return Ok("B");
        }
        // SAFETY: not NULL, and a text that the exporter keeps while the view is held.
        let format = unsafe { CStr::from_ptr(self.format) };
        format.to_str().map_err(|_| {
            let shown = quoted(&format.to_string_lossy());
            Error::Buffer(format!("buffer format: expected ASCII, got {shown}"))
        })
    }

    /// `None` for NULL.
    fn numbers(&self, what: &str, from: *const isize, ndim: usize) -> Result<Option<&[i64]>> {
        const { assert!(size_of::<isize>() == size_of::<i64>(), "a platform of 64 bits") }
        // SAFETY: an exporter promises ndim numbers, which stay while the view is held (PEP 3118).
        unsafe { read_numbers(what, from.cast(), ndim) }
    }

    fn refuse_suboffsets(&self, ndim: usize) -> Result<()> {
        match self.numbers("buffer suboffsets", self.suboffsets, ndim)? {
            Some(offsets) if offsets.iter().any(|&offset| offset >= 0) => Err(Error::Buffer(
                "buffer: expected one block of memory, got rows behind pointers (suboffsets); copy \
                 it first"
                    .into(),
            )),
            _ => Ok(()),
        }
    }

    /// `len` is the product of the shape, also where strides leave gaps.
    fn check_len(&self, shape: &[i64], itemsize: usize) -> Result<()> {
        let item = i64::try_from(itemsize).ok();
        let bytes = shape.iter().fold(item, |bytes, &extent| bytes?.checked_mul(extent));
        if bytes.is_some() && bytes == i64::try_from(self.len).ok() {
            return Ok(());
        }
        Err(Error::Buffer(format!(
            "buffer: expected len {} to be the bytes of shape {shape:?} with items of {itemsize}, \
             got {}",
            self.len,
            bytes.map_or_else(|| "more than can be counted".into(), |bytes| bytes.to_string())
        )))
    }
}

impl Drop for HeldView {
    fn drop(&mut self) {
        let view = &raw mut self.0;
        let _leaks_at_the_end = give_back(|_| {
            // SAFETY: a filled view, or one without an owner, which is ignored; released once here,
            // with the interpreter attached.
            unsafe { ffi::PyBuffer_Release(view) };
        });
    }
}

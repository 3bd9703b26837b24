//! Consumer: from an object with a buffer to an [`Imported`].

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::Arc;

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::{ffi, intern};

use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Failure, Result};
use crate::layout::MAX_NDIM;
use crate::managed::{Described, Imported, Owner};
use crate::protocol::ImportRequest;
use crate::protocol::keep::{raised_by, undisturbed};

/// Everything a NumPy-like consumer wants: format, shape and strides, but no indirection.
const WRITABLE: i32 = ffi::PyBUF_RECORDS;
const READ_ONLY: i32 = ffi::PyBUF_RECORDS_RO;

/// A held buffer view, released once. It stays where it was filled: exporters point into it.
pub(crate) struct PyView(Arc<Held>);

struct Held {
    view: ffi::Py_buffer,
    filled: bool,
}

// SAFETY: the view is only read after it was filled, and released with the interpreter attached.
unsafe impl Send for Held {}
// SAFETY: as above.
unsafe impl Sync for Held {}

/// Takes a view of an object with a buffer. Zero-copy.
///
/// An object that has a buffer but refuses it (bfloat16 in JAX, device memory) may have a better
/// door: where it also has `__dlpack__`, this one does not count.
pub(in crate::protocol) fn import(
    obj: &Bound<'_, PyAny>,
    request: ImportRequest,
) -> std::result::Result<Option<Imported>, Failure> {
    if !PyView::is_offered(obj) {
        return Ok(None);
    }
    let view = if request.immutable { PyView::with_flags(obj, READ_ONLY) } else { PyView::of(obj) };
    match view {
        Ok(view) => Ok(Some(view.describe()?)),
        Err(refusal) => match unnamed_items(obj)? {
            Some((bytes, dtype)) => Ok(Some(PyView::of(&bytes)?.describe_as(Some(dtype))?)),
            None if has_other_door(obj)? && is_refusal(obj.py(), &refusal) => Ok(None),
            None => Err(refusal.into()),
        },
    }
}

fn is_refusal(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyBufferError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyTypeError>(py)
}

fn has_other_door(obj: &Bound<'_, PyAny>) -> PyResult<bool> {
    obj.hasattr(intern!(obj.py(), "__dlpack__"))
}

/// A NumPy array of an `ml_dtypes` type has no buffer, but a view of its bytes as integers does.
fn unnamed_items<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyAny>, DType)>> {
    let py = obj.py();
    // Of others `view` may copy, as it does in JAX.
    if !obj.is_instance(&py.import(intern!(py, "numpy"))?.getattr(intern!(py, "ndarray"))?)? {
        return Ok(None);
    }
    let (Some(dtype), Some(view)) =
        (obj.getattr_opt(intern!(py, "dtype"))?, obj.getattr_opt(intern!(py, "view"))?)
    else {
        return Ok(None);
    };
    let Some(name) = dtype.getattr_opt(intern!(py, "name"))? else {
        return Ok(None);
    };
    match name.extract::<String>().map(|name| DType::from_name(&name)) {
        Ok(Ok(dtype)) if dtype.format().is_none() => {
            Ok(Some((view.call1((format!("uint{}", 8 * dtype.itemsize()),))?, dtype)))
        }
        _ => Ok(None),
    }
}

impl PyView {
    /// Whether the class of `obj` has buffers at all.
    pub(crate) fn is_offered(obj: &Bound<'_, PyAny>) -> bool {
        // SAFETY: asks the type for its slot; any object will do.
        unsafe { ffi::PyObject_CheckBuffer(obj.as_ptr()) != 0 }
    }

    /// A writable view of `obj`, or a read-only one where it gives no other.
    ///
    /// # Errors
    /// What the object raises when asked for a read-only view.
    pub(crate) fn of(obj: &Bound<'_, PyAny>) -> PyResult<Self> {
        match Self::with_flags(obj, WRITABLE) {
            Err(refusal) if is_refusal(obj.py(), &refusal) => {
                let mut view = Self::with_flags(obj, READ_ONLY)?;
                if let Some(held) = Arc::get_mut(&mut view.0) {
                    held.view.readonly = 1; // as the refusal said, whatever the view says
                }
                Ok(view)
            }
            answer => answer,
        }
    }

    fn with_flags(obj: &Bound<'_, PyAny>, flags: i32) -> PyResult<Self> {
        let view = MaybeUninit::<ffi::Py_buffer>::zeroed();
        // SAFETY: NULL and 0 are values of every field.
        let mut held = Arc::new(Held { view: unsafe { view.assume_init() }, filled: false });
        let Some(place) = Arc::get_mut(&mut held) else {
            return Err(raised_by(obj.py(), "buffer"));
        };
        // SAFETY: an object with a buffer slot and room for a view, with the interpreter attached.
        if unsafe { ffi::PyObject_GetBuffer(obj.as_ptr(), &raw mut place.view, flags) } != 0 {
            return Err(raised_by(obj.py(), "buffer"));
        }
        place.filled = true;
        Ok(Self(held))
    }

    /// First element, as a number.
    pub(crate) fn address(&self) -> usize {
        self.0.view.buf.addr()
    }

    /// Bytes of all elements.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.0.view.len).unwrap_or(0)
    }

    pub(crate) fn readonly(&self) -> bool {
        self.0.view.readonly != 0
    }

    /// Whether the bytes lie in C order without gaps.
    pub(crate) fn is_contiguous(&self) -> bool {
        // SAFETY: a filled view, only read.
        unsafe {
            ffi::PyBuffer_IsContiguous(
                &raw const self.0.view,
                std::ffi::c_char::from_ne_bytes([b'C']),
            ) != 0
        }
    }

    fn describe(self) -> Result<Imported> {
        self.describe_as(None)
    }

    /// The view's claims; `dtype` where it is known better than by the format.
    fn describe_as(self, dtype: Option<DType>) -> Result<Imported> {
        let ndim = self.checked_ndim()?;
        let itemsize = usize::try_from(self.0.view.itemsize)
            .ok()
            .filter(|&size| size > 0)
            .ok_or_else(|| {
                Error::Buffer(format!(
                    "buffer itemsize: expected at least 1 byte, got {}",
                    self.0.view.itemsize
                ))
            })?;
        let format = DType::from_format(self.format()?, itemsize)?;
        self.refuse_suboffsets(ndim)?;
        let shape = self.numbers("shape", self.0.view.shape, ndim)?.ok_or_else(|| {
            Error::Buffer(format!("buffer shape: expected {ndim} extents, got NULL"))
        })?;
        self.check_len(shape, itemsize)?;
        let described = Described {
            address: self.address(),
            // None is C order; ctypes gives none, though asked for them.
            byte_strides: self.numbers("strides", self.0.view.strides, ndim)?,
            shape,
            dtype: named_as(dtype.unwrap_or(format), itemsize)?,
            device: Device::CPU,
            readonly: self.readonly(),
            owner: Arc::clone(&self.0) as Owner,
        };
        // SAFETY: an exporter keeps the memory of a view valid until it is released, which the
        // owner does when it is dropped (PEP 3118).
        Ok(unsafe { Imported::from_described(described) })
    }

    fn checked_ndim(&self) -> Result<usize> {
        usize::try_from(self.0.view.ndim).ok().filter(|&ndim| ndim <= MAX_NDIM).ok_or_else(|| {
            Error::Buffer(format!(
                "buffer ndim: expected 0 to {MAX_NDIM}, got {}",
                self.0.view.ndim
            ))
        })
    }

    /// No format stands for unsigned bytes (PEP 3118).
    fn format(&self) -> Result<&str> {
        if self.0.view.format.is_null() {
            return Ok("B");
        }
        // SAFETY: not NULL, and a text that the exporter keeps while the view is held.
        let format = unsafe { CStr::from_ptr(self.0.view.format) };
        format.to_str().map_err(|_| {
            let shown = format.to_string_lossy();
            Error::Buffer(format!("buffer format: expected ASCII, got {shown:?}"))
        })
    }

    /// `None` for NULL.
    fn numbers(&self, what: &str, from: *const isize, ndim: usize) -> Result<Option<&[i64]>> {
        const { assert!(size_of::<isize>() == size_of::<i64>(), "a platform of 64 bits") }
        if ndim == 0 {
            return Ok(Some(&[]));
        }
        if from.is_null() {
            return Ok(None);
        }
        if !from.is_aligned() {
            return Err(Error::Buffer(format!(
                "buffer {what}: expected aligned numbers, got {from:p}"
            )));
        }
        // SAFETY: not NULL, aligned, at most MAX_NDIM; the exporter promises ndim numbers.
        Ok(Some(unsafe { std::slice::from_raw_parts(from.cast::<i64>(), ndim) }))
    }

    fn refuse_suboffsets(&self, ndim: usize) -> Result<()> {
        match self.numbers("suboffsets", self.0.view.suboffsets, ndim)? {
            Some(offsets) if offsets.iter().any(|&offset| offset >= 0) => Err(Error::Buffer(
                "buffer: expected one block of memory, got rows behind pointers (suboffsets); copy it first".into(),
            )),
            _ => Ok(()),
        }
    }

    /// `len` is the product of the shape, also where strides leave gaps.
    fn check_len(&self, shape: &[i64], itemsize: usize) -> Result<()> {
        let item = i64::try_from(itemsize).ok();
        let bytes = shape.iter().fold(item, |bytes, &extent| bytes?.checked_mul(extent));
        if bytes.is_some() && bytes == i64::try_from(self.0.view.len).ok() {
            return Ok(());
        }
        Err(Error::Buffer(format!(
            "buffer: expected len {} to be the bytes of shape {shape:?} with items of {itemsize}, got another number",
            self.0.view.len
        )))
    }
}

/// The bytes of a type without a format came as integers, which a foreign `view` method made.
fn named_as(dtype: DType, itemsize: usize) -> Result<DType> {
    if dtype.itemsize() == itemsize {
        return Ok(dtype);
    }
    Err(Error::Buffer(format!(
        "buffer: expected items of {} bytes for {dtype}, got a view with items of {itemsize}",
        dtype.itemsize()
    )))
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.filled {
            return;
        }
        let view = &raw mut self.view;
        // After the interpreter is gone nobody can release the view: it leaks with its exporter.
        let _ = Python::try_attach(|py| {
            undisturbed(py, || {
                // SAFETY: a filled view, released once here, with the interpreter attached.
                unsafe { ffi::PyBuffer_Release(view) };
            });
        });
    }
}

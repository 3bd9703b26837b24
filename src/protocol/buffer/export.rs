//! Producer: from a [`Managed`] to a buffer view.

use std::ffi::c_int;
use std::ptr;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::ndarray::first_element;
use crate::dtype::DType;
use crate::interpreter::InObject;
use crate::managed::Managed;

/// Fills `view` with `managed`'s memory, owned by `exporter`. Copies nothing.
///
/// # Errors
/// `BufferError` if the consumer asks for writable or contiguous memory and this is not, or if PEP
/// 3118 cannot name the type.
///
/// # Safety
/// `view` points to a `Py_buffer` that is being filled (the `bf_getbuffer` slot), and `exporter`
/// keeps the memory of `managed`, and its layout, for as long as it lives.
pub(crate) unsafe fn fill_view(
    exporter: &Bound<'_, PyAny>,
    managed: &Managed,
    readonly: bool,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("buffer: expected a view to fill, got NULL"));
    }
    // SAFETY: not NULL; the caller gives room for a view, whose fields are plain values.
    let view = unsafe { &mut *view };
    view.obj = ptr::null_mut(); // as a failed request must leave it
    *view = filled(managed, readonly, flags)?;
    view.obj = exporter.clone().into_ptr(); // a new reference, which the view owns
    Ok(())
}

fn filled(managed: &Managed, readonly: bool, flags: c_int) -> PyResult<ffi::Py_buffer> {
    let asked = |flag: c_int| flags & flag == flag;
    check_request(managed, readonly, asked)?;
    let dtype = managed.dtype();
    let format = dtype.format().ok_or_else(|| {
        PyBufferError::new_err(format!(
            "buffer: expected a type that PEP 3118 can name, got {dtype}; use to_numpy() or DLPack"
        ))
    })?;
    let layout = managed.layout();
    // The view points to the layout's own numbers, which never change; consumers may only read them
    // (Python's documentation of `Py_buffer`, "shape" and "strides").
    const { assert!(size_of::<isize>() == size_of::<i64>(), "a platform of 64 bits") }
    let shape = layout.shape().as_ptr().cast_mut().cast::<isize>();
    let strides = layout.shown_strides().as_ptr().cast_mut().cast::<isize>();
    // Without a shape the view is of plain bytes: consumers read as many extents as it has
    // dimensions. NumPy says 0 too.
    let ndim = if asked(ffi::PyBUF_ND) { layout.ndim() } else { 0 };
    Ok(ffi::Py_buffer {
        buf: first_element(managed), // consumers take NULL for missing memory
        obj: ptr::null_mut(),
        len: isize::try_from(layout.nbytes()).unwrap_or(0),
        itemsize: isize::try_from(layout.itemsize()).unwrap_or(1),
        readonly: c_int::from(readonly),
        ndim: c_int::try_from(ndim).unwrap_or(0),
        format: if asked(ffi::PyBUF_FORMAT) { format.as_ptr().cast_mut() } else { ptr::null_mut() },
        shape: if ndim > 0 { shape } else { ptr::null_mut() },
        strides: if ndim > 0 && asked(ffi::PyBUF_STRIDES) { strides } else { ptr::null_mut() },
        suboffsets: ptr::null_mut(),
        internal: ptr::null_mut(),
    })
}

fn check_request(managed: &Managed, readonly: bool, asked: impl Fn(c_int) -> bool) -> PyResult<()> {
    let (c, f) = (managed.layout().is_c_contiguous(), managed.layout().is_f_contiguous());
    let (expected, got) = if asked(ffi::PyBUF_WRITABLE) && readonly {
        ("writable memory", "a read-only storage; copy it first")
    } else if !asked(ffi::PyBUF_STRIDES) && !c {
        ("a consumer that asks for strides", "one that takes C order only; pass a copy")
    } else if asked(ffi::PyBUF_C_CONTIGUOUS) && !c {
        ("C-contiguous memory", "a field in another order; pass a copy")
    } else if asked(ffi::PyBUF_F_CONTIGUOUS) && !f {
        ("Fortran-contiguous memory", "a field in another order; pass a copy")
    } else if asked(ffi::PyBUF_ANY_CONTIGUOUS) && !c && !f {
        ("contiguous memory", "a field with gaps or permuted axes; pass a copy")
    } else {
        return Ok(());
    };
    Err(PyBufferError::new_err(format!("buffer: expected {expected}, got {got}")))
}

/// A buffer over a field's memory for one consumer, with its own read-only flag.
///
/// Items of a type without a format become unsigned integers of the same size.
#[pyclass(frozen, module = "dlfield._core")]
pub(crate) struct ByteView {
    managed: InObject<Managed>,
    readonly: bool,
}

impl ByteView {
    /// Makes a buffer over `managed` that `readonly` alone makes read-only.
    pub(crate) fn new(managed: Managed, readonly: bool) -> PyResult<Self> {
        managed.device().check_on_host()?;
        let managed = match (managed.dtype().format(), managed.dtype().itemsize()) {
            (Some(_), _) => managed,
            (None, 2) => managed.reinterpret(DType::UInt16)?,
            (None, _) => managed.reinterpret(DType::UInt8)?,
        };
        // SAFETY: a field of a class of Python's.
        Ok(Self { managed: unsafe { InObject::new(managed) }, readonly })
    }
}

#[pymethods]
impl ByteView {
    /// # Safety
    /// The `bf_getbuffer` slot.
    unsafe fn __getbuffer__(
        slf: &Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let this = slf.get();
        // SAFETY: Python calls the slot with room for a view; the object owns its Managed.
        unsafe { fill_view(slf.as_any(), &this.managed, this.readonly, view, flags) }
    }
}

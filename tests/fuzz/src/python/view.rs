//! An exporter of PEP 3118 whose view says what it was given.

use std::ffi::{CString, c_int};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

use arbitrary::{Arbitrary, Result, Unstructured};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::claims::Claims;

/// Faults of a view besides its claims. Most views have none.
#[derive(Debug, Clone)]
pub struct Lies {
    length: Option<i64>,
    itemsize: Option<i64>,
    ndim: Option<c_int>,
    suboffsets: Option<Vec<i64>>,
    without_format: bool,
    without_shape: bool,
    refused: bool,
}

impl<'a> Arbitrary<'a> for Lies {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        let any = input.ratio(1, 4)?;
        let mut lies = || Ok(any && input.ratio(1, 4)?);
        let [length, itemsize, ndim, suboffsets] = [lies()?, lies()?, lies()?, lies()?];
        let [without_format, without_shape, refused] = [lies()?, lies()?, lies()?];
        Ok(Self {
            length: length.then(|| input.arbitrary()).transpose()?,
            itemsize: itemsize.then(|| input.arbitrary()).transpose()?,
            // More would be read beyond the numbers that are there, by any consumer.
            ndim: ndim.then(|| input.int_in_range(-2..=0)).transpose()?,
            suboffsets: suboffsets.then(|| input.arbitrary()).transpose()?,
            without_format,
            without_shape,
            refused,
        })
    }
}

impl Lies {
    /// True if no consumer can believe a view of these claims that says this.
    #[must_use]
    pub fn contradict(&self, claims: &Claims) -> bool {
        let bytes = claims.bytes();
        let wrong_length = self.length.is_some_and(|length| Some(length) != bytes)
            && !self.without_shape
            && self.ndim.is_none()
            && self.itemsize.is_none();
        let behind_pointers =
            self.suboffsets.iter().flatten().take(claims.shape.len()).any(|&offset| offset >= 0);
        let wrong_ndim = self.ndim.is_some_and(|ndim| ndim < 0);
        self.refused || wrong_length || wrong_ndim || (behind_pointers && self.ndim.is_none())
    }

    #[must_use]
    pub fn are_none(&self) -> bool {
        let told = self.length.is_some() || self.itemsize.is_some() || self.ndim.is_some();
        let left_out = self.without_format || self.without_shape || self.refused;
        !told && !left_out && self.suboffsets.is_none()
    }
}

/// An exporter, which keeps what its views point to.
#[pyclass(frozen)]
#[derive(Debug)]
pub struct View {
    claims: Claims,
    lies: Lies,
    format: CString,
    strides: Vec<i64>,
    suboffsets: Option<Vec<i64>>,
    pub taken: AtomicU32,
    pub released: AtomicU32,
}

impl View {
    /// `None` for strides that no view could point to.
    #[must_use]
    pub fn new(claims: Claims, lies: Lies) -> Option<Self> {
        let strides = claims.narrow_strides()?;
        let format = CString::new(claims.format.clone()).ok()?;
        let longer = |mut all: Vec<i64>| {
            all.resize(claims.shape.len(), -1);
            all
        };
        let suboffsets = lies.suboffsets.clone().map(longer);
        let (taken, released) = Default::default();
        Some(Self { claims, lies, format, strides, suboffsets, taken, released })
    }

    fn length(&self) -> i64 {
        let elements = self.claims.shape.iter().fold(1_i64, |all, &one| all.wrapping_mul(one));
        self.lies.length.unwrap_or(elements.wrapping_mul(self.claims.itemsize))
    }
}

#[pymethods]
impl View {
    /// # Safety
    /// The `bf_getbuffer` slot.
    unsafe fn __getbuffer__(
        slf: &Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        _flags: c_int,
    ) -> PyResult<()> {
        let this = slf.get();
        if this.lies.refused {
            return Err(PyBufferError::new_err("not today"));
        }
        this.taken.fetch_add(1, Ordering::Relaxed);
        let shape = if this.lies.without_shape { null_mut() } else { numbers(&this.claims.shape) };
        let ndim = c_int::try_from(this.claims.shape.len()).expect("few axes");
        let address = usize::try_from(this.claims.address).unwrap_or(0);
        let filled = ffi::Py_buffer {
            buf: std::ptr::with_exposed_provenance_mut(address),
            obj: slf.clone().into_ptr(),
            len: size(this.length()),
            itemsize: size(this.lies.itemsize.unwrap_or(this.claims.itemsize)),
            readonly: this.claims.readonly.into(),
            ndim: this.lies.ndim.unwrap_or(ndim),
            format: if this.lies.without_format {
                null_mut()
            } else {
                this.format.as_ptr().cast_mut()
            },
            shape,
            strides: numbers(&this.strides),
            suboffsets: this.suboffsets.as_deref().map_or(null_mut(), numbers),
            internal: null_mut(),
        };
        // SAFETY: Python calls the slot with room for a view.
        unsafe { view.write(filled) };
        Ok(())
    }

    /// # Safety
    /// The `bf_releasebuffer` slot.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.released.fetch_add(1, Ordering::Relaxed);
    }
}

fn numbers(all: &[i64]) -> *mut ffi::Py_ssize_t {
    all.as_ptr().cast_mut().cast()
}

fn size(number: i64) -> ffi::Py_ssize_t {
    number.try_into().expect("a platform of 64 bits")
}

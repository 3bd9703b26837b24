//! Door: `__array_interface__`, version 3, for host memory.
//!
//! Source: NumPy's reference, "The array interface protocol". The dict has no owner: an import
//! keeps the exporting *object* alive, and cannot protect from one that frees its memory earlier.
//! The attribute is read once. Stricter than NumPy: a mask, a contradictory `descr`, object
//! pointers and buffers too small for the shape are refused instead of ignored.

use std::sync::Arc;

use pyo3::exceptions::{PyKeyError, PyOverflowError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyMapping, PyString, PyTuple};

use super::ImportRequest;
use super::buffer::PyView;
use super::keep::Keep;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Failure};
use crate::layout::{Extents, Layout, MAX_NDIM};
use crate::managed::{Described, Imported, Managed, Owner};

/// Reads the interface of an object. Zero-copy; holds the object.
pub(in crate::protocol) fn import(
    obj: &Bound<'_, PyAny>,
    _request: ImportRequest,
) -> Result<Option<Imported>, Failure> {
    let Some(interface) = obj.getattr_opt(intern!(obj.py(), "__array_interface__"))? else {
        return Ok(None);
    };
    let interface = interface
        .cast_into::<PyMapping>()
        .map_err(|error| wrong_type("__array_interface__", "a dict", &error.into_inner()))?;
    read(obj, &interface, Device::CPU).map(Some)
}

/// Reads what `obj` says about its memory on `device`, and holds it.
pub(in crate::protocol) fn read(
    obj: &Bound<'_, PyAny>,
    interface: &Bound<'_, PyMapping>,
    device: Device,
) -> Result<Imported, Failure> {
    let typestr = required(interface, "typestr")?;
    let typestr =
        typestr.cast::<PyString>().map_err(|_| wrong_type("typestr", "a text", &typestr))?;
    let dtype = DType::from_typestr(&typestr.to_cow()?)?;
    refuse_extras(interface, &typestr.to_cow()?)?;
    let shape = ints("shape", &required(interface, "shape")?)?;
    check_shape(&shape, dtype)?;
    let strides =
        optional(interface, "strides")?.map(|strides| ints("strides", &strides)).transpose()?;
    if strides.as_ref().is_some_and(|strides| strides.len() != shape.len()) {
        return Err(Error::Argument(
            "strides: expected one for each extent of shape, got another number".into(),
        )
        .into());
    }
    Source { shape, strides, dtype, device }.locate(obj, interface)
}

/// A shape that cannot be right is a wrong value here, not a wrong buffer.
fn check_shape(shape: &Extents, dtype: DType) -> Result<(), Error> {
    Layout::compact(shape.clone(), dtype.itemsize()).map(|_| ()).map_err(|error| match error {
        Error::Buffer(text) => Error::Argument(text),
        other => other,
    })
}

struct Source {
    shape: Extents,
    strides: Option<Extents>,
    dtype: DType,
    device: Device,
}

impl Source {
    /// Follows `data`: a pair of address and flag, or an object with a buffer.
    fn locate(
        self,
        obj: &Bound<'_, PyAny>,
        interface: &Bound<'_, PyMapping>,
    ) -> Result<Imported, Failure> {
        let keep: Owner = Arc::new(Keep::new(obj.clone().unbind()));
        let data = required(interface, "data")?;
        if let Ok(pair) = data.cast::<PyTuple>() {
            let (address, readonly) = pointer(pair)?;
            return Ok(self.describe(address, readonly, keep));
        }
        let holder = if data.is_none() { obj } else { &data };
        let on_host = self.device.is_host(); // where alone there are buffers
        if !on_host || !PyView::is_offered(holder) {
            let or_buffer = if on_host { " or an object with a buffer" } else { "" };
            let expected = &format!("a pair (address, read-only){or_buffer}");
            let none = data.is_none();
            return Err(
                if none { missing("data") } else { wrong_type("data", expected, &data) }.into()
            );
        }
        let view = PyView::of(holder)?;
        let offset =
            optional(interface, "offset")?.map_or(Ok(0), |offset| whole("offset", &offset))?;
        let readonly = view.readonly();
        let address = self.inside(&view, offset)?;
        Ok(self.describe(address, readonly, Arc::new((keep, view))))
    }

    /// The address of the first element in a buffer that holds all of them.
    fn inside(&self, view: &PyView, offset: i64) -> Result<usize, Failure> {
        let layout = match &self.strides {
            None => Layout::compact(self.shape.clone(), self.dtype.itemsize())?,
            // Strides in bytes are strides of one-byte elements, but for the last item's bytes.
            Some(strides) => Layout::new(self.shape.clone(), strides.clone(), 1)?,
        };
        let span = layout.span();
        let tail = if self.strides.is_some() && !span.is_empty() {
            self.dtype.itemsize().saturating_sub(1)
        } else {
            0
        };
        let (low, high) = (
            i128::from(offset) + span.low as i128,
            i128::from(offset) + span.high as i128 + tail as i128,
        );
        if low < 0 || high > view.len() as i128 || !view.is_contiguous() {
            return Err(Error::Buffer(format!(
                "data: expected a contiguous buffer with bytes {low} to {high} for this shape, strides and offset, got {} bytes",
                view.len()
            )).into());
        }
        usize::try_from(offset).map(|offset| view.address().wrapping_add(offset)).map_err(|_| {
            Error::Argument(format!("offset: expected at least 0, got {offset}")).into()
        })
    }

    fn describe(self, address: usize, readonly: bool, owner: Owner) -> Imported {
        let Self { shape, strides, dtype, device } = self;
        let (shape, byte_strides) = (shape.as_slice(), strides.as_deref());
        let described = Described { address, shape, byte_strides, dtype, device, readonly, owner };
        // SAFETY: the protocol's promise: the memory lives as long as the object that shows it,
        // which the owner holds (and for a buffer, the view that holds it).
        unsafe { Imported::from_described(described) }
    }
}

/// A mask or a structured description would be ignored, and the values misread.
fn refuse_extras(interface: &Bound<'_, PyMapping>, typestr: &str) -> Result<(), Failure> {
    if optional(interface, "mask")?.is_some() {
        return Err(Error::Buffer(
            "mask: expected none, got one; fill the masked values first".into(),
        )
        .into());
    }
    let Some(descr) = optional(interface, "descr")? else {
        return Ok(());
    };
    let native = typestr.replace('=', if cfg!(target_endian = "little") { "<" } else { ">" });
    if descr.eq([("", typestr)])? || descr.eq([("", native)])? {
        return Ok(());
    }
    Err(Error::Buffer(format!(
        "descr: expected [('', '{typestr}')], got {}; structured types are not supported",
        descr.repr()?
    ))
    .into())
}

fn pointer(pair: &Bound<'_, PyTuple>) -> Result<(usize, bool), Failure> {
    let wrong = || wrong_type("data", "a pair (address, read-only)", pair);
    if pair.len() != 2 {
        return Err(wrong().into());
    }
    let (address, readonly) = (pair.get_item(0)?, pair.get_item(1)?);
    if !address.is_instance_of::<PyInt>() || address.is_instance_of::<PyBool>() {
        return Err(wrong().into());
    }
    let number = address
        .extract::<usize>()
        .map_err(|_| Error::Argument(format!("data: expected an address, got {address}")))?;
    Ok((number, readonly.is_truthy()?))
}

fn ints(what: &str, tuple: &Bound<'_, PyAny>) -> Result<Extents, Failure> {
    let tuple = tuple.cast::<PyTuple>().map_err(|_| wrong_type(what, "a tuple of ints", tuple))?;
    if tuple.len() > MAX_NDIM {
        return Err(Error::Argument(format!(
            "{what}: expected at most {MAX_NDIM} dimensions, got {}",
            tuple.len()
        ))
        .into());
    }
    tuple.iter().map(|number| whole(what, &number)).collect()
}

fn whole(what: &str, number: &Bound<'_, PyAny>) -> Result<i64, Failure> {
    if number.is_instance_of::<PyBool>() || !number.hasattr(intern!(number.py(), "__index__"))? {
        return Err(wrong_type(what, "an int", number).into());
    }
    number.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(number.py()) {
            Error::Argument(format!("{what}: expected an int of 64 bits, got {number}")).into()
        } else {
            error.into() // what its __index__ raised
        }
    })
}

fn required<'py>(
    interface: &Bound<'py, PyMapping>,
    key: &str,
) -> Result<Bound<'py, PyAny>, Failure> {
    interface.get_item(key).map_err(|error| absent_or(interface.py(), error, key))
}

fn optional<'py>(
    interface: &Bound<'py, PyMapping>,
    key: &str,
) -> Result<Option<Bound<'py, PyAny>>, Failure> {
    if !interface.contains(key)? {
        return Ok(None);
    }
    Ok(Some(interface.get_item(key)?).filter(|value| !value.is_none()))
}

/// A missing key is a KeyError; whatever else a mapping raises is its own.
fn absent_or(py: Python<'_>, error: PyErr, key: &str) -> Failure {
    if error.is_instance_of::<PyKeyError>(py) { missing(key).into() } else { error.into() }
}

fn missing(key: &str) -> Error {
    Error::Argument(format!("array interface: expected the key '{key}', got none that can be used"))
}

fn wrong_type(what: &str, expected: &str, got: &Bound<'_, PyAny>) -> Error {
    let got = got.repr().map_or_else(|_| "?".into(), |repr| repr.to_string());
    Error::Type(format!("{what}: expected {expected}, got {got}"))
}

/// The interface of a field, with explicit strides; `None` for types it cannot name.
///
/// # Errors
/// Only what building a dict may raise.
pub(crate) fn export<'py>(
    py: Python<'py>,
    managed: &Managed,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(typestr) = managed.dtype().typestr() else {
        return Ok(None);
    };
    let interface = PyDict::new(py);
    let readonly = managed.readonly();
    interface.set_item("version", 3)?;
    interface.set_item("typestr", typestr)?;
    interface.set_item("shape", PyTuple::new(py, managed.layout().shape())?)?;
    interface.set_item("strides", PyTuple::new(py, managed.layout().byte_strides())?)?;
    interface.set_item("data", (managed.address(), readonly))?;
    Ok(Some(interface))
}

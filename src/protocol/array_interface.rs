//! Door: `__array_interface__`, version 3, for host memory.
//!
//! Source: NumPy's reference, "The array interface protocol". The dict has no owner: an import
//! keeps the exporting *object* alive, and cannot protect from one that frees its memory earlier.
//! The attribute is read once. Stricter than NumPy: a mask, a contradictory `descr`, object
//! pointers and buffers too small for the shape are refused instead of ignored.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyMapping, PyString, PyTuple};

use super::buffer::PyView;
use super::door::{Answer, Request};
use super::producer::Recognised;
use super::read::{entry, int, ints, mapping, shown, wrong_type};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Failure};
use crate::interpreter::DropAttached;
use crate::layout::{Extents, Layout, Span};
use crate::managed::{Checked, Described, Managed, Owner};

/// Reads the interface of an object. Zero-copy; holds the object.
pub(in crate::protocol) fn import<'py>(
    obj: &Bound<'py, PyAny>,
    _: Request,
    _: Recognised,
) -> Answer<'py> {
    let Some(interface) = obj.getattr_opt(intern!(obj.py(), "__array_interface__"))? else {
        return Ok(None);
    };
    let interface =
        mapping("a dict", interface).map_err(|error| error.about("__array_interface__"))?;
    Ok(Some(read(obj, "__array_interface__", &interface, Device::CPU)?.into()))
}

/// Reads what `obj` says about its memory on `device`, and holds it. Messages about missing keys call
/// the interface `protocol`.
pub(in crate::protocol) fn read(
    obj: &Bound<'_, PyAny>,
    protocol: &str,
    interface: &Bound<'_, PyMapping>,
    device: Device,
) -> Result<Checked, Failure> {
    let missing = |key: &str| {
        let text = format!("{protocol}: expected the key '{key}', got none that can be used");
        Failure::from(Error::Argument(text))
    };
    let required = |key: &str| -> Result<Bound<'_, PyAny>, Failure> {
        if interface.contains(key)? { Ok(interface.get_item(key)?) } else { Err(missing(key)) }
    };
    let typestr = required("typestr")?;
    let typestr =
        typestr.cast::<PyString>().map_err(|_| wrong_type("typestr", "a text", &typestr))?;
    let dtype = DType::from_typestr(&typestr.to_cow()?)?;
    refuse_extras(interface, &typestr.to_cow()?)?;
    let shape = tuple_of_ints("shape", &required("shape")?)?;
    check_shape(&shape, dtype)?;
    let strides = entry(interface, "strides")?;
    let strides = strides.map(|strides| tuple_of_ints("strides", &strides)).transpose()?;
    if strides.as_ref().is_some_and(|strides| strides.len() != shape.len()) {
        return Err(Error::Argument(format!(
            "strides: expected one for each extent of shape {:?}, got {}",
            shape.as_slice(),
            strides.map_or(0, |strides| strides.len())
        ))
        .into());
    }
    let layout = || match &strides {
        None => Layout::compact(shape.clone(), dtype.itemsize()),
        Some(strides) => Layout::from_byte_strides(&shape, strides, dtype.itemsize()),
    };
    let data = required("data")?;
    let place = follow(obj, &data, interface, device, layout)?;
    let (address, readonly, owner) = place.ok_or_else(|| missing("data"))?;
    let (shape, byte_strides) = (shape.as_slice(), strides.as_deref());
    let described = Described { address, shape, byte_strides, dtype, device, readonly, owner };
    // SAFETY: the memory lives as long as the object that describes it (NumPy's reference), or as
    // the view of a buffer; the owner holds both.
    Ok(unsafe { Checked::from_described(described) }?)
}

/// Checks the shape: here an impossible one is a wrong value, not a wrong buffer.
fn check_shape(shape: &Extents, dtype: DType) -> Result<(), Error> {
    Layout::compact(shape.clone(), dtype.itemsize()).map(|_| ()).map_err(|error| match error {
        Error::Buffer(text) => Error::Argument(text),
        other => other,
    })
}

/// Follows `data`: a pair of address and flag, or an object with a buffer, which holds all elements
/// of the layout. Returns address and flag, and what keeps the memory; `None` if `data` says nothing
/// and the object has no buffer.
fn follow(
    obj: &Bound<'_, PyAny>,
    data: &Bound<'_, PyAny>,
    interface: &Bound<'_, PyMapping>,
    device: Device,
    layout: impl FnOnce() -> Result<Layout, Error>,
) -> Result<Option<(usize, bool, Owner)>, Failure> {
    let keep = DropAttached::new(obj.clone().unbind());
    if let Ok(pair) = data.cast::<PyTuple>() {
        let (address, readonly) = pointer(pair)?;
        return Ok(Some((address, readonly, Owner::new(keep))));
    }
    let holder = if data.is_none() { obj } else { data };
    let on_host = device.is_host(); // only host memory has buffers
    if !on_host || !PyView::is_offered(holder) {
        if data.is_none() {
            return Ok(None);
        }
        let or_buffer = if on_host { " or an object with a buffer" } else { "" };
        let expected = format!("a pair (address, read-only){or_buffer}");
        return Err(wrong_type("data", &expected, data).into());
    }
    let view = PyView::request(holder)?;
    let offset = entry(interface, "offset")?.map_or(Ok(0), |offset| int("offset", &offset))?;
    check_inside(&view, offset, layout()?.span())?;
    let offset = usize::try_from(offset)
        .map_err(|_| Error::Argument(format!("offset: expected at least 0, got {offset}")))?;
    let (address, readonly) = (view.buf.addr().wrapping_add(offset), view.readonly != 0);
    Ok(Some((address, readonly, Owner::new((keep, view)))))
}

/// Refuses a buffer that is too small for the elements.
fn check_inside(view: &PyView, offset: i64, span: Span) -> Result<(), Error> {
    let [low, high] = [span.low, span.high].map(|place| i128::from(offset) + place as i128);
    if low >= 0 && high <= view.len as i128 && view.is_contiguous() {
        return Ok(());
    }
    Err(Error::Buffer(format!(
        "data: expected a contiguous buffer with bytes {low} to {high} for this shape, strides and \
         offset, got {} bytes",
        view.len
    )))
}

/// A mask or a structured description would be ignored, and the values misread.
fn refuse_extras(interface: &Bound<'_, PyMapping>, typestr: &str) -> Result<(), Failure> {
    if entry(interface, "mask")?.is_some() {
        let text = "mask: expected none, got one; fill the masked values first";
        return Err(Error::Buffer(text.into()).into());
    }
    let Some(descr) = entry(interface, "descr")? else {
        return Ok(());
    };
    let native = typestr.replace('=', if cfg!(target_endian = "little") { "<" } else { ">" });
    if descr.eq([("", typestr)])? || descr.eq([("", native)])? {
        return Ok(());
    }
    Err(Error::Buffer(format!(
        "descr: expected [('', '{typestr}')], got {}; structured types are not supported",
        shown(&descr)
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
    let number = address.extract::<usize>().map_err(|_| {
        Error::Argument(format!("data: expected an address, got {}", shown(&address)))
    })?;
    Ok((number, readonly.is_truthy()?))
}

/// Reads a tuple of ints: NumPy takes no other sequence.
fn tuple_of_ints(what: &str, value: &Bound<'_, PyAny>) -> Result<Extents, Failure> {
    if !value.is_instance_of::<PyTuple>() {
        return Err(wrong_type(what, "a tuple of ints", value).into());
    }
    ints(what, value)
}

/// The interface of a field, with explicit strides; `None` for types it cannot name.
pub(crate) fn export<'py>(
    py: Python<'py>,
    managed: &Managed,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let interface = describe(py, managed)?;
    if let Some(interface) = &interface {
        interface.set_item("data", (managed.address(), managed.readonly()))?;
    }
    Ok(interface)
}

/// The interface without `data`.
pub(super) fn describe<'py>(
    py: Python<'py>,
    managed: &Managed,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(typestr) = managed.dtype().typestr() else {
        return Ok(None);
    };
    let interface = PyDict::new(py);
    interface.set_item("version", 3)?;
    interface.set_item("typestr", typestr)?;
    interface.set_item("shape", PyTuple::new(py, managed.layout().shape())?)?;
    interface.set_item("strides", PyTuple::new(py, managed.layout().byte_strides())?)?;
    Ok(Some(interface))
}

//! Imports one array for a stencil. What cannot be shared is copied here, if a copy is wanted.

use pyo3::intern;
use pyo3::prelude::*;

use crate::cuda::device_count;
use crate::device::Target;
use crate::error::{Error, Failure};
use crate::layout::Layout;
use crate::protocol::{Arrival, Request, import, is_plain_ndarray};
use crate::python::options::ints;
use crate::stencil::{Access, Copied, FieldSpec, Original, StencilSpec};

/// An array that came in, and the kind of copy if it is one.
pub(super) type Opened = (Arrival, Option<Copied>);

/// Imports an array to where the stencil computes. `reads`: not only its shape, strides and labels
/// are looked at, but elements, too.
pub(super) fn open(
    spec: &StencilSpec,
    field: &FieldSpec,
    value: &Bound<'_, PyAny>,
    reads: bool,
) -> Result<Opened, Failure> {
    let request = match spec.in_order {
        true => Request::computation_in_order(spec.target),
        false => Request::computation(spec.target),
    };
    match import(value, request) {
        arrival if field.access == Access::Unused => Ok((arrival?, None)),
        Err(Failure::Ours(Error::Device(text))) if spec.target == Target::Host => {
            copy_to_host(spec, field, value, text)
        }
        Err(Failure::Ours(Error::Buffer(text))) => copy_by_numpy(spec, value, text, reads),
        arrival => Ok((arrival?, None)),
    }
}

/// For memory that the host does not reach. Without CUDA its producer copies it, if it is only
/// read.
fn copy_to_host(
    spec: &StencilSpec,
    field: &FieldSpec,
    value: &Bound<'_, PyAny>,
    text: String,
) -> Result<Opened, Failure> {
    if !spec.copy_device {
        let way_out = "; or let bind copy it at each call: on_mismatch={\"device\": \"copy\"}";
        return Err(Error::Device(text + way_out).into());
    }
    if device_count().is_ok() {
        // Copied after everything is acquired, and back, like any other copy.
        return Ok((import(value, Request::TO_BE_COPIED)?, Some(Copied::ToHost(text))));
    }
    if field.access.writes() {
        let reason = "an output there cannot be copied back without CUDA";
        return Err(Error::Device(format!("{text}; {reason}")).into());
    }
    Ok((import(value, Request::COPIED_TO_HOST)?, Some(Copied::ToHost(text))))
}

/// For an array that no stride in elements describes: NumPy copies it, and later copies it back.
fn copy_by_numpy(
    spec: &StencilSpec,
    value: &Bound<'_, PyAny>,
    text: String,
    reads: bool,
) -> Result<Opened, Failure> {
    let py = value.py();
    let Some((address, bytes)) = between_items(value)? else {
        return Err(Error::Buffer(text).into());
    };
    if !spec.copy_memory {
        let way_out = ", or let bind make a copy at each call: on_mismatch={\"memory\": \"copy\"}";
        return Err(Error::Buffer(text + way_out).into());
    }
    let copy = if reads {
        value.call_method1(intern!(py, "copy"), ("K",))?
    } else {
        py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "empty_like"), (value,))?
    };
    let mut arrival = import(&copy, Request::SHARED)?;
    if !value.getattr(intern!(py, "flags"))?.getattr(intern!(py, "writeable"))?.is_truthy()? {
        arrival.memory = arrival.memory.into_readonly();
    }
    Ok((arrival, Some(Copied::Original(Box::new(Original { text, address, bytes })))))
}

/// Address and bytes of a NumPy array, or one over a file, in native byte order and with a stride
/// that is not a multiple of its items; `None` for any other object.
fn between_items(value: &Bound<'_, PyAny>) -> PyResult<Option<(usize, Layout)>> {
    let py = value.py();
    let memmap = || py.import(intern!(py, "numpy"))?.getattr(intern!(py, "memmap"));
    let is_numpy = is_plain_ndarray(value) || value.get_type().is(&memmap()?);
    if !is_numpy || !value.getattr("dtype")?.getattr("isnative")?.is_truthy()? {
        return Ok(None);
    }
    let item: i64 = value.getattr("itemsize")?.extract()?;
    let mut shape = ints("shape", &value.getattr("shape")?)?;
    let mut strides = ints("strides", &value.getattr("strides")?)?;
    let mut axes = shape.iter().zip(&strides);
    if !axes.any(|(&extent, stride)| extent > 1 && stride.checked_rem(item) != Some(0)) {
        return Ok(None);
    }
    shape.push(item);
    strides.push(1);
    let address = value.getattr("ctypes")?.getattr("data")?.extract()?;
    Ok(Layout::new(shape, strides, 1).ok().map(|bytes| (address, bytes)))
}

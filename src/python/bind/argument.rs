//! From the value of an argument to what `resolve` takes.

use pyo3::intern;
use pyo3::prelude::*;

use super::BoundStencil;
use super::around::Around;
use super::read::Values;
use crate::cuda::device_count;
use crate::device::Target;
use crate::error::{Error, Failure};
use crate::field::{Dims, Field, Said};
use crate::layout::{Extents, Layout};
use crate::protocol::{Arrival, Wish, is_plain_ndarray};
use crate::python::options::ints;
use crate::python::storage::{PyStorage, arrival};
use crate::stencil::{Access, Argument, FieldSpec, OnMismatch, Original};

/// The fields of a call, in the order of the stencil's.
#[derive(Default)]
pub(super) struct Incoming<'py> {
    /// `None` for an unused one, and for an output that is to be made.
    pub(super) arguments: Vec<Option<Argument>>,
    /// What else is known of each.
    pub(super) beside: Vec<Beside<'py>>,
    /// What they want called.
    pub(super) around: Around,
    /// Whether code of somebody else's may have run since the first of them was looked at.
    pub(super) disturbed: bool,
}

/// What Python knows of an argument.
#[derive(Default)]
pub(super) struct Beside<'py> {
    /// The user's own NumPy array, where the argument is nothing else.
    pub(super) plain: Option<Bound<'py, PyAny>>,
    /// What came, where the argument is a copy of it by NumPy.
    pub(super) original: Option<Bound<'py, PyAny>>,
    /// Through which door it came; `None` for memory that dlfield allocated.
    pub(super) door: Option<&'static str>,
}

impl Incoming<'_> {
    /// Whether an array is still what was looked at: nothing of anybody's was called since, and
    /// nothing will be before the run.
    pub(super) fn is_undisturbed(&self) -> bool {
        !self.disturbed && self.around.is_empty()
    }
}

/// What came in for an argument.
struct Taken {
    arrival: Arrival,
    stands_for: Option<Box<Original>>,
    brought: Option<String>,
}

impl BoundStencil {
    /// The fields, imported without a copy unless nothing else helps and copies are wanted. With
    /// `look`, no element of what NumPy would copy is read.
    pub(super) fn incoming<'py>(
        &self,
        values: &Values<'py>,
        look: bool,
    ) -> PyResult<Incoming<'py>> {
        let mut incoming = Incoming { arguments: self.scratch.take(), ..Incoming::default() };
        for (field, &at) in self.declared.spec.fields.iter().zip(&self.declared.fields_at) {
            let value = values.get(at).and_then(Option::as_ref);
            match value.filter(|value| !value.is_none() && field.access != Access::Unused) {
                Some(value) => {
                    let taken = self.take(field, value, look);
                    let taken = taken.map_err(|failure| named(value.py(), &field.name, failure))?;
                    self.put(&mut incoming, taken, value, field);
                }
                None => {
                    incoming.arguments.push(None);
                    incoming.beside.push(Beside::default());
                }
            }
        }
        Ok(incoming)
    }

    fn put<'py>(
        &self,
        incoming: &mut Incoming<'py>,
        taken: Taken,
        value: &Bound<'py, PyAny>,
        field: &FieldSpec,
    ) {
        let written = field.access.writes();
        let Taken { arrival, stands_for, brought } = taken;
        let Arrival { managed, said, hooks, door, kind, .. } = arrival;
        let Said { dims, halo, origin } = said;
        incoming.around.add(value.py(), hooks, written);
        let plain = is_plain_ndarray(value) && stands_for.is_none();
        incoming.disturbed |= !plain && !value.is_instance_of::<PyStorage>();
        incoming.beside.push(Beside {
            plain: plain.then(|| value.clone()),
            original: stands_for.is_some().then(|| value.clone()),
            door,
        });
        let dims = dims.map(|dims| self.translate(dims));
        let origin = origin.map(|origin| as_declared(field, &origin));
        let halo = halo.along(managed.layout().ndim());
        let argument = Argument { managed, dims, halo, origin, kind, stands_for, brought };
        incoming.arguments.push(Some(argument));
    }

    fn take(
        &self,
        field: &FieldSpec,
        value: &Bound<'_, PyAny>,
        look: bool,
    ) -> Result<Taken, Failure> {
        let spec = &self.declared.spec;
        match arrival(value, Wish::For(spec.target)) {
            Err(Failure::Ours(Error::Device(text))) if spec.target == Target::Host => {
                self.brought(field, value, text)
            }
            Err(Failure::Ours(Error::Buffer(text))) => self.relaid(value, text, look),
            arrival => Ok(Taken { arrival: arrival?, stands_for: None, brought: None }),
        }
    }

    /// What the host does not reach: its producer copies it, where it is only read.
    fn brought(
        &self,
        field: &FieldSpec,
        value: &Bound<'_, PyAny>,
        text: String,
    ) -> Result<Taken, Failure> {
        if self.declared.spec.on_device == OnMismatch::Raise {
            let way_out = "; or let bind copy it at each call: on_mismatch={\"device\": \"copy\"}";
            return Err(Error::Device(text + way_out).into());
        }
        if device_count().is_ok() {
            // Copied once everything is acquired, and back, like any other copy.
            let arrival = arrival(value, Wish::Share)?;
            return Ok(Taken { arrival, stands_for: None, brought: Some(text) });
        }
        if field.access.writes() {
            return Err(Error::Device(format!(
                "{text}; an output there cannot be copied back without CUDA"
            ))
            .into());
        }
        let arrival = arrival(value, Wish::CopyToHost)?;
        Ok(Taken { arrival, stands_for: None, brought: Some(text) })
    }

    /// What no stride in elements describes: NumPy copies it, and later copies it back.
    fn relaid(&self, value: &Bound<'_, PyAny>, text: String, look: bool) -> Result<Taken, Failure> {
        let py = value.py();
        let native = is_numpy(value)?
            && value
                .getattr(intern!(py, "dtype"))?
                .getattr(intern!(py, "isnative"))?
                .is_truthy()?;
        let described = if native { byte_by_byte(value)? } else { None };
        let Some((address, bytes)) = described.filter(|(_, bytes)| is_between_items(bytes)) else {
            return Err(Error::Buffer(text).into());
        };
        if self.declared.spec.on_memory == OnMismatch::Raise {
            let way_out =
                ", or let bind make a copy at each call: on_mismatch={\"memory\": \"copy\"}";
            return Err(Error::Buffer(text + way_out).into());
        }
        let copy = if look {
            py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "empty_like"), (value,))?
        } else {
            value.call_method1(intern!(py, "copy"), ("K",))?
        };
        let mut arrival = arrival(&copy, Wish::Share)?;
        if !value.getattr(intern!(py, "flags"))?.getattr(intern!(py, "writeable"))?.is_truthy()? {
            arrival.managed = arrival.managed.into_readonly();
        }
        let original = Box::new(Original { text, address, bytes });
        Ok(Taken { arrival, stands_for: Some(original), brought: None })
    }

    /// The user's names into the stencil's.
    fn translate(&self, dims: Dims) -> Dims {
        if self.declared.dims.is_empty() {
            return dims;
        }
        let own = |dim| self.declared.dims.get(&dim).cloned().unwrap_or(dim);
        dims.into_iter().map(own).collect()
    }
}

/// A NumPy array, or one over a file.
fn is_numpy(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if is_plain_ndarray(value) {
        return Ok(true);
    }
    let memmap =
        value.py().import(intern!(value.py(), "numpy"))?.getattr(intern!(value.py(), "memmap"))?;
    Ok(value.get_type().is(&memmap))
}

/// Where the bytes of a NumPy array lie; `None` where no address describes them.
fn byte_by_byte(array: &Bound<'_, PyAny>) -> PyResult<Option<(usize, Layout)>> {
    let py = array.py();
    let itemsize: i64 = array.getattr(intern!(py, "itemsize"))?.extract()?;
    let mut shape = ints("shape", &array.getattr(intern!(py, "shape"))?)?;
    let mut strides = ints("strides", &array.getattr(intern!(py, "strides"))?)?;
    shape.push(itemsize);
    strides.push(1);
    let data = array.getattr(intern!(py, "ctypes"))?.getattr(intern!(py, "data"))?.extract()?;
    Ok(Layout::new(shape, strides, 1).ok().map(|layout| (data, layout)))
}

/// Whether a stride is no multiple of the items, whose bytes are the last dimension.
fn is_between_items(bytes: &Layout) -> bool {
    let Some((&item, extents)) = bytes.shape().split_last() else { return false };
    let mut axes = extents.iter().zip(bytes.strides());
    axes.any(|(&extent, stride)| extent > 1 && stride.checked_rem(item) != Some(0))
}

/// An origin in GT4Py's order of dimensions, in the declared one.
fn as_declared(field: &FieldSpec, origin: &Extents) -> Extents {
    let names = Field { dims: Some(field.dims.clone()), ..Field::default() };
    let order = names.axes_in_order(origin.len());
    let mut declared = origin.clone();
    for (&axis, &at) in order.iter().zip(origin) {
        if let Some(first) = declared.get_mut(axis) {
            *first = at;
        }
    }
    declared
}

/// Names the argument: in the text of dlfield's own error, in a note on the producer's.
fn named(py: Python<'_>, name: &str, failure: Failure) -> PyErr {
    match failure {
        Failure::Ours(error) => error.about(&format!("argument '{name}'")).into(),
        Failure::Theirs(error) => {
            let note = format!("while dlfield imported argument '{name}'");
            let value = error.value(py);
            let noted = value.getattr("__notes__").and_then(|notes| notes.contains(&note));
            if !noted.unwrap_or(false) {
                // Where even that fails, the exception itself still tells.
                let _ = value.call_method1("add_note", (note,));
            }
            error
        }
    }
}

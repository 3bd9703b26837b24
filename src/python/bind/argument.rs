//! From the value of an argument to what `resolve` takes.

use pyo3::intern;
use pyo3::prelude::*;

use super::BoundStencil;
use super::around::Around;
use super::read::Values;
use crate::device::Target;
use crate::error::{Error, Failure};
use crate::field::Dims;
use crate::layout::Layout;
use crate::protocol::{Wish, is_plain_ndarray};
use crate::python::options::ints;
use crate::python::storage::Source;
use crate::stencil::{Access, Argument, FieldSpec, OnMismatch, Original};

/// The fields of a call, in the order of the stencil's.
#[derive(Default)]
pub(super) struct Incoming<'py> {
    /// `None` for an unused one, and for an output that is to be made.
    pub(super) arguments: Vec<Option<Argument>>,
    /// The user's own NumPy array, where the argument is nothing else.
    pub(super) plain: Vec<Option<Bound<'py, PyAny>>>,
    /// What came, where the argument is a copy of it by NumPy.
    pub(super) originals: Vec<Option<Bound<'py, PyAny>>>,
    /// Through which door each came.
    pub(super) doors: Vec<Option<&'static str>>,
    /// What they want called.
    pub(super) around: Around,
}

impl BoundStencil {
    /// The fields, imported without a copy unless nothing else helps and copies are wanted.
    pub(super) fn incoming<'py>(&self, values: &Values<'py>) -> PyResult<Incoming<'py>> {
        let mut incoming = Incoming::default();
        for (field, &at) in self.declared.spec.fields.iter().zip(&self.declared.fields_at) {
            let value = values.get(at).and_then(Option::as_ref);
            match value.filter(|value| !value.is_none() && field.access != Access::Unused) {
                Some(value) => {
                    let taken = self.take(field, value);
                    incoming.push(
                        taken.map_err(|failure| named(value.py(), &field.name, failure))?,
                        value,
                        field.access.writes(),
                        &|dims| self.translate(dims),
                    );
                }
                None => incoming.push_none(),
            }
        }
        Ok(incoming)
    }

    fn take(&self, field: &FieldSpec, value: &Bound<'_, PyAny>) -> Result<Taken, Failure> {
        let spec = &self.declared.spec;
        match Source::of_as(value, Wish::For(spec.target)) {
            Err(Failure::Ours(Error::Device(text))) if spec.target == Target::Host => {
                self.brought(field, value, text)
            }
            Err(Failure::Ours(Error::Buffer(text))) => self.relaid(value, text),
            source => Ok(Taken { source: source?, stands_for: None, brought: None }),
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
        if field.access.writes() {
            return Err(Error::Device(format!(
                "{text}; an output there cannot be copied back in a build without GPU storages"
            ))
            .into());
        }
        let source = Source::of_as(value, Wish::CopyToHost)?;
        Ok(Taken { source, stands_for: None, brought: Some(text) })
    }

    /// What no stride in elements describes: NumPy copies it, and later copies it back.
    fn relaid(&self, value: &Bound<'_, PyAny>, text: String) -> Result<Taken, Failure> {
        let py = value.py();
        let native = is_numpy(value)?
            && value
                .getattr(intern!(py, "dtype"))?
                .getattr(intern!(py, "isnative"))?
                .is_truthy()?;
        let Some((address, bytes)) = (if native { byte_by_byte(value)? } else { None }) else {
            return Err(Error::Buffer(text).into());
        };
        if self.declared.spec.on_memory == OnMismatch::Raise {
            let way_out =
                ", or let bind make a copy at each call: on_mismatch={\"memory\": \"copy\"}";
            return Err(Error::Buffer(text + way_out).into());
        }
        let copy = value.call_method1(intern!(py, "copy"), ("K",))?;
        let mut source = Source::of(&copy)?;
        if !value.getattr(intern!(py, "flags"))?.getattr(intern!(py, "writeable"))?.is_truthy()? {
            source.managed = source.managed.into_readonly();
        }
        Ok(Taken { source, stands_for: Some(Original { text, address, bytes }), brought: None })
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

struct Taken {
    source: Source,
    stands_for: Option<Original>,
    brought: Option<String>,
}

impl<'py> Incoming<'py> {
    fn push(
        &mut self,
        taken: Taken,
        value: &Bound<'py, PyAny>,
        written: bool,
        translate: &impl Fn(Dims) -> Dims,
    ) {
        let Taken { source, stands_for, brought } = taken;
        let Source { managed, field, origin, hooks, door, kind } = source;
        self.around.add(value.py(), hooks, written);
        self.doors.push(door);
        self.plain.push((is_plain_ndarray(value) && stands_for.is_none()).then(|| value.clone()));
        self.originals.push(stands_for.is_some().then(|| value.clone()));
        let dims = field.dims.map(translate);
        let argument =
            Argument { managed, dims, halo: field.halo, origin, kind, stands_for, brought };
        self.arguments.push(Some(argument));
    }

    fn push_none(&mut self) {
        self.arguments.push(None);
        self.plain.push(None);
        self.originals.push(None);
        self.doors.push(None);
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

//! The plan of functional calls: what makes their outputs, and where they compute. It is found by
//! `dlfield.stencils.functional`, and kept for the calls that come again.

use std::collections::HashMap;

use pyo3::exceptions::PyException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::bound_stencil::BoundStencil;
use super::declared::{Declared, OFFSET_PROVIDER, position};
use super::outline::Outline;
use super::values::{Values, by_name, place};
use crate::interpreter::Inside;
use crate::layout::Extents;
use crate::protocol::{is_plain_ndarray, is_plain_tensor};
use crate::python::create::Allocation;
use crate::short_ways::short_ways;
use crate::stencil::{CallOptions, FieldSpec};

/// A value for each name of a declaration.
type Named<'py> = Vec<Option<Bound<'py, PyAny>>>;

/// How functional calls make their outputs, and where they compute.
///
/// Nothing here depends on the memory of the arguments: it serves every call whose arguments have
/// the same outlines.
#[pyclass(frozen, module = "dlfield._core")]
pub(super) struct FunctionalPlan {
    /// The declaration of the stencil that it is for.
    declaration: Py<PyAny>,
    /// Origin and domain of the call, whose outputs are made.
    options: CallOptions,
    /// Positions of the values that `in_order` takes, among the names of the declaration.
    order: Vec<usize>,
    outputs: Vec<Output>,
    /// Extents of some arguments, by their position among the fields, of the calls that it serves.
    shapes: Vec<(usize, Extents)>,
    /// Makes an array of a framework of a storage; without it the storages are the outputs.
    convert: Option<Py<PyAny>>,
    /// Makes the result of the tuple of the outputs; without it a single one stands by itself.
    together: Option<Py<PyAny>>,
    /// `None` for a plan that serves one call.
    asked: Option<Asked>,
}

struct Output {
    /// Position of its name among those of the declaration.
    at: usize,
    memory: Memory,
}

enum Memory {
    Zeros(Py<Allocation>),
    /// A function of the value that was passed for the output, or of `None`.
    Made(Py<PyAny>),
}

/// The call that a plan was made for.
pub(super) struct Asked {
    /// Origin and domain as the caller gave them.
    options: CallOptions,
    like: Option<String>,
    /// One for each name of the declaration.
    outlines: Vec<Option<Outline>>,
}

impl Asked {
    /// `None` if an argument has no outline.
    fn new(declared: &Declared, asked: &Bound<'_, PyTuple>) -> PyResult<Option<Self>> {
        let py = asked.py();
        type Given<'py> = (
            Bound<'py, PyDict>,
            Option<Bound<'py, PyAny>>,
            Option<Bound<'py, PyAny>>,
            Option<String>,
        );
        let (given, origin, domain, like): Given<'_> = asked.extract()?;
        if given.contains(OFFSET_PROVIDER)? {
            return Ok(None);
        }
        let mut outlines = Vec::with_capacity(declared.names.len());
        for name in &declared.names {
            let Some(value) = given.get_item(name)? else {
                outlines.push(None);
                continue;
            };
            match Outline::of(&value)? {
                Some(outline) => outlines.push(Some(outline)),
                None => return Ok(None),
            }
        }
        let options = place(declared, py, origin.as_ref(), domain.as_ref(), true)?;
        Ok(Some(Self { options, like, outlines }))
    }

    pub(super) fn is_of(
        &self,
        named: &[Option<Bound<'_, PyAny>>],
        options: &CallOptions,
        like: Option<&str>,
    ) -> PyResult<bool> {
        if self.options != *options || self.like.as_deref() != like {
            return Ok(false);
        }
        for (outline, value) in self.outlines.iter().zip(named) {
            let fits = match (outline, value) {
                (None, None) => true,
                (Some(outline), Some(value)) => outline.is_of(value)?,
                _ => false,
            };
            if !fits {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl FunctionalPlan {
    /// The call that the plan was made for; `None` for a plan that serves one call, and for that of
    /// another stencil.
    pub(super) fn asked_of(&self, run: &Bound<'_, BoundStencil>) -> Option<&Asked> {
        self.asked.as_ref().filter(|_| self.declaration.is(&run.get().declaration))
    }

    /// The values of `order`, each in its place among the names of the declaration.
    fn named<'py>(&self, declared: &Declared, values: &Bound<'py, PyTuple>) -> Named<'py> {
        let mut named = vec![None; declared.names.len()];
        for (&at, value) in self.order.iter().zip(values) {
            if let Some(slot) = named.get_mut(at) {
                *slot = Some(value);
            }
        }
        named
    }

    /// Computes with outputs that are made here, and returns them.
    pub(super) fn compute<'py>(
        &self,
        run: &Bound<'py, BoundStencil>,
        mut named: Named<'py>,
        connectivities: Option<Bound<'py, PyAny>>,
        exec_info: Option<&Bound<'py, PyAny>>,
        stack_level: i32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, stencil) = (run.py(), run.get());
        let mut made = Vec::with_capacity(self.outputs.len());
        for output in &self.outputs {
            let Some(slot) = named.get_mut(output.at) else { continue };
            let memory = output.memory.make(py, slot.take())?;
            made.push(memory.clone());
            *slot = Some(memory);
        }
        let options = self.options.clone();
        let values = Values::of(&stencil.declared, py, named, connectivities, options)?;
        stencil.call_with(py, values, exec_info, stack_level)?;
        if let Some(convert) = &self.convert {
            for one in &mut made {
                *one = convert.bind(py).call1((&*one,))?;
            }
        }
        if self.together.is_none() && made.len() == 1 {
            return Ok(made.remove(0));
        }
        let made = PyTuple::new(py, made)?;
        match &self.together {
            Some(together) => together.bind(py).call1((made,)),
            None => Ok(made.into_any()),
        }
    }
}

impl Memory {
    fn read(given: &Bound<'_, PyAny>) -> Self {
        match given.cast::<Allocation>() {
            Ok(allocation) => Self::Zeros(allocation.clone().unbind()),
            Err(_) => Self::Made(given.clone().unbind()),
        }
    }

    fn make<'py>(
        &self,
        py: Python<'py>,
        given: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Zeros(allocation) => Ok(allocation.get().zeros(py)?.into_bound(py).into_any()),
            Self::Made(make) => make.bind(py).call1((given,)),
        }
    }
}

#[pymethods]
impl FunctionalPlan {
    /// Parameters
    /// ----------
    /// run : BoundStencil
    /// outputs : dict
    ///     By name what makes each output: an `Allocation`, whose zeros it is, or a function of the
    ///     value that was passed for it, or of None.
    /// order : sequence of str
    ///     Names of the arguments that `in_order` takes.
    /// origin, domain
    ///     Where the call computes, as a call takes them.
    /// convert : callable, optional
    ///     Makes an array of a framework of a storage.
    /// together : callable, optional
    ///     Makes the result of the tuple of outputs. By default the tuple, or the only output.
    /// asked : tuple, optional
    ///     The call that this is for: the arguments by name, `origin`, `domain` and `like`.
    /// shapes : dict, optional
    ///     Extents of fields by name, which `repeat` compares: those of all fields that decide where the
    ///     call computes.
    #[new]
    #[pyo3(signature = (run, outputs, *, order = vec![], origin = None, domain = None, convert = None, together = None, asked = None, shapes = None))]
    #[expect(clippy::too_many_arguments, reason = "named by Python's caller")]
    fn new(
        run: &Bound<'_, BoundStencil>,
        outputs: &Bound<'_, PyDict>,
        order: Vec<String>,
        origin: Option<&Bound<'_, PyAny>>,
        domain: Option<&Bound<'_, PyAny>>,
        convert: Option<Py<PyAny>>,
        together: Option<Py<PyAny>>,
        asked: Option<&Bound<'_, PyTuple>>,
        shapes: Option<HashMap<String, Vec<i64>>>,
    ) -> PyResult<Self> {
        let py = run.py();
        let _inside = Inside::enter(py);
        let declared = &run.get().declared;
        let at = |name: &str| position(py, &declared.names, name);
        let fields = declared.spec.fields.iter().enumerate();
        let shape_of = |(at, field): (usize, &FieldSpec)| {
            Some((at, Extents::from_slice(shapes.as_ref()?.get(&field.name)?)))
        };
        let mut made = Vec::with_capacity(outputs.len());
        for (name, memory) in outputs {
            let at = at(&name.cast_into::<PyString>()?.to_cow()?)?;
            made.push(Output { at, memory: Memory::read(&memory) });
        }
        Ok(Self {
            declaration: run.get().declaration.clone_ref(py),
            order: order.iter().map(|name| at(name)).collect::<PyResult<_>>()?,
            options: place(declared, py, origin, domain, false)?,
            outputs: made,
            shapes: fields.filter_map(shape_of).collect(),
            convert,
            together,
            asked: match asked.filter(|_| short_ways()) {
                Some(asked) => Asked::new(declared, asked)?,
                None => None,
            },
        })
    }

    /// Return whether it serves the calls that come again.
    #[getter]
    fn may_be_kept(&self) -> bool {
        self.asked.is_some()
    }

    /// Return whether a call with these arguments, by name, would get the same plan.
    #[pyo3(signature = (run, given, origin, domain, like))]
    fn serves(
        &self,
        run: &Bound<'_, BoundStencil>,
        given: &Bound<'_, PyDict>,
        origin: Option<&Bound<'_, PyAny>>,
        domain: Option<&Bound<'_, PyAny>>,
        like: Option<&str>,
    ) -> PyResult<bool> {
        let _inside = Inside::enter(run.py());
        let Some(asked) = self.asked_of(run) else { return Ok(false) };
        if given.contains(OFFSET_PROVIDER)? {
            return Ok(false);
        }
        let (declared, py) = (&run.get().declared, run.py());
        let named = by_name(declared, &PyTuple::empty(py), Some(given), true)?;
        asked.is_of(&named, &place(declared, py, origin, domain, true)?, like)
    }

    /// Compute with arguments by name, and return the outputs.
    ///
    /// Warnings name the line of the caller's caller.
    #[pyo3(signature = (run, given, exec_info = None))]
    fn __call__<'py>(
        &self,
        run: &Bound<'py, BoundStencil>,
        given: &Bound<'py, PyDict>,
        exec_info: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = run.py();
        let _inside = Inside::enter(py);
        let declared = &run.get().declared;
        let named = by_name(declared, &PyTuple::empty(py), Some(given), true)?;
        self.compute(run, named, given.get_item(OFFSET_PROVIDER)?, exec_info, 2)
    }

    /// Compute with the arguments of `order`, and return the outputs.
    #[pyo3(signature = (run, *values))]
    fn in_order<'py>(
        &self,
        run: &Bound<'py, BoundStencil>,
        values: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _inside = Inside::enter(run.py());
        self.compute(run, self.named(&run.get().declared, values), None, None, 2)
    }

    /// Compute with the arguments of `order`, if the stencil was last called in the same way.
    ///
    /// Fields are all tensors of torch, or all arrays of NumPy, outputs too, with the layouts of that
    /// call and the extents of `shapes`. For any other call, and one that would be refused, return
    /// False; nothing is computed then.
    #[pyo3(signature = (run, *values))]
    fn repeat<'py>(
        &self,
        run: &Bound<'py, BoundStencil>,
        values: &Bound<'py, PyTuple>,
    ) -> PyResult<bool> {
        let (py, stencil) = (run.py(), run.get());
        let _inside = Inside::enter(py);
        let declared = &stencil.declared;
        let is_own = self.declaration.is(&stencil.declaration) && self.outputs.is_empty();
        if !is_own || values.len() != self.order.len() {
            return Ok(false);
        }
        let named = self.named(declared, values);
        let given = |&at: &usize| named.get(at).and_then(Option::as_ref);
        let mut fields = declared.fields_at.iter().filter_map(given);
        if !fields.clone().all(is_plain_ndarray) && !fields.all(is_plain_tensor) {
            return Ok(false);
        }
        let values = match Values::of(declared, py, named, None, self.options.clone()) {
            Err(error) if error.is_instance_of::<PyException>(py) => return Ok(false),
            values => values?,
        };
        stencil.repeat(py, &values, None, &self.shapes)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.declaration)?;
        for output in &self.outputs {
            match &output.memory {
                Memory::Zeros(allocation) => visit.call(allocation)?,
                Memory::Made(make) => visit.call(make)?,
            }
        }
        visit.call(&self.convert)?;
        visit.call(&self.together)?;
        let outlines = self.asked.iter().flat_map(|asked| &asked.outlines);
        outlines.flatten().try_for_each(|outline| outline.traverse(&visit))
    }
}

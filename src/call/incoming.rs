//! Step 1 of a call, second half: the array of each field, through its door.

use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;

use super::declared::Declared;
use super::door::{self, Opened};
use super::values::Values;
use crate::error::Failure;
use crate::field::{Dims, Field, Labels};
use crate::layout::Extents;
use crate::protocol::hooks::Hooks;
use crate::protocol::{Arrival, array_and_dims, is_plain_ndarray};
use crate::python::storage::PyStorage;
use crate::stencil::{Access, Argument, Copied, DecidedBy, FieldSpec};

/// The array that was passed for one field.
pub(super) struct Incoming {
    pub(super) argument: Argument,
    /// The functions that its object wants called around a run.
    pub(super) hooks: Hooks,
    /// The door that it came through; `None` for memory that dlfield allocated.
    pub(super) door: Option<&'static str>,
    /// The user's own NumPy array, or that in a DataArray: the stencil may get it. What was copied on
    /// its way in, into which the copy is copied back.
    pub(super) array: Option<Py<PyAny>>,
    /// The import may have run code that is not dlfield's.
    ran_code: bool,
    /// The stencil writes the field.
    pub(super) written: bool,
}

/// The arrays of a call, in the order of the stencil's fields; `None` for an unused field that is
/// missing, and for an output that is to be made.
pub(super) struct IncomingFields(Vec<Option<Incoming>>);

impl IncomingFields {
    /// Imports all arrays. Nothing is copied unless a copy is wanted and nothing else
    /// helps. See [`door::open`] for `reads`. An unused field may be anything.
    pub(super) fn import(
        py: Python<'_>,
        declared: &Declared,
        values: &Values<'_>,
        reads: bool,
    ) -> PyResult<Self> {
        let mut fields = Vec::with_capacity(declared.spec.fields.len());
        for (field, at) in declared.fields() {
            let value = values.named.get(at).and_then(Option::as_ref);
            let Some(value) = value.filter(|value| !value.is_none()) else {
                fields.push(None);
                continue;
            };
            match door::open(&declared.spec, field, value, reads) {
                Ok(import) => fields.push(Some(Incoming::new(declared, field, value, import))),
                Err(failure) if matters(py, field, &failure) => {
                    return Err(named(py, &field.name, failure));
                }
                Err(_) => fields.push(None),
            }
        }
        Ok(Self(fields))
    }

    /// One entry for each field of the stencil.
    pub(super) fn iter(&self) -> impl Iterator<Item = Option<&Incoming>> + Clone {
        self.0.iter().map(Option::as_ref)
    }

    /// The arguments, as `resolve` takes them.
    pub(super) fn arguments(&self) -> impl Iterator<Item = Option<&Argument>> + Clone {
        self.iter().map(|field| field.map(|field| &field.argument))
    }

    /// The fields that were given.
    pub(super) fn given(&self) -> impl Iterator<Item = &Incoming> {
        self.0.iter().flatten()
    }

    /// True if the stencil writes the memory of a field, through this argument or another one.
    pub(super) fn writes_memory_of(&self, field: &Incoming) -> bool {
        let shares = |other: &Incoming| other.argument.may_overlap(&field.argument);
        field.written || self.given().any(|other| other.written && shares(other))
    }

    /// True if every array still is as it was imported: no foreign code has run since, and none
    /// will before the stencil does.
    pub(super) fn are_undisturbed(&self) -> bool {
        self.have_no_hooks() && self.given().all(|field| !field.ran_code)
    }

    /// True if no array wants a function called around a run.
    pub(super) fn have_no_hooks(&self) -> bool {
        self.given().all(|field| field.hooks.is_empty())
    }
}

impl Incoming {
    fn new(
        declared: &Declared,
        field: &FieldSpec,
        value: &Bound<'_, PyAny>,
        (arrival, copied): Opened,
    ) -> Self {
        let Arrival { memory: managed, labels, hooks, door, readonly_kind: kind, .. } = arrival;
        // GT4Py has left an unused field out of its code: it is handed over, and nothing else.
        let hooks = if field.access == Access::Unused { Hooks::default() } else { hooks };
        let Labels { dims, halo, origin } = labels.into_labels();
        let is_copied = matches!(copied, Some(Copied::Original(_)));
        let array = if is_copied || is_plain_ndarray(value) {
            Some(value.clone())
        } else {
            array_and_dims(value).ok().flatten().map(|(array, _)| array)
        };
        let ran_code = is_copied || (array.is_none() && !value.is_instance_of::<PyStorage>());
        let array = array.map(Bound::unbind);
        let own = Field { dims, ..Field::default() };
        let dims = own.dims.clone().map(|dims| translate(declared, dims));
        let ndim = managed.layout().ndim();
        let origin = match origin {
            Some(origin) => Some(in_declared_order(field, &own, dims.as_ref(), &origin)),
            None if keeps_indices(declared, value, door) => Some(Extents::from_elem(0, ndim)),
            None => None,
        };
        let argument = Argument { dims, halo: halo.along(ndim), origin, managed, kind, copied };
        Self { argument, hooks, door, array, ran_code, written: field.access.writes() }
    }
}

/// True for a field of gt4py.next in a call of its own kind: its indices count also if they begin at 0.
fn keeps_indices(
    declared: &Declared,
    value: &Bound<'_, PyAny>,
    door: Option<&'static str>,
) -> bool {
    let has_indices = matches!(declared.spec.decided_by, DecidedBy::Outputs | DecidedBy::Stencil);
    let is_field = || value.hasattr(intern!(value.py(), "__gt_domain__")).unwrap_or(false);
    has_indices && door == Some("ndarray") && is_field()
}

/// False for an unused field that is not an array.
fn matters(py: Python<'_>, field: &FieldSpec, failure: &Failure) -> bool {
    let interrupts = |error: &PyErr| !error.is_instance_of::<PyException>(py);
    field.access != Access::Unused || matches!(failure, Failure::Theirs(error) if interrupts(error))
}

/// Replaces the user's names by the stencil's.
fn translate(declared: &Declared, dims: Dims) -> Dims {
    if declared.spec.dims.is_empty() {
        return dims;
    }
    let own = |dim| declared.spec.dims.get(&dim).cloned().unwrap_or(dim);
    dims.into_iter().map(own).collect()
}

/// Reorders an origin to the declared order of dimensions. It counts in the order of the array's
/// `own` names, which are `dims` in the stencil's; without names in GT4Py's order of the declared.
fn in_declared_order(
    field: &FieldSpec,
    own: &Field,
    dims: Option<&Dims>,
    origin: &Extents,
) -> Extents {
    let unnamed = Field { dims: Some(field.dims.clone()), ..Field::default() };
    let (counted, dims) = dims.map_or((&unnamed, &field.dims), |dims| (own, dims));
    let mut declared = origin.clone();
    for (&axis, &at) in counted.axes_in_order(origin.len()).iter().zip(origin) {
        let place = field.dims.iter().position(|dim| dims.get(axis) == Some(dim));
        if let Some(first) = place.and_then(|place| declared.get_mut(place)) {
            *first = at;
        }
    }
    declared
}

/// Names the argument: in the text of dlfield's own error, in a note on the producer's.
pub(super) fn named(py: Python<'_>, name: &str, failure: Failure) -> PyErr {
    match failure {
        Failure::Ours(error) => error.about(&format!("argument '{name}'")).into(),
        Failure::Theirs(error) => {
            let note = format!("while dlfield imported argument '{name}'");
            let noted =
                error.value(py).getattr("__notes__").and_then(|notes| notes.contains(&note));
            if !noted.unwrap_or(false) {
                let _ = error.add_note(py, note); // if even that fails, the exception still tells
            }
            error
        }
    }
}

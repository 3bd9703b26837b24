//! The short way of a call that repeats the last one with NumPy arrays and storages of the same form,
//! elsewhere in memory. It imports and resolves nothing: it compares all that a plan depends on.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use smallvec::SmallVec;

use super::declared::{Declared, OFFSET_PROVIDER};
use super::footprint::Basis;
use super::incoming::Incoming;
use super::planned::PlannedField;
use super::run::Run;
use super::values::Values;
use crate::device::Target;
use crate::field::Field;
use crate::protocol::buffer::ArrayForm;
use crate::python::storage::PyStorage;
use crate::stencil::{Boundary, CallOptions, Place, are_all_apart};

/// The last call of a bound stencil that may come again.
#[derive(Default)]
pub(super) struct LastCall(Mutex<Option<Arc<Prepared>>>);

/// A call that was made, and the keywords for the next one with arrays of the same form.
struct Prepared {
    /// One for each field of the stencil; `None` for an unused one that is missing.
    fields: Vec<Option<PreparedField>>,
    options: CallOptions,
    /// Every keyword of `run`, without the arrays and the scalars.
    keywords: Py<PyDict>,
    origins: Py<PyDict>,
    basis: Basis,
}

struct PreparedField {
    /// The form of the array that `run` gets.
    form: ArrayForm,
    boundary: Boundary,
    /// The labels of a storage; `None` if the array came itself.
    labels: Option<Arc<Field>>,
}

impl LastCall {
    /// The keywords of `run` for a call that differs from the last one in nothing but where its
    /// arrays lie.
    pub(super) fn keywords<'py>(
        &self,
        py: Python<'py>,
        declared: &Declared,
        values: &Values<'py>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(last) = last.filter(|last| last.options == values.options) else {
            return Ok(None);
        };
        if !last.basis.holds(py, values)? {
            return Ok(None);
        }
        let Some(arrays) = last.arrays(declared, values) else { return Ok(None) };
        last.with(py, declared, values, &arrays).map(Some)
    }

    /// Prepares a call that has come twice, if its arguments are such that it may come again.
    pub(super) fn prepare(&self, run: &Run<'_, '_>) -> PyResult<()> {
        let prepared = Prepared::new(run)?.map(Arc::new);
        let before = std::mem::replace(
            &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner),
            prepared,
        );
        drop(before); // not under the lock
        Ok(())
    }
}

impl Prepared {
    fn new(run: &Run<'_, '_>) -> PyResult<Option<Self>> {
        let (call, py) = (run.call, run.keywords.py());
        let on_host = call.declared.spec.target == Target::Host;
        if !on_host || !call.undisturbed || !call.runs() || call.values.options.functional {
            return Ok(None);
        }
        let mut fields = Vec::new();
        for field in call.fields() {
            match (field.given, field.unused) {
                (None, None) => fields.push(None),
                (Some((incoming, _)), _) => match PreparedField::new(run, field, incoming)? {
                    Some(prepared) => fields.push(Some(prepared)),
                    None => return Ok(None),
                },
                (None, Some(_)) => return Ok(None),
            }
        }
        let keywords = run.keywords.copy()?;
        for name in &call.declared.names {
            keywords.set_item(name, py.None())?;
        }
        let origins = run.keywords.get_item(intern!(py, "_origin_"))?;
        let Some(Ok(origins)) = origins.map(Bound::cast_into::<PyDict>) else { return Ok(None) };
        keywords.set_item(intern!(py, "_origin_"), py.None())?;
        keywords.set_item(intern!(py, "exec_info"), py.None())?;
        let options = call.values.options.clone();
        let (keywords, origins) = (keywords.unbind(), origins.copy()?.unbind());
        let basis = call.basis.clone();
        Ok(Some(Self { fields, options, keywords, origins, basis }))
    }

    /// The arrays of a call, if each is of the same form and no output overlaps another argument.
    fn arrays<'py>(
        &self,
        declared: &Declared,
        values: &Values<'py>,
    ) -> Option<SmallVec<[Option<Bound<'py, PyAny>>; 16]>> {
        let mut places: SmallVec<[Option<Place<'_>>; 16]> = SmallVec::new();
        let mut arrays = SmallVec::new();
        for (prepared, &at) in self.fields.iter().zip(&declared.fields_at) {
            let value = values.named.get(at)?.as_ref().filter(|value| !value.is_none());
            match (prepared, value) {
                (None, None) => {
                    places.push(None);
                    arrays.push(None);
                }
                (Some(prepared), Some(value)) => {
                    let (array, address) = prepared.array(value)?;
                    places.push(Some((prepared.form.layout(), address)));
                    arrays.push(Some(array));
                }
                _ => return None,
            }
        }
        are_all_apart(&declared.spec, places.iter().copied()).then_some(arrays)
    }

    fn with<'py>(
        &self,
        py: Python<'py>,
        declared: &Declared,
        values: &Values<'py>,
        arrays: &[Option<Bound<'py, PyAny>>],
    ) -> PyResult<Bound<'py, PyDict>> {
        let keywords = self.keywords.bind(py).copy()?;
        for ((at, _), value) in declared.scalars.iter().zip(&values.scalars) {
            keywords.set_item(declared.name(py, *at), value)?;
        }
        for (&at, array) in declared.fields_at.iter().zip(arrays) {
            keywords.set_item(declared.name(py, at), array)?;
        }
        if let Some(connectivities) = &values.connectivities {
            keywords.set_item(intern!(py, OFFSET_PROVIDER), connectivities)?;
        }
        keywords.set_item(intern!(py, "_origin_"), self.origins.bind(py).copy()?)?;
        Ok(keywords)
    }
}

impl PreparedField {
    /// `None` for an argument that has to be imported each time.
    fn new(
        run: &Run<'_, '_>,
        field: PlannedField<'_>,
        incoming: &Incoming,
    ) -> PyResult<Option<Self>> {
        let (call, py, managed) = (run.call, run.keywords.py(), &incoming.argument.managed);
        let name = call.declared.name(py, field.name_at);
        let (Some(array), Some(Some(value))) =
            (run.keywords.get_item(name)?, call.values.named.get(field.name_at))
        else {
            return Ok(None);
        };
        if call.is_readonly(incoming) != managed.readonly() {
            return Ok(None); // it claims to be writable for one call
        }
        let labels = match value.cast::<PyStorage>() {
            Ok(storage) if storage.get().storage().plain_host().is_some() => {
                Some(storage.get().storage().field())
            }
            _ if array.is(value) => None,
            _ => return Ok(None),
        };
        let axes = field.given.map(|(_, plan)| plan.axes.as_slice()).unwrap_or_default();
        let layout = managed.layout().permute(axes)?;
        let Some(form) = ArrayForm::new(&array, &layout) else { return Ok(None) };
        let boundary = Boundary::new(field.spec, managed.position());
        if let Ok(storage) = value.cast::<PyStorage>() {
            storage.get().keep_array(&array);
        }
        Ok(Some(Self { form, boundary, labels }))
    }

    /// The array that `run` gets for a value, and its address.
    fn array<'py>(&self, value: &Bound<'py, PyAny>) -> Option<(Bound<'py, PyAny>, usize)> {
        let (array, address) = match &self.labels {
            None => (value.clone(), self.form.address_of(value)?),
            Some(labels) => {
                let (array, memory) = kept_array(value, labels)?;
                let address = self.form.address_of(&array).filter(|&address| address == memory)?;
                (array, address)
            }
        };
        self.boundary.is_kept_by(address).then_some((array, address))
    }
}

/// The array that a storage with these labels has kept, and the address of the storage's memory.
fn kept_array<'py>(
    value: &Bound<'py, PyAny>,
    labels: &Arc<Field>,
) -> Option<(Bound<'py, PyAny>, usize)> {
    let object = value.cast::<PyStorage>().ok()?.get();
    let (host, field) = (object.storage().plain_host()?, object.storage().field());
    let said = |field: &Field| (field.dims.clone(), field.halo.clone(), field.origin.clone());
    let same = Arc::ptr_eq(&field, labels) || said(&field) == said(labels);
    let array = if same { object.kept_array(value.py())? } else { return None };
    Some((array, host.position()))
}

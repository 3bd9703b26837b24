//! One call of a function of NumPy that works element by element, by NumPy or by CuPy.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use super::given::Given;
use super::known::{Key, Kind, Known, Types, Way, result_type};
use super::outputs::{Output, join};
use super::site::Site;
use super::work::{Work, has_shape};
use crate::dtype::DType;
use crate::error::Error;
use crate::field::{Field, Joined, Operand};
use crate::interpreter::Inside;
use crate::layout::Extents;
use crate::managed::Managed;
use crate::python::storage::PyStorage;
use crate::storage::Storage;

/// A call to make: `function(inputs..., outputs..., where=..., options...)`.
pub(super) struct Call<'a, 'py> {
    pub(super) function: &'a Bound<'py, PyAny>,
    /// Its name in messages.
    pub(super) name: &'a str,
    pub(super) inputs: &'a [Bound<'py, PyAny>],
    /// As many as the function has results; `None` for a new storage.
    pub(super) out: &'a [Option<Bound<'py, PyAny>>],
    pub(super) mask: Option<Bound<'py, PyAny>>,
    /// Other keywords for NumPy.
    pub(super) options: Option<Bound<'py, PyDict>>,
}

impl<'py> Call<'_, 'py> {
    /// Computes; `None` if another operand is to decide what happens. Nothing is written if it is
    /// refused.
    pub(super) fn run(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let _inside = Inside::enter(py);
        let Some((given, wanted)) = self.read()? else { return Ok(None) };
        let site = Site::choose(&given, self.inputs.len(), &wanted, self.name)?;
        let (joined, outputs) = self.prepare(py, site, &given, &wanted)?;
        let work = Work {
            function: self.function,
            name: self.name,
            options: self.options.as_ref(),
            joined: joined.as_ref(),
            given: &given,
            masked: self.mask.is_some(),
            outputs: &outputs,
            writes: wanted.iter().any(Option::is_some),
        };
        match site.target.ordinal() {
            None => work.on_host(py)?,
            Some(ordinal) => {
                self.dtypes_of_numpy(py, self.inputs_of(&given))?; // refuses what NumPy refuses
                work.on_gpu(py, ordinal)?;
            }
        }
        result(py, &outputs).map(Some)
    }

    /// Reads operands and outputs; `None` if one of them is to decide what happens.
    fn read(&self) -> PyResult<Option<(AllGiven<'py>, Wanted<'py>)>> {
        let mut given = AllGiven::new();
        for object in self.inputs.iter().chain(&self.mask) {
            let beside_gpu = || self.has_storage_on_gpu();
            let Some(one) = Given::read(object, self.name, beside_gpu)? else { return Ok(None) };
            given.push(one);
        }
        let mut wanted = Wanted::new();
        for object in self.out {
            let read = |object| Output::read(object, self.name);
            match object.as_ref().map(read).transpose()? {
                Some(None) => return Ok(None),
                output => wanted.push(output.flatten()),
            }
        }
        Ok(Some((given, wanted)))
    }

    /// Joins the operands, unless they are alike, and makes storages for the results.
    fn prepare(
        &self,
        py: Python<'py>,
        site: Site,
        given: &[Given<'py>],
        wanted: &[Option<Output<'py>>],
    ) -> PyResult<(Option<Joined>, Outputs<'py>)> {
        let alike = alike(given, wanted).filter(|_| self.mask.is_none());
        let Some((memory, field)) = alike else {
            let joined = join(given, wanted)?;
            let outputs = self.outputs(py, site, &joined, given, wanted)?;
            return Ok((Some(joined), outputs));
        };
        let outputs = match self.outputs_like(py, site, (memory, field), given, wanted)? {
            Some(outputs) => outputs,
            None => self.outputs(py, site, &join(given, wanted)?, given, wanted)?,
        };
        Ok((None, outputs))
    }

    /// The operands without the mask.
    fn inputs_of<'a>(&self, given: &'a [Given<'py>]) -> &'a [Given<'py>] {
        given.get(..self.inputs.len()).unwrap_or_default()
    }

    /// True if one of the storages has a buffer on a GPU.
    fn has_storage_on_gpu(&self) -> bool {
        let storages = self.inputs.iter().chain(&self.mask).chain(self.out.iter().flatten());
        let mut storages = storages.filter_map(|object| object.cast::<PyStorage>().ok());
        storages.any(|storage| storage.get().storage().device_as_is().is_some())
    }

    /// As `outputs`, for operands that all have this shape and field; `None` if it takes more.
    fn outputs_like(
        &self,
        py: Python<'py>,
        site: Site,
        (memory, field): (&Managed, &Arc<Field>),
        given: &[Given<'py>],
        wanted: &[Option<Output<'py>>],
    ) -> PyResult<Option<Outputs<'py>>> {
        if let Some(given) = wanted.iter().cloned().collect() {
            return Ok(Some(given));
        }
        let mut outputs = Outputs::new();
        for (output, dtype) in wanted.iter().zip(self.dtypes(py, given)?) {
            outputs.push(match output {
                Some(output) => output.clone(),
                None => match Storage::for_result_like(memory, field, dtype, site.residence)? {
                    Some(made) => Output::new(py, made)?,
                    None => return Ok(None),
                },
            });
        }
        Ok(Some(outputs))
    }

    /// The caller's outputs, and new storages where there is none.
    fn outputs(
        &self,
        py: Python<'py>,
        site: Site,
        joined: &Joined,
        given: &[Given<'py>],
        wanted: &[Option<Output<'py>>],
    ) -> PyResult<Outputs<'py>> {
        if let Some(given) = wanted.iter().cloned().collect() {
            return Ok(given);
        }
        let dtypes = self.dtypes(py, self.inputs_of(given))?;
        let ranks: SmallVec<[Option<Extents>; 4]> =
            given.iter().filter(has_shape).map(Given::ranks).collect();
        let no_labels = self.mask.as_ref().and_then(|_| given.last()?.operand());
        let bare = no_labels.and_then(|mask| mask.field).map(Self::names_alone);
        let mut operands: SmallVec<[Operand<'_>; 4]> =
            given.iter().filter_map(Given::operand).collect();
        if let (Some(mask), Some(field)) =
            (operands.last_mut().filter(|_| no_labels.is_some()), &bare)
        {
            mask.field = Some(field);
        }
        let one = |(output, dtype): (&Option<Output<'py>>, &DType)| match output {
            Some(output) => Ok(output.clone()),
            None => {
                let residence = site.residence;
                Output::new(py, Storage::for_result(joined, &operands, &ranks, *dtype, residence)?)
            }
        };
        wanted.iter().zip(&dtypes).map(one).collect()
    }

    /// A mask decides on no label but the names.
    fn names_alone(field: &Field) -> Field {
        let halo =
            field.dims.as_ref().map(|dims| std::iter::repeat_n((0, 0), dims.len()).collect());
        Field { dims: field.dims.clone(), halo, ..Field::default() }
    }

    /// The types of the results, by NumPy's rules: those of a call without elements.
    fn dtypes(&self, py: Python<'py>, inputs: &[Given<'py>]) -> PyResult<Types> {
        let kinds: Option<SmallVec<[Kind; 2]>> = inputs.iter().map(Given::kind).collect();
        let key = kinds.filter(|_| self.options.is_none());
        let key = key.map(|kinds| Key::new(self.function, Way::Call, kinds));
        if let Some(known) = key.as_ref().and_then(Known::get) {
            return Ok(known);
        }
        let dtypes = self.dtypes_of_numpy(py, inputs)?;
        if let Some(key) = key {
            Known::put(key, dtypes.clone(), self.function);
        }
        Ok(dtypes)
    }

    fn dtypes_of_numpy(&self, py: Python<'py>, inputs: &[Given<'py>]) -> PyResult<Types> {
        let stand_ins = inputs.iter().map(|one| one.stand_in(py)).collect::<PyResult<Vec<_>>>()?;
        let answer = self.function.call(PyTuple::new(py, stand_ins)?, self.options.as_ref())?;
        let dtype = |one| result_type(&one, self.name);
        match answer.cast::<PyTuple>() {
            Ok(several) => several.iter().map(dtype).collect(),
            Err(_) => Ok(Types::from_slice(&[dtype(answer)?])),
        }
    }
}

type AllGiven<'py> = SmallVec<[Given<'py>; 4]>;
/// The caller's outputs; `None` where a storage is to be made.
type Wanted<'py> = SmallVec<[Option<Output<'py>>; 2]>;
type Outputs<'py> = SmallVec<[Output<'py>; 2]>;

/// The result of a call. Several results are a tuple.
fn result<'py>(py: Python<'py>, outputs: &[Output<'py>]) -> PyResult<Bound<'py, PyAny>> {
    match outputs {
        [one] => Ok(one.object()),
        several => Ok(PyTuple::new(py, several.iter().map(Output::object))?.into_any()),
    }
}

/// The first storage, if all operands and outputs are numbers, and storages with its shape and field.
fn alike<'a>(
    given: &'a [Given<'_>],
    wanted: &[Option<Output<'_>>],
) -> Option<(&'a Managed, &'a Arc<Field>)> {
    let mut first: Option<(&Managed, &Arc<Field>)> = None;
    let is_same = |(memory, field): (&Managed, &Arc<Field>), other: &Managed, its: &Arc<Field>| {
        let fields = Arc::ptr_eq(field, its) || field == its;
        fields && memory.layout().shape() == other.layout().shape()
    };
    for one in given {
        match (one, one.storage(), first) {
            (Given::Number(_), ..) => {}
            (_, Some(storage), None) => first = Some(storage),
            (_, Some((memory, field)), Some(known)) if is_same(known, memory, field) => {}
            _ => return None,
        }
    }
    let known = first?;
    let fits = |output: &Output<'_>| {
        let storage = output.storage();
        storage.is_some_and(|(storage, memory)| {
            is_same(known, memory, &storage.get().storage().field())
        })
    };
    wanted.iter().flatten().all(fits).then_some(known)
}

/// The error of a function that does not work element by element.
pub(super) fn not_elementwise(name: &str) -> Error {
    Error::Type(format!(
        "{name}: expected a function that works element by element, got one of matrices, whose \
         dimensions have no names; use to_numpy() of the storages"
    ))
}

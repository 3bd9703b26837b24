//! The declaration of a stencil: Python's dataclasses of `dlfield.stencils.declaration`, read once.

use std::collections::HashMap;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::collections::Parts;
use super::partial::Partial;
use crate::dtype::DType;
use crate::field::Dim;
use crate::layout::Extents;
use crate::preset::Preset;
use crate::protocol::read::names as read_names;
use crate::python::numpy::dtype_from;
use crate::python::options::{ints, read_device};
use crate::python::presets::preset_of;
use crate::stencil::{Access, Along, DecidedBy, FieldSpec, Span, StencilSpec, Touched};

/// A `dlfield.stencils.declaration.DeclaredScalar`.
#[derive(FromPyObject)]
pub(super) struct DeclaredScalar {
    pub(super) name: String,
    #[pyo3(from_py_with = scalar_type)]
    pub(super) dtype: Option<ScalarType>,
    pub(super) used: bool,
    pub(super) weak: bool,
    pub(super) default: Vec<Py<PyAny>>,
}

/// How the footprint of a stencil is found.
pub(super) enum FootprintRule {
    /// It stands in the declaration.
    Declared,
    /// A function of the declaration finds it for one call.
    Called(Py<PyAny>),
}

/// The keyword of the connectivities, as gt4py.next has it.
pub(super) const OFFSET_PROVIDER: &str = "offset_provider";

/// NumPy's dtype, and ours if dlfield knows it.
pub(super) type ScalarType = (Py<PyAny>, Option<DType>);

/// The declaration in Rust's words.
pub(super) struct Declared {
    pub(super) spec: StencilSpec,
    /// Position of each field of `spec` among `names`.
    pub(super) fields_at: Vec<usize>,
    /// Each scalar with its position among `names`.
    pub(super) scalars: Vec<(usize, DeclaredScalar)>,
    /// Names of all fields and scalars.
    pub(super) names: Vec<Py<PyString>>,
    /// Names of the arguments, in the order of positional ones.
    pub(super) parameters: Vec<Py<PyString>>,
    /// Where the values of the arguments belong; none if each is one field or scalar.
    pub(super) parts: Vec<Parts>,
    /// A `dlfield.stencils.declaration.DeclaredCollection` for each argument that is one, by name.
    pub(super) collections: Py<PyDict>,
    /// The number of arguments that may be given without a name.
    pub(super) positional: usize,
    /// True if the stencil asks for writable memory even for fields that it only reads.
    pub(super) asks_writable: bool,
    /// How the points that a call touches are found.
    pub(super) footprint: FootprintRule,
    /// "checked", "partly checked" or "unchecked": how much of what calls touch is known.
    pub(super) checked: String,
    /// The connectivities of calls that give none; `None` for a stencil that takes none.
    pub(super) connectivities: Option<Py<PyAny>>,
    /// Options of the stencil's own call that change nothing here.
    pub(super) ignores: Vec<String>,
    /// Arguments that `functools.partial` fixed before the stencil was bound.
    pub(super) partial: Partial,
}

/// A `dlfield.stencils.footprint.AffineFootprint`.
#[derive(FromPyObject, Default)]
struct AffineFootprint {
    fields: HashMap<String, DeclaredTouched>,
    smallest: Vec<i64>,
    reason: String,
}

/// A `dlfield.stencils.footprint.FieldFootprint`.
#[derive(FromPyObject)]
struct DeclaredTouched {
    reads: Option<Vec<DeclaredSpan>>,
    writes: Option<Vec<DeclaredSpan>>,
    complete: bool,
    pointwise: bool,
    overtaken_by: Vec<String>,
}

/// A `dlfield.stencils.footprint.Span`.
#[derive(FromPyObject, Clone, Copy)]
struct DeclaredSpan {
    below: i64,
    above: i64,
    below_end: i64,
    above_start: i64,
    most_below: i64,
    most_above: i64,
}

impl Declared {
    /// Reads a `dlfield.stencils.declaration.Declaration`. `dims`: the stencil's name for each of the user's.
    pub(super) fn read(
        declaration: &Bound<'_, PyAny>,
        dims: &HashMap<String, String>,
        copy_device: bool,
        copy_memory: bool,
        partial: Partial,
    ) -> PyResult<Self> {
        let get = |name: &str| declaration.getattr(name);
        let parameters: Vec<Py<PyString>> = get("order")?.extract()?;
        let collections = get("collections")?.cast_into::<PyDict>()?;
        let (names, parts) = parts_of(&parameters, &collections)?;
        let backend = known_preset(&get("backend")?)?;
        let at = |name: &str| position(declaration.py(), &names, name);
        let (footprint, affine) = footprint(&get("footprint")?)?;
        let fields = get("fields")?.try_iter()?.map(|field| field_spec(&field?, backend, &affine));
        let fields = fields.collect::<PyResult<Vec<FieldSpec>>>()?;
        let scalars: Vec<DeclaredScalar> = get("scalars")?.extract()?;
        let scalar = |scalar: DeclaredScalar| Ok((at(&scalar.name)?, scalar));
        let dim = |(own, theirs): (&String, &String)| (Dim::from_name(own), Dim::from_name(theirs));
        Ok(Self {
            fields_at: fields.iter().map(|field| at(&field.name)).collect::<PyResult<_>>()?,
            scalars: scalars.into_iter().map(scalar).collect::<PyResult<_>>()?,
            positional: get("positional")?.extract()?,
            asks_writable: get("asks_writable")?.extract()?,
            footprint,
            checked: get("checked")?.extract()?,
            connectivities: get("connectivities")?.extract()?,
            ignores: get("ignores")?.extract()?,
            partial,
            spec: StencilSpec {
                name: get("name")?.extract()?,
                fields,
                dims: dims.iter().map(dim).collect(),
                axes: read_names(&get("axes")?)?,
                smallest: Extents::from_vec(affine.smallest),
                smallest_because: affine.reason,
                typed: get("typed")?.extract()?,
                target: read_device(&get("device")?)?,
                in_order: get("in_order")?.extract()?,
                backend: backend.map_or("", |preset| preset.name),
                decided_by: decided_by(&get("decided_by")?)?,
                runs_empty: get("runs_empty")?.extract()?,
                copy_device,
                copy_memory,
            },
            names,
            parameters,
            parts,
            collections: collections.unbind(),
        })
    }

    /// Visits what came from outside: types and defaults of scalars.
    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        for (_, scalar) in &self.scalars {
            scalar.default.iter().try_for_each(|default| visit.call(default))?;
            visit.call(scalar.dtype.as_ref().map(|dtype| &dtype.0))?;
        }
        if let FootprintRule::Called(function) = &self.footprint {
            visit.call(function)?;
        }
        visit.call(&self.connectivities)?;
        self.partial.traverse(visit)?;
        visit.call(&self.collections)
    }

    /// Positions of the positional arguments that a functional call neither makes nor has.
    pub(super) fn inputs(&self, py: Python<'_>) -> Vec<usize> {
        let has = |at: usize| {
            let given = self.partial.arguments.as_ref().zip(self.parameters.get(at));
            given.is_some_and(|(given, name)| given.bind(py).contains(name).unwrap_or(false))
        };
        let is_made = |at| {
            self.fields().any(|(field, own)| {
                own == at && !field.access.is_needed(true) && field.access.writes()
            })
        };
        let is_input = |&at: &usize| match self.parts.get(at) {
            Some(parts) => !parts.names_at().into_iter().all(is_made),
            None => !is_made(at),
        };
        (0..self.positional).filter(is_input).filter(|&at| !has(at)).collect()
    }

    /// Each field with the position of its name.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&FieldSpec, usize)> {
        self.spec.fields.iter().zip(self.fields_at.iter().copied())
    }

    /// The name of an argument.
    pub(super) fn name<'a, 'py>(
        &'a self,
        py: Python<'py>,
        at: usize,
    ) -> Option<&'a Bound<'py, PyString>> {
        self.names.get(at).map(|name| name.bind(py))
    }

    /// The names of the parts of an argument that is a collection; none for any other.
    pub(super) fn parts_named(&self, py: Python<'_>, argument: &str) -> Vec<String> {
        let mut known = self.parameters.iter().zip(&self.parts);
        let own = known.find(|(name, parts)| parts.is_many() && name.bind(py) == argument);
        let names = own.map(|(_, parts)| parts.names_at()).unwrap_or_default();
        names.into_iter().filter_map(|at| self.name(py, at)).map(ToString::to_string).collect()
    }

    /// The names of all arguments, for messages.
    pub(super) fn listed(&self, py: Python<'_>) -> String {
        let names = self.parameters.iter().map(|name| name.bind(py).to_string());
        let connectivities = self.connectivities.as_ref().map(|_| OFFSET_PROVIDER.to_owned());
        names.chain(connectivities).collect::<Vec<_>>().join(", ")
    }

    /// Refuses a call for its arguments. There may be many: what is wrong comes first.
    pub(super) fn wrong_call(&self, py: Python<'_>, expected: &str) -> PyErr {
        let (name, names) = (&self.spec.name, self.listed(py));
        PyTypeError::new_err(format!("{name}: expected {expected}; the arguments are {names}"))
    }

    pub(super) fn missing(&self, py: Python<'_>, name: &str) -> PyErr {
        self.wrong_call(py, &format!("an argument '{name}', got none"))
    }
}

/// Names of all fields and scalars, and the parts of the arguments if any has some.
fn parts_of(
    parameters: &[Py<PyString>],
    collections: &Bound<'_, PyDict>,
) -> PyResult<(Vec<Py<PyString>>, Vec<Parts>)> {
    let (py, mut names) = (collections.py(), Vec::new());
    let read = |name: &Py<PyString>| match collections.get_item(name)? {
        Some(collection) => Parts::read(&collection, &mut names),
        None => Parts::read(name.bind(py), &mut names),
    };
    let parts = parameters.iter().map(read).collect::<PyResult<_>>()?;
    Ok((names, if collections.is_empty() { Vec::new() } else { parts }))
}

/// Reads a `dlfield.stencils.declaration.DeclaredField`.
fn field_spec(
    field: &Bound<'_, PyAny>,
    fast: Option<&Preset>,
    footprint: &AffineFootprint,
) -> PyResult<FieldSpec> {
    let get = |name: &str| field.getattr(name);
    let name: String = get("name")?.extract()?;
    let declared = footprint.fields.get(&name);
    let (dims, dtype) = (read_names(&get("dims")?)?, dtype_from(&get("dtype")?)?);
    let preset = known_preset(&get("preset")?)?;
    let by_preset = |preset: &Preset| preset.layout(dims.len(), Some(&dims));
    let layout: Option<Vec<i64>> = get("layout")?.extract()?;
    let alignment = match get("alignment")?.extract::<Option<usize>>()? {
        Some(elements) => elements.saturating_mul(dtype.itemsize()),
        None => preset.map_or(1, |preset| preset.alignment(dtype.itemsize())),
    };
    Ok(FieldSpec {
        touched: declared.map(DeclaredTouched::read).unwrap_or_default(),
        overtaken_by: declared.map(|declared| declared.overtaken_by.clone()).unwrap_or_default(),
        name,
        data_shape: ints("data_shape", &get("data_shape")?)?,
        access: access(&get("access")?)?,
        ranks: layout.map(Extents::from_vec).or_else(|| preset.map(by_preset)),
        fast: fast.map(by_preset),
        unit: unit(&get("unit_stride")?, &dims)?,
        dims,
        dtype,
        alignment,
    })
}

/// The axis along which the memory must have a stride of 1.
fn unit(name: &Bound<'_, PyAny>, dims: &[Dim]) -> PyResult<Option<usize>> {
    let name: Option<String> = name.extract()?;
    Ok(name.and_then(|name| dims.iter().position(|dim| *dim == Dim::from_name(&name))))
}

/// Position of a name in the order of the arguments.
pub(super) fn position(py: Python<'_>, names: &[Py<PyString>], name: &str) -> PyResult<usize> {
    names.iter().position(|one| one.bind(py) == name).ok_or_else(|| {
        PyValueError::new_err(format!(
            "bind: expected '{name}' among the stencil's arguments, got none"
        ))
    })
}

/// A preset by its name. A backend of GT4Py without a preset works, but has no preferences.
fn known_preset(name: &Bound<'_, PyAny>) -> PyResult<Option<&'static Preset>> {
    let text: Option<String> = name.extract()?;
    Ok(text.and_then(|text| preset_of(name.py(), "preset", &text).ok()))
}

fn scalar_type(dtype: &Bound<'_, PyAny>) -> PyResult<Option<ScalarType>> {
    Ok((!dtype.is_none()).then(|| (dtype.clone().unbind(), dtype_from(dtype).ok())))
}

const ACCESSES: [(&str, Access); 4] = [
    ("unused", Access::Unused),
    ("read", Access::Read),
    ("write", Access::Write),
    ("update", Access::Update),
];

fn access(name: &Bound<'_, PyAny>) -> PyResult<Access> {
    let name: String = name.extract()?;
    let found = ACCESSES.iter().find(|(known, _)| *known == name);
    found.map(|&(_, access)| access).ok_or_else(|| {
        let known = ACCESSES.map(|(known, _)| format!("'{known}'")).join(", ");
        PyValueError::new_err(format!("access: expected one of {known}, got '{name}'"))
    })
}

const DECIDED_BY: [(&str, DecidedBy); 6] = [
    ("fields", DecidedBy::Fields),
    ("arrays", DecidedBy::Arrays { origin: false, domain: false }),
    ("arrays, origin", DecidedBy::Arrays { origin: true, domain: false }),
    ("arrays, domain", DecidedBy::Arrays { origin: false, domain: true }),
    ("outputs", DecidedBy::Outputs),
    ("stencil", DecidedBy::Stencil),
];

fn decided_by(name: &Bound<'_, PyAny>) -> PyResult<DecidedBy> {
    let name: String = name.extract()?;
    let found = DECIDED_BY.iter().find(|(known, _)| *known == name);
    found.map(|&(_, decided_by)| decided_by).ok_or_else(|| {
        let known = DECIDED_BY.map(|(known, _)| format!("'{known}'")).join(", ");
        PyValueError::new_err(format!("decided_by: expected one of {known}, got '{name}'"))
    })
}

/// The name in Python of what decides where a stencil computes.
pub(super) fn decided_by_name(decided_by: DecidedBy) -> &'static str {
    DECIDED_BY.iter().find(|one| one.1 == decided_by).map_or("", |one| one.0)
}

/// The name of a use in Python.
pub(super) fn name_of(access: Access) -> &'static str {
    ACCESSES.iter().find(|one| one.1 == access).map_or("", |one| one.0)
}

/// How the footprint is found, and the declared one.
fn footprint(given: &Bound<'_, PyAny>) -> PyResult<(FootprintRule, AffineFootprint)> {
    if given.is_callable() {
        return Ok((FootprintRule::Called(given.clone().unbind()), AffineFootprint::default()));
    }
    Ok((FootprintRule::Declared, given.extract()?))
}

impl DeclaredTouched {
    fn read(&self) -> Touched<Span> {
        let along = |spans: &Option<Vec<DeclaredSpan>>| -> Option<Along<Span>> {
            Some(spans.as_ref()?.iter().copied().map(Span::from).collect())
        };
        Touched {
            reads: along(&self.reads),
            writes: along(&self.writes),
            complete: self.complete,
            pointwise: self.pointwise,
        }
    }
}

impl From<DeclaredSpan> for Span {
    fn from(declared: DeclaredSpan) -> Self {
        let DeclaredSpan { below, above, below_end, above_start, most_below, most_above } =
            declared;
        Self { below, above, below_end, above_start, most_below, most_above }
    }
}

//! What a stencil declares, from the attributes of a `dlfield.declaration.Declaration`.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::device::Target;
use crate::dtype::DType;
use crate::error::Error;
use crate::field::{Dim, Dims, Halo};
use crate::preset::Preset;
use crate::protocol::gt4py;
use crate::python::numpy::dtype_from;
use crate::python::options::ints;
use crate::stencil::{Access, FieldSpec, OnMismatch, StencilSpec};

/// A scalar of the stencil.
pub(super) struct Parameter {
    /// Where it stands among the names.
    pub(super) at: usize,
    pub(super) name: String,
    /// `None`: whatever comes.
    pub(super) dtype: Option<Py<PyAny>>,
    pub(super) known: Option<DType>,
    pub(super) used: bool,
    /// Whether a Python number of another type will do, where its value fits.
    pub(super) weak: bool,
    pub(super) default: Option<Py<PyAny>>,
}

/// The whole declaration, read once.
pub(super) struct Declared {
    pub(super) spec: StencilSpec,
    /// Where each field of `spec` stands among `names`.
    pub(super) fields_at: Vec<usize>,
    pub(super) parameters: Vec<Parameter>,
    /// Names in the order of positional arguments.
    pub(super) names: Vec<Py<PyString>>,
    /// How many of them may be given without their name.
    pub(super) positional: usize,
    /// The user's names of dimensions, and the stencil's.
    pub(super) dims: HashMap<Dim, Dim>,
    /// Whether the stencil asks for writable memory also of what it only reads.
    pub(super) asks_writable: bool,
}

impl Declared {
    pub(super) fn read(
        declaration: &Bound<'_, PyAny>,
        dims: &HashMap<String, String>,
        on_device: OnMismatch,
        on_memory: OnMismatch,
    ) -> PyResult<Self> {
        let py = declaration.py();
        let names: Vec<Bound<'_, PyString>> =
            declaration.getattr(intern!(py, "order"))?.extract()?;
        let at = |name: &str| position(&names, name);
        let takes = declaration.getattr(intern!(py, "takes"))?;
        let preset = preset(&declaration.getattr(intern!(py, "backend"))?)?;
        let fields: Vec<FieldSpec> = entries(declaration, "fields")?
            .iter()
            .map(|field| field_spec(field, preset))
            .collect::<PyResult<_>>()?;
        let dim = |(own, theirs): (&String, &String)| (Dim::from_name(own), Dim::from_name(theirs));
        Ok(Self {
            fields_at: fields.iter().map(|field| at(&field.name)).collect::<PyResult<_>>()?,
            parameters: entries(declaration, "scalars")?
                .iter()
                .map(|scalar| Parameter::read(scalar, &at))
                .collect::<PyResult<_>>()?,
            positional: declaration.getattr(intern!(py, "positional"))?.extract()?,
            spec: StencilSpec {
                name: declaration.getattr(intern!(py, "name"))?.extract()?,
                fields,
                axes: gt4py::any_names(&declaration.getattr(intern!(py, "axes"))?)?,
                min_points: ints("min_points", &declaration.getattr(intern!(py, "min_points"))?)?,
                typed: declaration.getattr(intern!(py, "typed"))?.is_truthy()?,
                target: target(&declaration.getattr(intern!(py, "device"))?)?,
                backend: preset.map_or("", |preset| preset.name),
                decides_domain: declaration.getattr(intern!(py, "decides_domain"))?.is_truthy()?,
                told_origin: takes.contains("origin")?,
                told_domain: takes.contains("domain")?,
                reach_known: declaration.getattr(intern!(py, "reach_known"))?.is_truthy()?,
                on_device,
                on_memory,
            },
            asks_writable: declaration.getattr(intern!(py, "asks_writable"))?.is_truthy()?,
            names: names.into_iter().map(Bound::unbind).collect(),
            dims: dims.iter().map(dim).collect(),
        })
    }
}

impl Parameter {
    fn read(scalar: &Bound<'_, PyAny>, at: &impl Fn(&str) -> PyResult<usize>) -> PyResult<Self> {
        let py = scalar.py();
        let name: String = scalar.getattr(intern!(py, "name"))?.extract()?;
        let dtype = scalar.getattr(intern!(py, "dtype"))?;
        let default = scalar.getattr(intern!(py, "default"))?.cast_into::<PyTuple>()?;
        Ok(Self {
            at: at(&name)?,
            name,
            known: if dtype.is_none() { None } else { dtype_from(&dtype).ok() },
            dtype: Some(dtype.unbind()).filter(|dtype| !dtype.is_none(py)),
            weak: scalar.getattr(intern!(py, "weak"))?.is_truthy()?,
            used: scalar.getattr(intern!(py, "used"))?.is_truthy()?,
            default: default.iter().next().map(Bound::unbind),
        })
    }
}

fn entries<'py>(declaration: &Bound<'py, PyAny>, name: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
    declaration.getattr(name)?.try_iter()?.collect()
}

/// Where `name` stands in the order of the arguments.
fn position(order: &[Bound<'_, PyString>], name: &str) -> PyResult<usize> {
    let found = order.iter().position(|one| one.to_cow().is_ok_and(|one| one == name));
    found.ok_or_else(|| {
        PyValueError::new_err(format!(
            "bind: expected '{name}' among the stencil's arguments, got none"
        ))
    })
}

fn preset(name: &Bound<'_, PyAny>) -> PyResult<Option<&'static Preset>> {
    if name.is_none() {
        return Ok(None);
    }
    // A backend of GT4Py that no preset knows works; nothing is known of what it likes.
    Ok(Preset::from_name(&name.extract::<String>()?).ok())
}

fn target(device: &Bound<'_, PyAny>) -> PyResult<Target> {
    if device.is_none() || device.eq("cpu")? {
        return Ok(Target::Host);
    }
    if device.eq("gpu")? {
        return Ok(Target::Gpu(None));
    }
    match device.extract::<(String, i32)>() {
        Ok((kind, number)) if kind == "gpu" && number >= 0 => Ok(Target::Gpu(Some(number))),
        _ => Err(Error::Argument(format!(
            "device: expected None, 'cpu', 'gpu' or ('gpu', number), got {}",
            device.repr()?
        ))
        .into()),
    }
}

fn field_spec(field: &Bound<'_, PyAny>, fast: Option<&'static Preset>) -> PyResult<FieldSpec> {
    let get = |name: &str| field.getattr(name);
    let dims = gt4py::any_names(&get("dims")?)?;
    let dtype = dtype_from(&get("dtype")?)?;
    let demanded = preset(&get("preset")?)?;
    let by_preset = |preset: &Preset| preset.layout(dims.len(), Some(&dims));
    let ranks = match get("layout")? {
        none if none.is_none() => demanded.map(by_preset),
        layout => Some(ints("layout", &layout)?),
    };
    let alignment = match get("alignment")?.extract::<Option<usize>>()? {
        Some(elements) => elements.saturating_mul(dtype.itemsize()),
        None => demanded.map_or(1, |preset| preset.alignment(dtype.itemsize())),
    };
    Ok(FieldSpec {
        name: get("name")?.extract()?,
        data_shape: ints("data_shape", &get("data_shape")?)?,
        access: access(&get("access")?)?,
        reach: reach(&get("reach")?, &dims)?,
        fast: fast.map(by_preset),
        dims,
        dtype,
        ranks,
        alignment,
    })
}

fn access(name: &Bound<'_, PyAny>) -> PyResult<Access> {
    match name.extract::<String>()?.as_str() {
        "unused" => Ok(Access::Unused),
        "read" => Ok(Access::Read),
        "write" => Ok(Access::Write),
        "update" => Ok(Access::Update),
        other => Err(PyValueError::new_err(format!(
            "access: expected 'unused', 'read', 'write' or 'update', got '{other}'"
        ))),
    }
}

fn reach(pairs: &Bound<'_, PyAny>, dims: &Dims) -> PyResult<Halo> {
    if pairs.is_none() {
        return Ok(Halo::from_elem((0, 0), dims.len()));
    }
    let pairs: Vec<(i64, i64)> = pairs.extract()?;
    if pairs.len() == dims.len() {
        return Ok(Halo::from_vec(pairs));
    }
    let text = format!(
        "reach: expected a pair for each of {} dimensions, got {}",
        dims.len(),
        pairs.len()
    );
    Err(PyValueError::new_err(text))
}

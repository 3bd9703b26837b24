//! Reads `origin` and `domain` of a call, as GT4Py takes them, and by the names of axes.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::declared::Declared;
use crate::field::{Dim, Dims, show_dims};
use crate::layout::Extents;
use crate::protocol::read::{int, ints};
use crate::stencil::{CallOptions, FieldSpec, StencilSpec};

/// Reads the options of a call.
pub(super) fn read(
    declared: &Declared,
    origin: Option<&Bound<'_, PyAny>>,
    domain: Option<&Bound<'_, PyAny>>,
    functional: bool,
) -> PyResult<CallOptions> {
    let spec = &declared.spec;
    let sizes_outputs = functional && spec.decides_domain;
    check_takes(spec, "origin", origin, spec.takes_origin)?;
    check_takes(spec, "domain", domain, spec.takes_domain || sizes_outputs)?;
    let domain = domain.map(|domain| along(declared, "domain", domain, &spec.axes)).transpose()?;
    Ok(CallOptions { domain, origins: origins(declared, origin)?, functional })
}

fn check_takes(
    spec: &StencilSpec,
    option: &str,
    given: Option<&Bound<'_, PyAny>>,
    takes: bool,
) -> PyResult<()> {
    if given.is_none() || takes {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!(
        "{option}: expected none for '{}', which is not told where to compute, got one; slice the \
         arrays, or give the stencil a parameter {option}",
        spec.name
    )))
}

/// `origin` is one for all fields, or a dict with names of fields and `_all_`.
fn origins(
    declared: &Declared,
    origin: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<Option<Extents>>> {
    let spec = &declared.spec;
    let Some(origin) = origin else {
        return Ok(Vec::new());
    };
    let of_all = |all: &Bound<'_, PyAny>| along(declared, "origin", all, &spec.axes);
    let Some(named) = by_field(declared, origin)? else {
        let all = of_all(origin)?;
        let of_field = |field| Some(on_axes_of(spec, field, &all));
        return Ok(spec.fields.iter().map(of_field).collect());
    };
    check_names(spec, named)?;
    let all = named.get_item("_all_")?.map(|all| of_all(&all)).transpose()?;
    let own = |field: &FieldSpec| match named.get_item(&field.name)? {
        Some(own) => {
            let spatial: Dims =
                field.dims.iter().filter(|dim| spec.axes.contains(dim)).cloned().collect();
            along(declared, &format!("origin of '{}'", field.name), &own, &spatial).map(Some)
        }
        None => Ok(all.as_ref().map(|all| on_axes_of(spec, field, all))),
    };
    spec.fields.iter().map(own).collect()
}

/// The dict, unless all of its keys are names of axes.
fn by_field<'a, 'py>(
    declared: &Declared,
    origin: &'a Bound<'py, PyAny>,
) -> PyResult<Option<&'a Bound<'py, PyDict>>> {
    let Ok(named) = origin.cast::<PyDict>() else { return Ok(None) };
    if named.is_empty() {
        return Ok(Some(named)); // no field has one
    }
    for name in named.keys() {
        let name = name.str()?.to_string();
        let is_field = declared.spec.fields.iter().any(|field| field.name == name);
        if is_field || !declared.spec.axes.contains(&axis(declared, &name)) {
            return Ok(Some(named));
        }
    }
    Ok(None)
}

/// The stencil's axis for a name of the user's.
fn axis(declared: &Declared, name: &str) -> Dim {
    let name = Dim::from_name(name);
    declared.dims.get(&name).cloned().unwrap_or(name)
}

/// Reads a number for each axis: a sequence in their order, or a dict by name.
fn along(
    declared: &Declared,
    what: &str,
    given: &Bound<'_, PyAny>,
    axes: &Dims,
) -> PyResult<Extents> {
    let Ok(named) = given.cast::<PyDict>() else { return Ok(ints(what, given)?) };
    let wrong = |expected: String| {
        let keys = PyTuple::new(given.py(), named.keys())?.repr()?;
        let text = format!("{what}: expected {expected}, got {keys}");
        Err(PyValueError::new_err(text))
    };
    let mut found = vec![None; axes.len()];
    for (name, number) in named {
        let at = axes.iter().position(|known| *known == axis(declared, &name.to_string()));
        match at.and_then(|at| found.get_mut(at)) {
            Some(slot @ None) => *slot = Some(int(what, &number)?),
            _ => return wrong(format!("each of {} once", show_dims(axes))),
        }
    }
    match axes.iter().zip(&found).find(|(_, number)| number.is_none()) {
        Some((missing, _)) => {
            wrong(format!("a number for '{missing}', as for each of {}", show_dims(axes)))
        }
        None => Ok(found.into_iter().flatten().collect()),
    }
}

fn check_names(spec: &StencilSpec, named: &Bound<'_, PyDict>) -> PyResult<()> {
    for name in named.keys() {
        let name = name.str()?;
        let name = name.to_cow()?;
        if name != "_all_" && !spec.fields.iter().any(|field| field.name == name) {
            return Err(PyValueError::new_err(format!(
                "origin: expected names of fields or '_all_', got '{name}'"
            )));
        }
    }
    Ok(())
}

/// Picks the numbers for the axes that a field has from an origin along all axes of the iteration.
fn on_axes_of(spec: &StencilSpec, field: &FieldSpec, all: &Extents) -> Extents {
    if all.len() != spec.axes.len() {
        return all.clone(); // a field's own dimensions, or an error that resolve reports
    }
    let at = |dim| spec.axes.iter().position(|axis| axis == dim).and_then(|at| all.get(at));
    field.dims.iter().filter_map(|dim| at(dim).copied()).collect()
}

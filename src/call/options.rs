//! Reads `origin` and `domain` of a call, in GT4Py's forms or by the names of axes. `stencil` checks
//! them against the arrays.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString, PyTuple};

use super::declared::Declared;
use crate::field::{Dim, Dims, show_dims};
use crate::layout::Extents;
use crate::protocol::read::{entries, int, ints, shown, wrong_type};
use crate::stencil::{CallOptions, DecidedBy, FieldSpec, StencilSpec};

/// Reads the options of a call.
pub(super) fn read(
    declared: &Declared,
    origin: Option<&Bound<'_, PyAny>>,
    domain: Option<&Bound<'_, PyAny>>,
    functional: bool,
) -> PyResult<CallOptions> {
    let spec = &declared.spec;
    let sizes_outputs = functional && spec.decided_by == DecidedBy::Stencil;
    check_takes(spec, "origin", origin, spec.decided_by.takes_origin())?;
    check_takes(spec, "domain", domain, spec.decided_by.takes_domain() || sizes_outputs)?;
    let (start, domain) = match domain {
        Some(domain) if spec.decided_by == DecidedBy::Outputs => window(declared, domain)?,
        Some(domain) => (None, Some(along(declared, "domain", domain, &spec.axes)?)),
        None => (None, None),
    };
    Ok(CallOptions { domain, start, origins: origins(declared, origin)?, functional })
}

/// Reads the first point and the number of points of a domain: numbers of points, ranges by name, or
/// a `gtx.Domain`. An axis that no output has may be left out.
fn window(
    declared: &Declared,
    given: &Bound<'_, PyAny>,
) -> PyResult<(Option<Extents>, Option<Extents>)> {
    let (py, axes) = (given.py(), &declared.spec.axes);
    let named = match (dict_of(given)?, given.getattr_opt("ranges")?) {
        (Some(named), _) => named,
        (_, Some(ranges)) => {
            let pairs = given.getattr("dims")?.try_iter()?.zip(ranges.try_iter()?);
            let named = PyDict::new(py);
            for (dim, range) in pairs {
                named.set_item(dim?, range?)?;
            }
            named
        }
        _ => {
            check_single(given)?;
            if given.hasattr("start")? && given.hasattr("stop")? {
                let expected = "numbers of points, a dict of ranges or a gtx.Domain";
                return Err(wrong_type("domain", expected, given).into());
            }
            let points = along(declared, "domain", given, axes)?;
            return Ok((None, Some(completed(declared, points))));
        }
    };
    let (starts, points) = (PyDict::new(py), PyDict::new(py));
    for (name, range) in &named {
        let (first, end) = range_of(&range)?;
        if end < first {
            return Err(PyValueError::new_err(format!(
                "domain: expected an end of at least {first} along {}, its first point, got {end}; \
                 give the first point and the point after the last",
                name_of(&name)?
            )));
        }
        starts.set_item(&name, first)?;
        points.set_item(&name, end.saturating_sub(first))?;
    }
    let given = |key: Bound<'_, PyAny>| Ok(axis(declared, &name_of(&key)?));
    let named = named.keys().iter().map(given).collect::<PyResult<Vec<Dim>>>()?;
    for dim in axes.iter().filter(|dim| !named.contains(dim) && !is_computed(declared, dim)) {
        starts.set_item(dim.to_string(), 0)?;
        points.set_item(dim.to_string(), 1)?;
    }
    let read = |named| along(declared, "domain", named, axes).map(Some);
    Ok((read(&starts)?, read(&points)?))
}

/// Completes numbers of points: an axis that no output has may be left out, and gets 1.
fn completed(declared: &Declared, points: Extents) -> Extents {
    let axes = &declared.spec.axes;
    if points.len() != axes.iter().filter(|dim| is_computed(declared, dim)).count() {
        return points; // along all of them, or an error that resolve reports
    }
    let mut given = points.into_iter();
    let of = |dim| if is_computed(declared, dim) { given.next() } else { Some(1) };
    axes.iter().filter_map(of).collect()
}

/// Refuses a domain for each output.
fn check_single(given: &Bound<'_, PyAny>) -> PyResult<()> {
    let Ok(parts) = given.cast::<PyTuple>() else { return Ok(()) };
    let is_domain = |one: Bound<'_, PyAny>| {
        one.is_instance_of::<PyDict>() || one.hasattr("ranges").unwrap_or(false)
    };
    if parts.len() < 2 || !parts.iter().any(is_domain) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "domain: expected one for all outputs, got {}; call the operator in a program that gives \
         each output its own",
        parts.len()
    )))
}

/// True if an output has the dimension.
fn is_computed(declared: &Declared, dim: &Dim) -> bool {
    let mut fields = declared.spec.fields.iter();
    fields.any(|field| field.access.writes() && field.dims.contains(dim))
}

/// Reads the first point of a range and the point after its last: from an int (which begins at 0), a
/// pair of ints, a `range`, a `slice` or a `gtx.UnitRange`.
fn range_of(given: &Bound<'_, PyAny>) -> PyResult<(i64, i64)> {
    if let (Some(start), Some(stop)) = (given.getattr_opt("start")?, given.getattr_opt("stop")?) {
        let step = given.getattr_opt("step")?.filter(|step| !step.is_none());
        if step.is_some_and(|step| step.extract::<i64>().ok() != Some(1)) {
            let text = format!("domain: expected a range with step 1, got {}", shown(given));
            return Err(PyValueError::new_err(text));
        }
        return Ok((int("domain", &start)?, int("domain", &stop)?));
    }
    if entries(given).is_none() {
        return Ok((0, int("domain", given)?));
    }
    match ints("domain", given)?.as_slice() {
        &[first, end] => Ok((first, end)),
        _ => Err(wrong_type("domain", "a first point and the end", given).into()),
    }
}

/// The name in a key: the key itself, or the name of a `gtx.Dimension`.
fn name_of(key: &Bound<'_, PyAny>) -> PyResult<String> {
    let name = key.getattr_opt("value")?;
    Ok(name.as_ref().unwrap_or(key).str()?.to_string())
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
    let way_out = match spec.decided_by {
        DecidedBy::Stencil => "write it in the program".into(),
        _ => format!("give the stencil a parameter {option}"),
    };
    Err(PyTypeError::new_err(format!(
        "{option}: expected none for '{}', which has no parameter for it, got one; slice the arrays, \
         or {way_out}",
        spec.name
    )))
}

/// Reads `origin`: one for all fields, or a dict by the names of fields, with `_all_` for the rest.
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
    check_names(declared, &named)?;
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

/// The entries of a mapping as they are now: reading them may run code that changes it. `None` for
/// other objects.
fn dict_of<'py>(given: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    if given.is_instance_of::<PyTuple>() {
        return Ok(None); // asking whether it is a mapping takes longer
    }
    if let Ok(dict) = given.cast::<PyDict>() {
        return dict.copy().map(Some);
    }
    let Ok(mapping) = given.cast::<PyMapping>() else { return Ok(None) };
    let dict = PyDict::new(given.py());
    dict.update(mapping)?;
    Ok(Some(dict))
}

/// The entries by field, unless all keys are names of axes.
fn by_field<'py>(
    declared: &Declared,
    origin: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(named) = dict_of(origin)? else { return Ok(None) };
    if named.is_empty() {
        return Ok(Some(named)); // no field has one
    }
    for name in named.keys() {
        let name = name_of(&name)?;
        let is_field = declared.spec.fields.iter().any(|field| field.name == name);
        if is_field || !declared.spec.axes.contains(&axis(declared, &name)) {
            return Ok(Some(named));
        }
    }
    Ok(None)
}

/// Translates a user's name of an axis into the stencil's.
fn axis(declared: &Declared, name: &str) -> Dim {
    let name = Dim::from_name(name);
    declared.spec.dims.get(&name).cloned().unwrap_or(name)
}

/// Reads a number for each axis: a sequence in their order, or a dict by name.
fn along(
    declared: &Declared,
    what: &str,
    given: &Bound<'_, PyAny>,
    axes: &Dims,
) -> PyResult<Extents> {
    let Some(named) = dict_of(given)? else { return Ok(ints(what, given)?) };
    let keys = named.keys();
    let wrong = |expected: String| {
        let keys = PyTuple::new(given.py(), keys.iter())?.repr()?;
        let text = format!("{what}: expected {expected}, got {keys}");
        Err(PyValueError::new_err(text))
    };
    let mut found = vec![None; axes.len()];
    for (name, number) in named {
        let name = axis(declared, &name_of(&name)?);
        let at = axes.iter().position(|known| *known == name);
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

fn check_names(declared: &Declared, named: &Bound<'_, PyDict>) -> PyResult<()> {
    let py = named.py();
    for name in named.keys() {
        let Ok(text) = name.cast::<PyString>() else {
            let text = format!("origin: expected names of fields or '_all_', got {}", shown(&name));
            return Err(PyValueError::new_err(text));
        };
        let name = text.to_cow()?;
        if name == "_all_" || declared.spec.fields.iter().any(|field| field.name == name) {
            continue;
        }
        let of = declared.parts_named(py, &name).join(", ");
        let expected = match of.is_empty() {
            true => "names of fields or '_all_'".into(),
            false => format!("one for each part of '{name}', {of}"),
        };
        let text = format!("origin: expected {expected}, got '{name}'");
        return Err(PyValueError::new_err(text));
    }
    Ok(())
}

/// Picks from an origin along all axes the numbers of the axes that the field has.
fn on_axes_of(spec: &StencilSpec, field: &FieldSpec, all: &Extents) -> Extents {
    if all.len() != spec.axes.len() {
        return all.clone(); // a field's own dimensions, or an error that resolve reports
    }
    let at = |dim| spec.axes.iter().position(|axis| axis == dim).and_then(|at| all.get(at));
    field.dims.iter().filter_map(|dim| at(dim).copied()).collect()
}

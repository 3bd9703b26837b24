//! Step 1 of a call, first half: each value under its name, scalars and options checked.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::declared::{Declared, OFFSET_PROVIDER};
use super::{options, scalars};
use crate::error::did_you_mean;
use crate::stencil::CallOptions;

/// The arguments of a call as Python passes them.
pub(super) struct Passed<'a, 'py> {
    pub(super) args: &'a Bound<'py, PyTuple>,
    pub(super) kwargs: Option<&'a Bound<'py, PyDict>>,
    pub(super) origin: Option<&'a Bound<'py, PyAny>>,
    pub(super) domain: Option<&'a Bound<'py, PyAny>>,
    /// Outputs may be missing.
    pub(super) functional: bool,
}

/// The values of a call.
pub(super) struct Values<'py> {
    /// One for each name of the declaration.
    pub(super) named: Vec<Option<Bound<'py, PyAny>>>,
    /// One for each parameter that is a scalar; `None` for an unused one that is missing.
    pub(super) scalars: Vec<Option<Bound<'py, PyAny>>>,
    /// The connectivities, as given or as declared; `None` for a stencil that takes none.
    pub(super) connectivities: Option<Bound<'py, PyAny>>,
    pub(super) options: CallOptions,
}

impl<'py> Values<'py> {
    pub(super) fn read(declared: &Declared, passed: &Passed<'_, 'py>) -> PyResult<Self> {
        let &Passed { args, kwargs, origin, domain, functional } = passed;
        let named = by_name(declared, args, kwargs, functional)?;
        let options = place(declared, args.py(), origin, domain, functional)?;
        let given = given_connectivities(declared, kwargs)?;
        Self::of(declared, args.py(), named, given, options)
    }

    /// The values of a call whose arguments have their names. `connectivities`: those that it gives.
    #[inline]
    pub(super) fn of(
        declared: &Declared,
        py: Python<'py>,
        named: Vec<Option<Bound<'py, PyAny>>>,
        connectivities: Option<Bound<'py, PyAny>>,
        options: CallOptions,
    ) -> PyResult<Self> {
        check_complete(py, declared, &named, options.functional)?;
        let scalars = scalars::read(py, declared, &named)?;
        let default = declared.connectivities.as_ref();
        let connectivities = default.map(|own| match connectivities {
            Some(given) => given,
            None => own.bind(py).clone(),
        });
        Ok(Self { named, scalars, connectivities, options })
    }
}

/// Reads origin and domain of a call, or of the `functools.partial` that was bound.
pub(super) fn place<'py>(
    declared: &Declared,
    py: Python<'py>,
    origin: Option<&Bound<'py, PyAny>>,
    domain: Option<&Bound<'py, PyAny>>,
    functional: bool,
) -> PyResult<CallOptions> {
    let partial = &declared.partial;
    let origin = origin.or(partial.origin.as_ref().map(|given| given.bind(py)));
    let domain = domain.or(partial.domain.as_ref().map(|given| given.bind(py)));
    options::read(declared, origin, domain, functional)
}

/// The connectivities that a call gives, to a stencil that takes some.
fn given_connectivities<'py>(
    declared: &Declared,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(kwargs) = declared.connectivities.as_ref().and(kwargs) else { return Ok(None) };
    let given = kwargs.get_item(intern!(kwargs.py(), OFFSET_PROVIDER))?;
    Ok(given.filter(|given| !given.is_none()))
}

/// The arguments without a name, each in its place. Those of a functional call are the inputs, or all.
fn by_position<'py>(
    declared: &Declared,
    args: &Bound<'py, PyTuple>,
    functional: bool,
) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
    let partial = &declared.partial;
    let mut values: Vec<_> = args.iter().map(Some).collect();
    let most = declared.positional.saturating_sub(partial.leading);
    if values.len() > most {
        let got = values.len();
        let plural = if most == 1 { "" } else { "s" };
        let together = together(args.py(), declared);
        let expected =
            format!("at most {most} argument{plural} without a name, got {got}{together}");
        return Err(declared.wrong_call(args.py(), &expected));
    }
    if functional && values.len() < most {
        values = spread(args.py(), declared, values)?;
    } else if partial.leading > 0 {
        values.splice(0..0, std::iter::repeat_n(None, partial.leading));
    }
    values.resize(declared.parameters.len(), None);
    Ok(values)
}

/// Gives every argument its name, as Python itself does for a function. Those of a functional call
/// that have none are the inputs, or all.
pub(super) fn by_name<'py>(
    declared: &Declared,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    functional: bool,
) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
    let mut values = by_position(declared, args, functional)?;
    if declared.parts.is_empty() && declared.partial.arguments.is_none() && kwargs.is_none() {
        return Ok(values);
    }
    let mut parts = vec![None; if declared.parts.is_empty() { 0 } else { declared.names.len() }];
    let given = declared.partial.arguments.as_ref();
    let given = given.map(|given| given.bind(args.py()).iter());
    let is_left = |(name, _): &(Bound<'py, PyAny>, _)| {
        !kwargs.is_some_and(|kwargs| has_any_of(declared, kwargs, name).unwrap_or(false))
    };
    let given = given.into_iter().flatten().filter(is_left);
    for (name, value) in given.chain(kwargs.into_iter().flatten()) {
        let (py, name) = (name.py(), name.cast_into::<PyString>()?);
        if declared.connectivities.is_some() && name == OFFSET_PROVIDER {
            continue;
        }
        let is = |known: &Py<PyString>| {
            known.is(&name) || known.bind(py).as_any().eq(&name).unwrap_or(false)
        };
        let slot = match declared.parameters.iter().position(is) {
            Some(at) => values.get_mut(at),
            None => declared.names.iter().position(is).and_then(|at| parts.get_mut(at)),
        };
        let expected = match slot {
            Some(slot @ None) => {
                *slot = Some(value);
                continue;
            }
            Some(_) => format!("one value for '{name}', got two"),
            None if declared.ignores.iter().any(|known| name == known.as_str()) => continue,
            None => return Err(unknown(declared, &name)),
        };
        return Err(declared.wrong_call(py, &expected));
    }
    if declared.parts.is_empty() {
        return Ok(values);
    }
    for ((own, name), value) in declared.parts.iter().zip(&declared.parameters).zip(values) {
        if let Some(value) = value {
            let is_given = |&at: &usize| parts.get(at).is_some_and(Option::is_some);
            let twice = own.names_at().into_iter().find(is_given);
            if let Some(name) = twice.and_then(|at| declared.name(args.py(), at)) {
                let expected = format!("one value for '{name}', got two");
                return Err(declared.wrong_call(args.py(), &expected));
            }
            own.spread(&name.bind(args.py()).to_cow()?, &value, &mut parts)?;
        }
    }
    Ok(parts)
}

/// True if an argument of this name, or a part of it, is among the keywords.
fn has_any_of<'py>(
    declared: &Declared,
    kwargs: &Bound<'py, PyDict>,
    name: &Bound<'py, PyAny>,
) -> PyResult<bool> {
    let py = name.py();
    let is = |known: &Py<PyString>| known.bind(py).as_any().eq(name).unwrap_or(false);
    let at = declared.parameters.iter().position(is);
    let parts = at.and_then(|at| declared.parts.get(at)).map(|own| own.names_at());
    for part in parts.iter().flatten().filter_map(|&at| declared.name(py, at)) {
        if kwargs.contains(part)? {
            return Ok(true);
        }
    }
    kwargs.contains(name)
}

/// Refuses an unknown argument, and names the one that is meant.
fn unknown(declared: &Declared, name: &Bound<'_, PyString>) -> PyErr {
    let (py, name) = (name.py(), name.to_string());
    let own = declared.parameters.iter().map(|own| own.bind(py).to_string());
    let options = ["origin", "domain", "exec_info"].map(String::from);
    let known: Vec<String> = own.chain(options).chain(declared.ignores.iter().cloned()).collect();
    if ["origin", "domain", "exec_info"].contains(&name.as_str()) {
        let called = &declared.spec.name;
        return PyTypeError::new_err(format!("{called}: expected no {name} here, got one"));
    }
    let way_out = did_you_mean(&name, known.iter().map(String::as_str));
    let expected = format!("one of its arguments, origin, domain or exec_info, got '{name}'");
    match way_out {
        Some(way_out) => {
            let called = &declared.spec.name;
            PyTypeError::new_err(format!("{called}: expected {expected}; {way_out}"))
        }
        None => declared.wrong_call(py, &expected),
    }
}

/// Describes the arguments that have parts, for a call that passes the parts one by one.
fn together(py: Python<'_>, declared: &Declared) -> String {
    let arguments = declared.parameters.iter().zip(&declared.parts);
    let each = arguments.filter_map(|(name, parts)| Some((name.bind(py), parts.wanted()?)));
    each.map(|(name, wanted)| format!("; '{name}' is {wanted}")).collect()
}

/// The arguments that were given as a dict, with the connectivities if some were.
pub(super) fn dict_by_name<'py>(
    declared: &Declared,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    functional: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let named = PyDict::new(args.py());
    let values = by_name(declared, args, kwargs, functional)?;
    for (name, value) in declared.names.iter().zip(values) {
        if let Some(value) = value {
            named.set_item(name, value)?;
        }
    }
    if let Some(given) = given_connectivities(declared, kwargs)? {
        named.set_item(OFFSET_PROVIDER, given)?;
    }
    Ok(named)
}

/// Puts the inputs of a functional call behind each other, with gaps for the outputs.
fn spread<'py>(
    py: Python<'py>,
    declared: &Declared,
    given: Vec<Option<Bound<'py, PyAny>>>,
) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
    let inputs = declared.inputs(py);
    if given.len() > inputs.len() {
        let name = |&at: &usize| declared.parameters.get(at).map(|name| name.bind(py).to_string());
        let names = inputs.iter().filter_map(name).collect::<Vec<_>>().join(", ");
        return Err(declared.wrong_call(
            py,
            &format!(
                "the inputs ({names}), or all {} arguments without a name, got {}; pass the \
                 outputs by name",
                declared.positional.saturating_sub(declared.partial.leading),
                given.len()
            ),
        ));
    }
    let mut values = vec![None; declared.positional];
    for (at, value) in inputs.into_iter().zip(given) {
        if let Some(slot) = values.get_mut(at) {
            *slot = value;
        }
    }
    Ok(values)
}

/// Refuses a call without a field that the stencil uses.
fn check_complete(
    py: Python<'_>,
    declared: &Declared,
    values: &[Option<Bound<'_, PyAny>>],
    functional: bool,
) -> PyResult<()> {
    let mut needed = declared.fields().filter(|(field, _)| field.access.is_needed(functional));
    match needed.find(|&(_, at)| !matches!(values.get(at), Some(Some(_)))) {
        None => Ok(()),
        Some((field, _)) => Err(declared.missing(py, &field.name)),
    }
}

//! Arguments that are tuples or named collections of fields and scalars, which a call takes apart.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

/// Where the value of an argument belongs.
pub(super) enum Parts {
    /// To one field or scalar: the position of its name.
    One(usize),
    /// To the parts of a tuple, or of a collection whose attributes have these names.
    Many { keys: Vec<Py<PyString>>, parts: Vec<Parts> },
}

impl Parts {
    /// Reads a name, or a `dlfield.stencils.declaration.DeclaredCollection`, and appends its names.
    pub(super) fn read(
        declared: &Bound<'_, PyAny>,
        names: &mut Vec<Py<PyString>>,
    ) -> PyResult<Self> {
        if let Ok(name) = declared.cast::<PyString>() {
            names.push(name.clone().unbind());
            return Ok(Self::One(names.len().saturating_sub(1)));
        }
        let parts = declared.getattr("parts")?.try_iter()?;
        Ok(Self::Many {
            keys: declared.getattr("keys")?.extract()?,
            parts: parts.map(|part| Self::read(&part?, names)).collect::<PyResult<_>>()?,
        })
    }

    /// Puts a value, or its parts, where they belong.
    pub(super) fn spread<'py>(
        &self,
        what: &str,
        value: &Bound<'py, PyAny>,
        values: &mut [Option<Bound<'py, PyAny>>],
    ) -> PyResult<()> {
        let (keys, parts) = match self {
            Self::One(at) => {
                if let Some(slot) = values.get_mut(*at) {
                    *slot = Some(value.clone());
                }
                return Ok(());
            }
            Self::Many { keys, parts } => (keys, parts),
        };
        let items = taken_apart(what, keys, parts.len(), value)?;
        for (at, (part, item)) in parts.iter().zip(items).enumerate() {
            let what = match keys.get(at) {
                Some(key) => format!("{what}.{key}"),
                None => format!("{what}[{at}]"),
            };
            part.spread(&what, &item, values)?;
        }
        Ok(())
    }

    /// True for a tuple or a named collection.
    pub(super) fn is_many(&self) -> bool {
        matches!(self, Self::Many { .. })
    }

    /// Describes the expected argument, for a message; `None` for one field or scalar.
    pub(super) fn wanted(&self) -> Option<String> {
        match self {
            Self::One(_) => None,
            Self::Many { keys, parts } => Some(wanted(keys, parts.len())),
        }
    }

    /// The positions of all names.
    pub(super) fn names_at(&self) -> Vec<usize> {
        match self {
            Self::One(at) => vec![*at],
            Self::Many { parts, .. } => parts.iter().flat_map(Self::names_at).collect(),
        }
    }
}

/// The items of a tuple or list, or the attributes of a named collection.
fn taken_apart<'py>(
    what: &str,
    keys: &[Py<PyString>],
    expected: usize,
    value: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let py = value.py();
    // A plain tuple or list has methods of its own: count and index.
    let is_plain =
        value.is_exact_instance_of::<PyTuple>() || value.is_exact_instance_of::<PyList>();
    if !(keys.is_empty() || is_plain) {
        let attributes = keys.iter().map(|key| value.getattr_opt(key.bind(py)));
        if let Some(attributes) = attributes.collect::<PyResult<Option<Vec<_>>>>()? {
            return Ok(attributes);
        }
    }
    let items: Option<Vec<_>> = match (value.cast::<PyTuple>(), value.cast::<PyList>()) {
        (Ok(tuple), _) => Some(tuple.iter().collect()),
        (_, Ok(list)) => Some(list.iter().collect()),
        _ => None,
    };
    let way_out = match keys.is_empty() {
        true => "pass its parts together",
        false => "pass an object with these attributes, or a tuple",
    };
    let got = match items {
        Some(items) if items.len() == expected => return Ok(items),
        Some(items) => format!("{} items", items.len()),
        None => format!("an object of type '{}'", value.get_type().name()?),
    };
    Err(PyTypeError::new_err(format!(
        "argument '{what}': expected {}, got {got}; {way_out}",
        wanted(keys, expected)
    )))
}

fn wanted(keys: &[Py<PyString>], parts: usize) -> String {
    let named: Vec<_> = keys.iter().map(ToString::to_string).collect();
    match named.is_empty() {
        true => format!("a tuple of {parts}"),
        false => format!("a collection of {}", named.join(", ")),
    }
}

//! From the value of an argument to what `resolve` takes.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::BoundStencil;
use super::around::Around;
use super::declare::Parameter;
use super::read::Values;
use crate::error::Failure;
use crate::field::Dims;
use crate::python::storage::Source;
use crate::stencil::{Access, Argument, FieldSpec};

impl BoundStencil {
    /// The fields, imported without a copy, and what they want called. `None` for an unused one.
    pub(super) fn arguments(
        &self,
        values: &Values<'_>,
    ) -> PyResult<(Vec<Option<Argument>>, Around)> {
        let mut around = Around::default();
        let one = |(field, &at): (&FieldSpec, &usize)| match values.get(at).and_then(Option::as_ref)
        {
            Some(value) if !value.is_none() && field.access != Access::Unused => {
                self.argument(field, value, &mut around).map(Some)
            }
            _ => Ok(None),
        };
        let arguments =
            self.spec.fields.iter().zip(&self.fields_at).map(one).collect::<PyResult<_>>()?;
        Ok((arguments, around))
    }

    fn argument(
        &self,
        field: &FieldSpec,
        value: &Bound<'_, PyAny>,
        around: &mut Around,
    ) -> PyResult<Argument> {
        let source =
            Source::of(value).map_err(|failure| named(value.py(), &field.name, failure))?;
        let halo = source.field.halo;
        let dims = source.field.dims.map(|dims| self.translate(dims));
        around.add(source.hooks, field.access == Access::Write);
        let Source { managed, origin, kind, .. } = source;
        Ok(Argument { managed, dims, halo, origin, kind })
    }

    /// The user's names into the stencil's.
    fn translate(&self, dims: Dims) -> Dims {
        if self.dims.is_empty() {
            return dims;
        }
        dims.into_iter().map(|dim| self.dims.get(&dim).cloned().unwrap_or(dim)).collect()
    }

    /// The parameters in their own order, checked; `None` for an unused one that is missing.
    pub(super) fn scalars<'py>(
        &self,
        py: Python<'py>,
        values: &Values<'py>,
    ) -> PyResult<Values<'py>> {
        self.parameters.iter().map(|parameter| self.scalar(py, parameter, values)).collect()
    }

    fn scalar<'py>(
        &self,
        py: Python<'py>,
        parameter: &Parameter,
        values: &Values<'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        // GT4Py gives every parameter without a default the default None.
        let given = values.get(parameter.at).cloned().flatten().filter(|value| !value.is_none());
        match given.or_else(|| parameter.default.as_ref().map(|one| one.bind(py).clone())) {
            Some(value) if parameter.used => check_scalar(parameter, &value).map(|()| Some(value)),
            None if parameter.used => Err(self.missing(py, &parameter.name)),
            unused => Ok(unused),
        }
    }
}

/// GT4Py's own rule: the type of the value has the declared dtype. Nothing is converted.
fn check_scalar(parameter: &Parameter, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let (py, kind) = (value.py(), value.get_type());
    let dtype = py.import("numpy")?.call_method1("dtype", (&kind,));
    if dtype.is_ok_and(|dtype| dtype.eq(&parameter.dtype).unwrap_or(false)) {
        return Ok(());
    }
    let expected = &parameter.dtype;
    Err(PyValueError::new_err(format!(
        "argument '{}': expected a scalar of {expected}, got {} of type {}; convert it, for example with \
         numpy.{expected}(...)",
        parameter.name,
        shortened(value)?,
        kind.name()?
    )))
}

/// A value in a message; a whole array would hide the rest.
fn shortened(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let shown = value.repr()?.to_string();
    Ok(if shown.len() > 60 || shown.contains('\n') { "a value".into() } else { shown })
}

/// Names the argument: in the text of dlfield's own error, in a note on the producer's.
fn named(py: Python<'_>, name: &str, failure: Failure) -> PyErr {
    match failure {
        Failure::Ours(error) => error.about(&format!("argument '{name}'")).into(),
        Failure::Theirs(error) => {
            let note = format!("while dlfield imported argument '{name}'");
            let value = error.value(py);
            let noted = value.getattr("__notes__").and_then(|notes| notes.contains(&note));
            if !noted.unwrap_or(false) {
                // Where even that fails, the exception itself still tells.
                let _ = value.call_method1("add_note", (note,));
            }
            error
        }
    }
}

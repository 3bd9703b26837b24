//! Matches the axes of an argument with the dimensions of the field.

use super::footprint::{Span, Touched};
use super::placed::{Placed, Spatial};
use super::{Argument, FieldSpec, StencilSpec};
use crate::error::{Error, Result};
use crate::field::{Dim, Dims, mapping, show_dims};
use crate::layout::Extents;

/// Puts an argument's axes in the declared order: by name if it has names, else by position.
pub(super) fn place<'a>(
    stencil: &'a StencilSpec,
    spec: &'a FieldSpec,
    argument: &'a Argument,
    given: Option<&'a Extents>,
) -> Result<Placed<'a>> {
    let shape = argument.managed.layout().shape();
    if shape.len() != spec.dims.len() {
        return Err(wrong_ndim(spec, argument, shape));
    }
    let axes = match &argument.dims {
        Some(dims) if dims.len() != shape.len() => {
            return Err(Error::Argument(format!(
                "argument '{}': expected a name for each of its {} dimensions, got {}",
                spec.name,
                shape.len(),
                show_dims(dims)
            )));
        }
        None => (0..shape.len()).collect(),
        Some(dims) if *dims == spec.dims => (0..shape.len()).collect(),
        Some(dims) => {
            let find = |wanted| dims.iter().position(|dim| dim == wanted);
            let axes: Option<_> = spec.dims.iter().map(find).collect();
            axes.ok_or_else(|| Error::Argument(unmatched(stencil, spec, dims)))?
        }
    };
    let begins_itself = given.is_none() && argument.origin.is_some();
    let given = given.or(argument.origin.as_ref());
    let along = |((at, name), &own): ((usize, &'a Dim), &usize)| {
        let halo = argument.halo.as_ref().and_then(|halo| halo.get(own).copied());
        Some(Spatial {
            axis: stencil.axes.iter().position(|axis| axis == name)?,
            at,
            name,
            extent: *shape.get(own)?,
            halo: halo.unwrap_or((0, 0)),
            span: Span::default(),
        })
    };
    let along = spec.dims.iter().enumerate().zip(&axes).filter_map(along).enumerate();
    let spatial = along.map(|(own, one)| Spatial { span: spec.touched.span(own), ..one }).collect();
    let (origin, touched) = (Extents::from_elem(0, shape.len()), Touched::default());
    Ok(Placed { stencil, spec, argument, axes, spatial, given, begins_itself, origin, touched })
}

fn wrong_ndim(spec: &FieldSpec, argument: &Argument, shape: &[i64]) -> Error {
    let named = argument.dims.as_ref().map(|dims| format!(" {}", show_dims(dims)));
    Error::Argument(format!(
        "argument '{}': expected {} dimensions {}, got {}{} with shape {shape:?}; {}",
        spec.name,
        spec.dims.len(),
        show_dims(&spec.dims),
        shape.len(),
        named.unwrap_or_default(),
        way_out(spec, argument, shape.len())
    ))
}

/// Says how to add missing axes, or drop one that the field lacks.
fn way_out(spec: &FieldSpec, argument: &Argument, ndim: usize) -> String {
    let absent = spec.dims.len().saturating_sub(ndim);
    if absent > 0 {
        let key = format!("[...{}]", ", np.newaxis".repeat(absent));
        let Some(dims) = &argument.dims else {
            return format!("add the missing ones, for example with x{key}");
        };
        // An index by np.newaxis drops the names of a storage, and a DataArray refuses it.
        let missing = spec.dims.iter().filter(|dim| !dims.contains(dim)).take(absent);
        let all: Dims = dims.iter().chain(missing).cloned().collect();
        let all = show_dims(&all);
        return format!(
            "add the missing ones, for example with dlfield.as_storage(np.asarray(x){key}, dims={all})"
        );
    }
    let dims = argument.dims.as_deref().unwrap_or_default();
    let strange = dims.iter().position(|dim| !spec.dims.contains(dim));
    let at = strange.unwrap_or(ndim.saturating_sub(1));
    let key: Vec<&str> = (0..=at).map(|axis| if axis == at { "0" } else { ":" }).collect();
    format!("select a point along one, for example with x[{}]", key.join(", "))
}

/// The error prints the line that helps: a mapping from the user's names.
fn unmatched(stencil: &StencilSpec, spec: &FieldSpec, dims: &Dims) -> String {
    let known = |dim: &Dim| matches!(dim, Dim::Data(_)) || stencil.axes.contains(dim);
    let strange: Vec<&Dim> = dims.iter().filter(|dim| !known(dim)).collect();
    let way_out = if strange.is_empty() {
        "select or add dimensions until the names agree".into()
    } else {
        let mut given: Vec<String> =
            stencil.dims.iter().map(|(user, own)| format!("\"{user}\": \"{own}\", ")).collect();
        given.sort();
        let mapping = mapping(dims, &strange, &spec.dims).replacen('{', &given.concat(), 1);
        format!("say which is which, for example bind(stencil, dims={{{mapping})")
    };
    format!(
        "argument '{}': expected dims {} in any order, got {}; {way_out}",
        spec.name,
        show_dims(&spec.dims),
        show_dims(dims)
    )
}

//! Which axis of an argument is which dimension of the field.

use smallvec::SmallVec;

use super::bound::Bound;
use super::{Argument, FieldSpec, StencilSpec};
use crate::error::{Error, Result};
use crate::field::{Dim, Dims, show_dims};
use crate::layout::Extents;

/// Puts an argument's axes in the declared order: by name where it has names, else by position.
pub(super) fn bind<'a>(
    stencil: &'a StencilSpec,
    spec: &'a FieldSpec,
    argument: &'a Argument,
    given: Option<&'a Extents>,
) -> Result<Bound<'a>> {
    let shape = argument.managed.layout().shape();
    if shape.len() != spec.dims.len() {
        return Err(another_number(spec, argument, shape));
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
        Some(dims) => by_name(stencil, spec, dims)?,
    };
    let given = given.or(argument.origin.as_ref());
    let (spatial, origin) = (stencil.spatial(spec), Extents::from_elem(0, shape.len()));
    Ok(Bound { stencil, spec, argument, axes, spatial, given, origin })
}

fn another_number(spec: &FieldSpec, argument: &Argument, shape: &[i64]) -> Error {
    let named = argument.dims.as_ref().map(|dims| format!(" {}", show_dims(dims)));
    Error::Argument(format!(
        "argument '{}': expected {} dimensions {}, got {}{} with shape {shape:?}; add or drop a dimension, for \
         example with x[..., np.newaxis] or x[0]",
        spec.name,
        spec.dims.len(),
        show_dims(&spec.dims),
        shape.len(),
        named.unwrap_or_default()
    ))
}

fn by_name(stencil: &StencilSpec, spec: &FieldSpec, dims: &Dims) -> Result<SmallVec<[usize; 6]>> {
    let find = |wanted| dims.iter().position(|dim| dim == wanted);
    let axes: Option<SmallVec<[usize; 6]>> = spec.dims.iter().map(find).collect();
    axes.ok_or_else(|| Error::Argument(unmatched(stencil, spec, dims)))
}

/// The error prints the line that would help: a mapping from the user's names.
fn unmatched(stencil: &StencilSpec, spec: &FieldSpec, dims: &Dims) -> String {
    let known = |dim: &Dim| matches!(dim, Dim::Data(_)) || stencil.axes.contains(dim);
    let free: Vec<&Dim> = spec.dims.iter().filter(|dim| !dims.contains(dim)).collect();
    let strange: Vec<&Dim> = dims.iter().filter(|dim| !known(dim)).collect();
    let way_out = if strange.is_empty() {
        "select or add dimensions until the names agree".into()
    } else {
        let target = |dim| match (strange.as_slice(), free.as_slice()) {
            ([_], [only]) => format!("\"{only}\""),
            _ => meant_by(dim)
                .filter(|dim| free.contains(&dim))
                .map_or("...".into(), |dim| format!("\"{dim}\"")),
        };
        let pairs: Vec<_> =
            strange.iter().map(|dim| format!("\"{dim}\": {}", target(dim))).collect();
        format!("say which is which, for example bind(stencil, dims={{{}}})", pairs.join(", "))
    };
    format!(
        "argument '{}': expected dims {} in any order, got {}; {way_out}",
        spec.name,
        show_dims(&spec.dims),
        show_dims(dims)
    )
}

/// What a name usually stands for. Only for the text: nothing is ever mapped by it.
fn meant_by(dim: &Dim) -> Option<Dim> {
    match dim.to_string().to_lowercase().as_str() {
        "lon" | "longitude" | "x" | "i" => Some(Dim::I),
        "lat" | "latitude" | "y" | "j" => Some(Dim::J),
        "lev" | "level" | "z" | "k" | "height" | "depth" | "plev" => Some(Dim::K),
        _ => None,
    }
}

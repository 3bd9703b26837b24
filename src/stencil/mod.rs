//! Resolving the arguments of a stencil call: order of axes, origin, domain, checks. Pure: no
//! array is touched, nothing is copied, and a refused call has changed nothing.
//!
//! ```text
//! declared fields + arguments + origin/domain ──resolve──▶ CallPlan ──▶ the call
//! ```

mod axes;
mod checks;
mod domain;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::field::{Dim, Dims, Halo, HaloWidth};
use crate::layout::Extents;
use crate::managed::Managed;

/// What a stencil does with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Declared, but not used: the argument may be missing.
    Unused,
    /// Only read.
    Read,
    /// Written, perhaps read too.
    Write,
}

/// A field as the stencil declares it.
#[derive(Debug, Clone)]
pub struct FieldSpec {
    /// Name of the parameter.
    pub name: String,
    /// Its dimensions in the order of the annotation: I, J, K, then data dimensions.
    pub dims: Dims,
    /// Extents of the data dimensions.
    pub data_shape: Extents,
    /// Type of an element.
    pub dtype: DType,
    /// What the stencil does with it.
    pub access: Access,
    /// How far the stencil reaches beyond the domain, below and above, for I, J and K.
    pub reach: [HaloWidth; 3],
}

/// A stencil as far as its arguments are concerned.
#[derive(Debug, Clone)]
pub struct StencilSpec {
    /// Name of the definition, for messages.
    pub name: String,
    /// The fields, in any order that the arguments follow.
    pub fields: Vec<FieldSpec>,
    /// The fewest points the vertical dimension of the domain must have.
    pub min_k: i64,
    /// Whether the backend reads memory as typed items, so that misaligned ones are impossible.
    pub typed: bool,
}

/// An argument as it came in.
#[derive(Debug, Clone)]
pub struct Argument {
    /// The memory.
    pub managed: Managed,
    /// Names of its axes, where known; already translated to the stencil's names.
    pub dims: Option<Dims>,
    /// Its halo; `None` where unknown, zeros where it has none.
    pub halo: Option<Halo>,
    /// Where it says itself that the domain begins, in the order of the declared dimensions.
    pub origin: Option<Extents>,
    /// What to call it in messages where it is read-only, such as "an immutable JAX array".
    pub kind: &'static str,
}

/// What the caller says about the iteration.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Points to compute along I, J, K.
    pub domain: Option<[i64; 3]>,
    /// First point of each field (in the order of the declared dimensions), where given.
    pub origins: Vec<Option<Extents>>,
}

/// What `resolve` found out, one entry for each field of the stencil.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPlan {
    /// Axis of the argument for each declared dimension; `None` for a missing unused field.
    pub axes: Vec<Option<Vec<usize>>>,
    /// First point of the domain in each field, in the order of the declared dimensions.
    pub origins: Vec<Extents>,
    /// Points to compute along I, J, K.
    pub domain: [i64; 3],
}

/// A used field with its argument in the order of the declared dimensions.
struct Bound<'a> {
    spec: &'a FieldSpec,
    argument: &'a Argument,
    axes: Vec<usize>,
    /// Extents in the declared order.
    shape: Extents,
    /// Halo in the declared order; `None` where unknown.
    halo: Option<Halo>,
    origin: Option<Extents>,
}

impl Bound<'_> {
    /// `(I, J or K as 0, 1, 2; position among the declared dimensions)` of each spatial dimension.
    fn spatial(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let axis = |dim: &Dim| match dim {
            Dim::I => Some(0),
            Dim::J => Some(1),
            Dim::K => Some(2),
            _ => None,
        };
        self.spec.dims.iter().enumerate().filter_map(move |(at, dim)| Some((axis(dim)?, at)))
    }

    fn error(&self, text: impl std::fmt::Display) -> Error {
        Error::Argument(format!("argument '{}': {text}", self.spec.name))
    }
}

/// Orders the axes of every argument by name, finds origins and domain, and checks everything that
/// would be undefined behaviour in the stencil.
///
/// # Errors
/// [`Error::Argument`] or [`Error::Buffer`] that names the argument, what was expected, what came
/// and a way out.
pub fn resolve(
    spec: &StencilSpec,
    arguments: &[Option<Argument>],
    request: &Request,
) -> Result<CallPlan> {
    let mut bound = Vec::new();
    for (at, field) in spec.fields.iter().enumerate() {
        let argument = arguments.get(at).and_then(Option::as_ref);
        let origin = request.origins.get(at).cloned().flatten();
        match (argument, field.access) {
            (None | Some(_), Access::Unused) => {}
            (None, _) => return Err(missing(field)),
            (Some(argument), _) => {
                checks::check_dtype(field, argument)?;
                let origin = origin.or_else(|| argument.origin.clone());
                bound.push(axes::bind(field, argument, origin)?);
            }
        }
    }
    let domain = domain::resolve(spec, &mut bound, request.domain)?;
    checks::check(spec, &bound, domain)?;
    Ok(collect(spec, bound, domain))
}

fn missing(field: &FieldSpec) -> Error {
    Error::Argument(format!("argument '{}': expected a field, got None", field.name))
}

fn collect(spec: &StencilSpec, bound: Vec<Bound<'_>>, domain: [i64; 3]) -> CallPlan {
    let mut plan = CallPlan { axes: Vec::new(), origins: Vec::new(), domain };
    let mut bound = bound.into_iter().peekable();
    for field in &spec.fields {
        let found = bound.next_if(|bound| std::ptr::eq(bound.spec, field));
        plan.origins.push(
            found
                .as_ref()
                .and_then(|bound| bound.origin.clone())
                .unwrap_or_else(|| Extents::from_elem(0, field.dims.len())),
        );
        plan.axes.push(found.map(|bound| bound.axes));
    }
    plan
}

#[cfg(test)]
mod tests;

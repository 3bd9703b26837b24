//! Calls of stencils.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use crate::device::Target;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::field::{Dims, Halo};
use crate::layout::Extents;
use crate::managed::Managed;
use crate::stencil::{
    self, Access, Argument, CallOptions, DecidedBy, FieldSpec, Footprints, Found, Placement, Span,
    StencilSpec, Touched,
};

/// Points along one axis that are touched, as the stencil declares them: the numbers of a span, from
/// `below` to `most_above`.
pub type Reach = [i64; 6];

/// A field as a stencil declares it.
#[derive(Debug, Clone)]
pub struct Uses {
    /// Its dimensions, data dimensions last.
    pub dims: Dims,
    /// Extents of the data dimensions.
    pub data_shape: Extents,
    /// The offsets of reads along each axis other than data dimensions; `None` for a field that is not read.
    pub reads: Option<Vec<Reach>>,
    /// The same for writes.
    pub writes: Option<Vec<Reach>>,
    /// False if other points may be touched, too.
    pub complete: bool,
    /// True if every access is at the point that is being computed.
    pub pointwise: bool,
}

/// An argument.
#[derive(Debug, Clone)]
pub struct Given {
    /// Its memory, of float64.
    pub managed: Managed,
    /// Names of its axes.
    pub dims: Option<Dims>,
    /// Its halo; `None` if it is unknown.
    pub halo: Option<Halo>,
    /// The origin that it declares itself.
    pub origin: Option<Extents>,
}

/// The rule that gives the domain of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// All fields, as in gt4py.cartesian.
    Fields,
    /// Whole arrays, as for a function that takes an origin, or a domain, or neither.
    Arrays {
        /// It takes an origin.
        origin: bool,
        /// It takes a domain.
        domain: bool,
    },
    /// The outputs, as of an operator of gt4py.next.
    Outputs,
    /// The stencil, as a program of gt4py.next.
    Stencil,
}

/// The origin and domain that a caller asks for.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// Points to compute.
    pub domain: Option<Extents>,
    /// First point of each field.
    pub origins: Vec<Option<Extents>>,
}

/// The points of a field that are read, and those that are written, along each of its axes: the first,
/// and the end behind the last.
pub type Boxes = (Option<Vec<(i64, i64)>>, Option<Vec<(i64, i64)>>);

/// An accepted call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Points to compute.
    pub domain: Extents,
    /// For each field the axis of the argument for each declared dimension, and the first point.
    pub fields: Vec<Option<(Vec<usize>, Extents)>>,
}

/// A footprint that is found for the call; without one the declared footprint holds.
struct Told<'a>(Option<&'a [Boxes]>);

impl Footprints for Told<'_> {
    type Basis = ();
    type Error = Error;

    fn find(&self, _: &Placement<'_>) -> Result<Found<()>> {
        let touched = |(reads, writes): &Boxes| Touched {
            reads: reads.as_ref().map(|one| one.iter().copied().collect()),
            writes: writes.as_ref().map(|one| one.iter().copied().collect()),
            complete: true,
            pointwise: false,
        };
        Ok((self.0.map(|all| all.iter().map(touched).collect()), ()))
    }
}

/// Resolves a call of a stencil with the axes I, J, K. `found` is its footprint, if it is not the declared
/// one.
///
/// # Errors
/// Those of a call that is refused.
pub fn resolve(
    fields: &[Uses],
    rule: Rule,
    given: &[Given],
    wishes: &Wishes,
    found: Option<&[Boxes]>,
) -> Result<Answer> {
    let spec = stencil(fields, rule);
    let arguments: Vec<_> = given.iter().map(argument).collect();
    let Wishes { domain, origins } = wishes.clone();
    let options = CallOptions { domain, origins, ..CallOptions::default() };
    let (plan, ()) = stencil::resolve(&spec, arguments.iter().map(Some), &options, &Told(found))?;
    let fields = plan.fields.into_iter();
    let fields = fields.map(|one| one.map(|field| (field.axes.to_vec(), field.origin))).collect();
    Ok(Answer { domain: plan.domain, fields })
}

fn stencil(fields: &[Uses], rule: Rule) -> StencilSpec {
    StencilSpec {
        name: "fuzzed".into(),
        fields: fields.iter().enumerate().map(field).collect(),
        dims: HashMap::new(),
        axes: ["I", "J", "K"].into_iter().map(Into::into).collect(),
        smallest: Extents::new(),
        smallest_because: String::new(),
        typed: true,
        target: Target::Host,
        backend: "numpy",
        decided_by: match rule {
            Rule::Fields => DecidedBy::Fields,
            Rule::Arrays { origin, domain } => DecidedBy::Arrays { origin, domain },
            Rule::Outputs => DecidedBy::Outputs,
            Rule::Stencil => DecidedBy::Stencil,
        },
        runs_empty: false,
        copy_device: false,
        in_order: false,
        copy_memory: false,
    }
}

fn field((at, uses): (usize, &Uses)) -> FieldSpec {
    let access = match (&uses.reads, &uses.writes) {
        (None, None) => Access::Unused,
        (Some(_), None) => Access::Read,
        (None, Some(_)) => Access::Write,
        (Some(_), Some(_)) => Access::Update,
    };
    let touched = Touched {
        reads: uses.reads.as_ref().map(|all| all.iter().map(span).collect()),
        writes: uses.writes.as_ref().map(|all| all.iter().map(span).collect()),
        complete: uses.complete,
        pointwise: uses.pointwise,
    };
    FieldSpec {
        name: format!("field_{at}"),
        dims: uses.dims.clone(),
        data_shape: uses.data_shape.clone(),
        dtype: DType::Float64,
        access,
        touched,
        overtaken_by: Vec::new(),
        ranks: None,
        fast: None,
        unit: None,
        alignment: 1,
    }
}

fn span(&[below, above, below_end, above_start, most_below, most_above]: &Reach) -> Span {
    Span { below, above, below_end, above_start, most_below, most_above }
}

fn argument(given: &Given) -> Argument {
    let Given { managed, dims, halo, origin } = given.clone();
    Argument { managed, dims, halo, origin, kind: "a read-only array", copied: None }
}

//! Resolving the arguments of a stencil call: order of axes, origin, domain, checks. Pure: no
//! array is touched, nothing is copied, and a refused call has changed nothing.
//!
//! ```text
//! StencilSpec + arguments + Request ──resolve──▶ CallPlan ──▶ the call
//! ```

mod declared;
mod bound;
mod axes;
mod frame;
mod origin;
mod domain;
mod checks;
mod overlap;
mod memory;
mod remembered;

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::field::{Dims, Halo};
use crate::layout::{Extents, Layout};
use crate::managed::Managed;
use bound::Bound;
pub use declared::{Access, FieldSpec, OnMismatch, StencilSpec};
pub use remembered::Remembered;

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
    /// What was passed, where this is a copy of it: no stride in elements describes the original.
    pub stands_for: Option<Box<Original>>,
    /// Why this is a copy on the host, which its producer made of memory on a device.
    pub brought: Option<String>,
}

/// Memory that is described byte by byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Original {
    /// Why there is a copy of it.
    pub text: String,
    /// Address of the first byte.
    pub address: usize,
    /// Shape with the bytes of an item as one more dimension, and strides in bytes.
    pub bytes: Layout,
}

/// What the caller says about the iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// Points to compute along the axes of the iteration.
    pub domain: Option<Extents>,
    /// First point of each field (in the order of the declared dimensions), where given.
    pub origins: Vec<Option<Extents>>,
    /// Fields that are only written may be missing: they are made once the domain is known.
    pub functional: bool,
}

/// Where the axes of an argument stand, its first point, and what keeps it from going in as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPlan {
    /// Axis of the argument for each declared dimension.
    pub axes: SmallVec<[usize; 6]>,
    /// First point of the domain, in the order of the declared dimensions.
    pub origin: Extents,
    /// Why the stencil gets a copy, if it does.
    pub copy: Option<Mismatch>,
}

/// Why an argument cannot go into the stencil as it is. The text is for the warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    /// It is on another device.
    Device(String),
    /// Its items or rows do not lie as the stencil needs them.
    Memory(String),
}

/// What `resolve` found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPlan {
    /// One for each field of the stencil; `None` for one that is missing.
    pub fields: SmallVec<[Option<FieldPlan>; 8]>,
    /// Points to compute along the axes of the iteration.
    pub domain: Extents,
    /// The widest halo of the fields along each axis of the iteration.
    pub halo: Halo,
    /// Points below and above the domain that an output has which is made for the call.
    pub around: Halo,
    /// What works, but slowly.
    pub slow: Vec<String>,
}

/// Orders the axes of every argument by name, finds origins and domain, and checks everything that
/// would be undefined behaviour in the stencil.
///
/// # Errors
/// [`Error::Argument`], [`Error::Buffer`] or [`Error::Device`] that names the argument, what was
/// expected, what came and a way out.
pub fn resolve(
    spec: &StencilSpec,
    arguments: &[Option<Argument>],
    request: &Request,
) -> Result<CallPlan> {
    let mut bound = bind(spec, arguments, request)?;
    let domain = domain::resolve(spec, &mut bound, request)
        .map_err(|error| error.followed_by(&bound::table(spec, &bound)))?;
    checks::check(&bound, &domain).map_err(|error| match error {
        Error::Argument(_) => error.followed_by(&bound::table(spec, &bound)),
        other => other,
    })?;
    if !request.functional {
        // Otherwise what is written is a copy.
        bound.iter().try_for_each(checks::check_writable)?;
        overlap::check(&bound, &domain)?;
    }
    let halo = frame::widest_halo(spec, &bound);
    let around = frame::around(spec, &bound, &domain, &halo);
    let slow = memory::slow(spec, &bound);
    let copies = memory::mismatches(spec, &bound, request.functional)?;
    Ok(CallPlan { fields: collect(spec, bound, copies), domain, halo, around, slow })
}

fn bind<'a>(
    spec: &'a StencilSpec,
    arguments: &'a [Option<Argument>],
    request: &'a Request,
) -> Result<SmallVec<[Bound<'a>; 8]>> {
    let mut bound = SmallVec::new();
    for (at, field) in spec.fields.iter().enumerate() {
        match arguments.get(at).and_then(Option::as_ref) {
            Some(_) | None if field.access == Access::Unused => {}
            None if request.functional && field.access == Access::Write => {}
            None => return Err(missing(field)),
            Some(argument) => {
                checks::check_dtype(field, argument)?;
                let origin = request.origins.get(at).and_then(Option::as_ref);
                bound.push(axes::bind(spec, field, argument, origin)?);
            }
        }
    }
    Ok(bound)
}

fn missing(field: &FieldSpec) -> Error {
    Error::Argument(format!("argument '{}': expected a field, got None", field.name))
}

fn collect(
    spec: &StencilSpec,
    bound: SmallVec<[Bound<'_>; 8]>,
    copies: SmallVec<[Option<Mismatch>; 8]>,
) -> SmallVec<[Option<FieldPlan>; 8]> {
    let mut bound = bound.into_iter().zip(copies).peekable();
    let plan = |field: &FieldSpec| {
        let (found, copy) = bound.next_if(|(one, _)| std::ptr::eq(one.spec, field))?;
        Some(FieldPlan { axes: found.axes, origin: found.origin, copy })
    };
    spec.fields.iter().map(plan).collect()
}

#[cfg(test)]
mod tests;

//! Resolves the arguments of a stencil call: order of axes, origin, domain, checks. Pure: no array
//! is touched, nothing is copied, and a refused call has changed nothing.
//!
//! ```text
//! StencilSpec + arguments + CallOptions ──resolve──▶ CallPlan ──▶ the call
//! ```

mod footprint;
mod call;
mod declared;
mod placed;
mod axes;
mod frame;
mod origin;
mod domain;
mod checks;
mod overlap;
mod memory;
mod fingerprint;
mod resolve;

pub(crate) use call::{Argument, CallOptions, CallPlan, Copied, FieldPlan, Mismatch, Original};
pub(crate) use declared::{Access, DecidedBy, FieldSpec, StencilSpec};
pub(crate) use fingerprint::{ArgumentPrint, Fingerprint};
#[cfg(test)]
pub(crate) use footprint::Declared;
pub(crate) use footprint::{Along, Footprints, Found, Placement, Range, Span, Touched};
pub(crate) use overlap::{Place, are_all_apart};
pub(crate) use resolve::resolve;

#[cfg(test)]
mod tests;

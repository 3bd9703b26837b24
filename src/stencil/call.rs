//! The words of a call: arguments, what the caller asks for, and the plan.

use smallvec::SmallVec;

use super::footprint::{Range, Touched};
use crate::field::{Dims, Halo};
use crate::layout::{Extents, Layout, may_overlap};
use crate::managed::Managed;

/// An argument as it came in.
#[derive(Debug, Clone)]
pub(crate) struct Argument {
    /// The memory.
    pub(crate) managed: Managed,
    /// Names of its axes, if known; already translated to the stencil's names.
    pub(crate) dims: Option<Dims>,
    /// Its halo: zeros if it has none, `None` if it is unknown.
    pub(crate) halo: Option<Halo>,
    /// Origin that the argument itself declares, in the order of the declared dimensions.
    pub(crate) origin: Option<Extents>,
    /// Description for messages about read-only memory, such as "an immutable JAX array".
    pub(crate) kind: &'static str,
    /// Kind of copy that this is, or has to become; `None` for shared memory.
    pub(crate) copied: Option<Copied>,
}

impl Argument {
    /// The memory that was passed, if this is a copy because no stride in elements describes it.
    #[must_use]
    pub(crate) fn original(&self) -> Option<&Original> {
        match &self.copied {
            Some(Copied::Original(original)) => Some(original),
            _ => None,
        }
    }

    /// Layout and address of the memory that was passed.
    #[must_use]
    pub(crate) fn place(&self) -> (&Layout, usize) {
        match self.original() {
            Some(original) => (&original.bytes, original.address),
            None => (self.managed.layout(), self.managed.position()),
        }
    }

    /// True if the memory that was passed may share a byte with that of `other`.
    #[must_use]
    pub(crate) fn may_overlap(&self, other: &Self) -> bool {
        let ((a, a_at), (b, b_at)) = (self.place(), other.place());
        may_overlap(a, a_at, b, b_at)
    }
}

/// A copy for a stencil that cannot take what was passed.
#[derive(Debug, Clone)]
pub(crate) enum Copied {
    /// Memory of a device, which goes to the host for this reason.
    ToHost(String),
    /// Memory that no stride in elements describes.
    Original(Box<Original>),
}

/// Memory that is described byte by byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Original {
    /// Reason for the copy.
    pub(crate) text: String,
    /// Address of the first byte.
    pub(crate) address: usize,
    /// Shape with the bytes of an item as one more dimension, and strides in bytes.
    pub(crate) bytes: Layout,
}

/// What the caller asks of the iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CallOptions {
    /// Points to compute along the axes of the iteration.
    pub(crate) domain: Option<Extents>,
    /// First of them, counted from the origins, if given.
    pub(crate) start: Option<Extents>,
    /// First point of each field (in the order of the declared dimensions), if given.
    pub(crate) origins: Vec<Option<Extents>>,
    /// Fields that are only written may be missing: they are made once the domain is known.
    pub(crate) functional: bool,
}

/// Order of an argument's axes, its first point, and the reason for a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldPlan {
    /// Axis of the argument for each declared dimension.
    pub(crate) axes: SmallVec<[usize; 6]>,
    /// First point of the domain, in the order of the declared dimensions.
    pub(crate) origin: Extents,
    /// The points that the call touches.
    pub(crate) touched: Touched<Range>,
    /// Reason why the stencil gets a copy, if it does.
    pub(crate) copy: Option<Mismatch>,
}

/// Reason why an argument cannot go into the stencil as it is. The text is for the warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// It is on another device.
    Device(String),
    /// Its items or rows do not lie as the stencil needs them.
    Memory(String),
}

impl Mismatch {
    /// The text, whatever the reason.
    #[must_use]
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Device(text) | Self::Memory(text) => text,
        }
    }
}

/// Result of [`resolve`](super::resolve()).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallPlan {
    /// One for each field of the stencil; `None` for one that is missing.
    pub(crate) fields: SmallVec<[Option<FieldPlan>; 8]>,
    /// Points to compute along the axes of the iteration.
    pub(crate) domain: Extents,
    /// First of them, counted from the origins: zeros, unless the outputs decide.
    pub(crate) start: Extents,
    /// The widest halo of the fields along each axis of the iteration.
    pub(crate) halo: Halo,
    /// Points below and above the domain in outputs that are made for the call.
    pub(crate) output_halo: Halo,
    /// Reasons why the call is slower than it could be.
    pub(crate) slow: Vec<String>,
}

impl CallPlan {
    /// The first reason for a copy.
    #[must_use]
    pub(crate) fn first_copy(&self) -> Option<&Mismatch> {
        self.fields.iter().flatten().find_map(|field| field.copy.as_ref())
    }
}

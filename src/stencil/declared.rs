//! The declaration of a stencil: its fields, where it computes, and its demands on memory.

use std::collections::HashMap;

use crate::device::Target;
use crate::dtype::DType;
use crate::field::{Dim, Dims, Halo};
use crate::layout::Extents;

/// Use of a field by the stencil.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Declared, but not used: the argument may be missing.
    Unused,
    /// Only read.
    Read,
    /// Only written.
    Write,
    /// Read and written.
    Update,
}

impl Access {
    /// True if the stencil may write the field.
    #[must_use]
    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Update)
    }

    /// True if the argument may not be missing. A functional call makes its outputs.
    #[must_use]
    pub(crate) fn is_needed(self, functional: bool) -> bool {
        match self {
            Self::Unused => false,
            Self::Read | Self::Update => true,
            Self::Write => !functional,
        }
    }
}

/// What decides where a stencil computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecidedBy {
    /// All fields, which agree about a domain.
    Fields,
    /// The outputs. The stencil itself checks its inputs.
    Outputs,
    /// The stencil. It checks all fields.
    Stencil,
}

/// A field as the stencil declares it.
#[derive(Debug, Clone)]
pub(crate) struct FieldSpec {
    /// Name of the parameter.
    pub(crate) name: String,
    /// Its dimensions in the declared order; data dimensions come last.
    pub(crate) dims: Dims,
    /// Extents of the data dimensions.
    pub(crate) data_shape: Extents,
    /// Type of an element.
    pub(crate) dtype: DType,
    /// Its use by the stencil.
    pub(crate) access: Access,
    /// Points that the stencil reaches beyond the domain, below and above, for each of `dims`.
    pub(crate) reach: Halo,
    /// The same, counted from the other ends of the domain: points below its upper end, and above
    /// its lower end, that are reached however few points it has.
    pub(crate) across: Halo,
    /// The most points beyond the domain that `across` comes to, however few points it has.
    pub(crate) across_at_most: Halo,
    /// True if `reach` and `across` cover everything that is touched.
    pub(crate) reach_known: bool,
    /// Rank of each dimension that the memory must have (0 = largest stride); `None` for any.
    pub(crate) ranks: Option<Extents>,
    /// Rank of each dimension with which the stencil is fast; other layouts work.
    pub(crate) fast: Option<Extents>,
    /// Alignment that the first point of the domain must have, in bytes; 0 and 1 ask for nothing.
    pub(crate) alignment: usize,
}

/// The arguments of a stencil and its rules for them.
#[derive(Debug, Clone)]
pub(crate) struct StencilSpec {
    /// Name of the definition, for messages.
    pub(crate) name: String,
    /// The fields, in any order that the arguments follow.
    pub(crate) fields: Vec<FieldSpec>,
    /// The stencil's dimension for each name of the user's.
    pub(crate) dims: HashMap<Dim, Dim>,
    /// Dimensions of the iteration, in the order of a domain.
    pub(crate) axes: Dims,
    /// The fewest points that the domain has along each axis; 1 for axes beyond its length.
    pub(crate) min_points: Extents,
    /// True if memory is read as typed items, which must be aligned.
    pub(crate) typed: bool,
    /// Device that it computes on.
    pub(crate) target: Target,
    /// Name of the backend that `FieldSpec::fast` is about, for messages.
    pub(crate) backend: &'static str,
    /// What decides where it computes.
    pub(crate) decided_by: DecidedBy,
    /// True if it gets the origin of the domain in each field.
    pub(crate) takes_origin: bool,
    /// True if it gets the number of points to compute. A stencil that lacks one of the two sees
    /// arrays alone, and cannot tell where in one of them the points of another lie.
    pub(crate) takes_domain: bool,
    /// True if it runs where the domain has no points, too. Compiled code need not cope with that.
    pub(crate) runs_empty: bool,
    /// True if it gets a copy of memory on another device, copied back if it was written.
    pub(crate) copy_device: bool,
    /// True if it gets a copy of memory that is not laid out as it must be.
    pub(crate) copy_memory: bool,
}

impl StencilSpec {
    /// The fewest points along an axis.
    pub(super) fn fewest(&self, axis: usize) -> i64 {
        self.min_points.get(axis).copied().unwrap_or(1).max(1)
    }
}

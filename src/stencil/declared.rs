//! The declaration of a stencil: its fields, where it computes, and its demands on memory.

use std::collections::HashMap;

use super::footprint::{Span, Touched};
use crate::device::Target;
use crate::dtype::DType;
use crate::field::{Dim, Dims};
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

/// The part that decides where a stencil computes, and what a caller may say about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecidedBy {
    /// All fields, which agree about a domain. A caller may give origin and domain.
    Fields,
    /// The arrays, all of one extent: the stencil is told the origin of the domain, or the number of
    /// points, or neither, so that it cannot tell where in one array the points of another lie. A
    /// caller may give what the stencil is told.
    Arrays { origin: bool, domain: bool },
    /// The outputs. A caller may give origin and domain.
    Outputs,
    /// The stencil. A caller may give the origin.
    Stencil,
}

impl DecidedBy {
    /// True if a caller may give the origin of the domain in each field.
    #[must_use]
    pub(crate) fn takes_origin(self) -> bool {
        !matches!(self, Self::Arrays { origin: false, .. })
    }

    /// True if a caller may give the number of points to compute.
    #[must_use]
    pub(crate) fn takes_domain(self) -> bool {
        !matches!(self, Self::Arrays { domain: false, .. } | Self::Stencil)
    }

    /// The options with which a caller says where to compute, for messages.
    #[must_use]
    pub(crate) fn place_options(self) -> &'static str {
        match (self.takes_origin(), self.takes_domain()) {
            (true, true) => "origin= and domain=",
            (true, false) => "origin=",
            (false, true) => "domain=",
            (false, false) => "arrays of another extent",
        }
    }
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
    /// The declared footprint; nothing for a stencil whose footprint is found call by call.
    pub(crate) touched: Touched<Span>,
    /// Names of the fields that are written before this one is read for the last time.
    pub(crate) overtaken_by: Vec<String>,
    /// Rank of each dimension that the memory must have (0 = largest stride); `None` for any.
    pub(crate) ranks: Option<Extents>,
    /// Rank of each dimension with which the stencil is fast; other layouts work.
    pub(crate) fast: Option<Extents>,
    /// The declared axis along which the memory must have a stride of 1; `None` for any.
    pub(crate) unit: Option<usize>,
    /// Alignment that the first point of the domain must have, in bytes; 0 and 1 ask for nothing.
    pub(crate) alignment: usize,
}

impl FieldSpec {
    /// True if memory in any order will do.
    pub(crate) fn takes_any_order(&self) -> bool {
        self.ranks.is_none() && self.unit.is_none() && self.alignment <= 1
    }

    /// The ranks of a copy for the stencil: those that it must have, else the fast ones.
    pub(crate) fn ranks_of_copy(&self) -> Option<Extents> {
        let with_unit = |unit: usize| {
            let rank = |axis: usize| match axis == unit {
                true => self.dims.len().saturating_sub(1),
                false => axis.saturating_sub(usize::from(axis > unit)),
            };
            (0..self.dims.len()).map(|axis| i64::try_from(rank(axis)).unwrap_or(0)).collect()
        };
        let must = self.ranks.clone().or_else(|| self.unit.map(with_unit));
        must.or_else(|| self.fast.clone())
    }
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
    /// The fewest points along each axis of a domain that has any; 1 for axes beyond its length.
    pub(crate) smallest: Extents,
    /// The reason for `smallest`, for messages; may be empty.
    pub(crate) smallest_because: String,
    /// True if memory is read as typed items, which must be aligned.
    pub(crate) typed: bool,
    /// Device that it computes on.
    pub(crate) target: Target,
    /// True if its work may go on, on the default stream of its GPU, when `run` has returned.
    pub(crate) in_order: bool,
    /// Name of the backend that `FieldSpec::fast` is about, for messages.
    pub(crate) backend: &'static str,
    /// The part that decides where it computes.
    pub(crate) decided_by: DecidedBy,
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
        self.smallest.get(axis).copied().unwrap_or(1).max(1)
    }
}

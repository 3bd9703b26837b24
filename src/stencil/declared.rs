//! What a stencil declares: its fields, where it computes, and what it wants of memory.

use smallvec::SmallVec;

use crate::device::Target;
use crate::dtype::DType;
use crate::field::{Dim, Dims, Halo};
use crate::layout::Extents;

/// What a stencil does with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
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
    /// Whether the stencil may write the field.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Update)
    }
}

/// A field as the stencil declares it.
#[derive(Debug, Clone)]
pub struct FieldSpec {
    /// Name of the parameter.
    pub name: String,
    /// Its dimensions in the declared order; data dimensions come last.
    pub dims: Dims,
    /// Extents of the data dimensions.
    pub data_shape: Extents,
    /// Type of an element.
    pub dtype: DType,
    /// What the stencil does with it.
    pub access: Access,
    /// How far the stencil reaches beyond the domain, below and above, for each of `dims`.
    pub reach: Halo,
    /// Rank of each dimension that the memory must have (0 = largest stride), where it matters.
    pub ranks: Option<Extents>,
    /// Rank of each dimension in which the stencil is fast; other layouts work.
    pub fast: Option<Extents>,
    /// Alignment that the first point of the domain must have, in bytes; 0 and 1 ask for nothing.
    pub alignment: usize,
}

/// What becomes of an argument that the stencil cannot take as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnMismatch {
    /// The call is refused.
    #[default]
    Raise,
    /// The stencil gets a copy; what it wrote is copied back.
    Copy,
}

/// A stencil as far as its arguments are concerned.
#[derive(Debug, Clone)]
pub struct StencilSpec {
    /// Name of the definition, for messages.
    pub name: String,
    /// The fields, in any order that the arguments follow.
    pub fields: Vec<FieldSpec>,
    /// Dimensions of the iteration, in the order of a domain.
    pub axes: Dims,
    /// The fewest points that the domain has along each axis; 1 where it says nothing.
    pub min_points: Extents,
    /// Whether memory is read as typed items, so that misaligned ones are impossible.
    pub typed: bool,
    /// Where it computes.
    pub target: Target,
    /// What `fast` of the fields is about, for messages.
    pub backend: &'static str,
    /// Whether it computes where it likes: its fields need not agree about a domain.
    pub decides_domain: bool,
    /// Whether it is told where the domain begins in each field.
    pub told_origin: bool,
    /// Whether it is told how many points to compute. A stencil that lacks one of the two sees arrays
    /// alone, and cannot tell where in one of them the points of another lie.
    pub told_domain: bool,
    /// Whether `reach` tells all that is read.
    pub reach_known: bool,
    /// What becomes of memory on another device.
    pub on_device: OnMismatch,
    /// What becomes of memory that is not laid out as it must be.
    pub on_memory: OnMismatch,
}

/// `(position among the axes of the iteration, position among the declared dimensions)`.
pub(super) type Spatial = SmallVec<[(u8, u8); 8]>;

impl StencilSpec {
    /// Where the dimensions of a field stand in the iteration. Data dimensions do not.
    pub(super) fn spatial(&self, field: &FieldSpec) -> Spatial {
        let axis = |dim: &Dim| self.axes.iter().position(|axis| axis == dim);
        let small = |at: usize| u8::try_from(at).ok(); // at most 64 dimensions
        let dims = field.dims.iter().enumerate();
        dims.filter_map(|(at, dim)| Some((small(axis(dim)?)?, small(at)?))).collect()
    }

    /// The fewest points along an axis.
    pub(super) fn fewest(&self, axis: usize) -> i64 {
        self.min_points.get(axis).copied().unwrap_or(1).max(1)
    }
}

//! Rules of `layout` and `field` for fuzz targets: selections, overlaps, and the dimensions of
//! several operands.
#![forbid(unsafe_code)]

use crate::error::Result;
use crate::field::{Dims, Field, Joined, Operand, assigned};
use crate::layout::{self, Extents, Item, Layout, steps};

/// Selects elements with a key. Also returns the distance in bytes from the old first element to the
/// new one.
///
/// # Errors
/// As [`Storage::select`](crate::Storage::select).
pub fn select(layout: &Layout, key: &[Item]) -> Result<(Layout, isize)> {
    layout.select(&steps(key, layout.shape())?)
}

/// True if two layouts, each with its first element at an address, may share a byte.
#[must_use]
pub fn may_overlap(a: (&Layout, usize), b: (&Layout, usize)) -> bool {
    layout::may_overlap(a.0, a.1, b.0, b.1)
}

/// The dimensions of a result, and the axes of the operands that belong to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joint {
    /// Names; `None` if no operand has any.
    pub dims: Option<Dims>,
    /// Extents.
    pub shape: Extents,
    /// For each operand, its axis for each dimension of the result; `None` where it is repeated.
    pub axes: Vec<Vec<Option<usize>>>,
    /// The labels of the result.
    pub field: Field,
}

/// Joins the dimensions of operands. An operand is a shape, with the field if it is a storage.
///
/// # Errors
/// [`Error::Argument`](crate::Error::Argument) for operands that do not belong together.
pub fn join(operands: &[(&[i64], Option<&Field>)]) -> Result<Joint> {
    let operands = operands_of(operands);
    Joined::new(&operands).map(|joined| joint(joined, &operands))
}

/// Puts operands onto a target, as `out=` does.
///
/// # Errors
/// As [`join`], and for a dimension that the target lacks.
pub fn join_within(
    target: (&[i64], Option<&Field>),
    operands: &[(&[i64], Option<&Field>)],
) -> Result<Joint> {
    let operands = operands_of(operands);
    let target = Operand { shape: target.0, field: target.1 };
    Joined::within(target, &operands).map(|joined| joint(joined, &operands))
}

/// Returns the axis of a value for each dimension of a target; `None` where the value is repeated.
///
/// # Errors
/// [`Error::Argument`](crate::Error::Argument) for names and extents that do not fit.
pub fn place(
    value: (&[i64], Option<&Dims>),
    target: (&[i64], Option<&Dims>),
) -> Result<Vec<Option<usize>>> {
    assigned(value, target).map(|axes| axes.to_vec())
}

fn operands_of<'a>(operands: &[(&'a [i64], Option<&'a Field>)]) -> Vec<Operand<'a>> {
    operands.iter().map(|&(shape, field)| Operand { shape, field }).collect()
}

fn joint(joined: Joined, operands: &[Operand<'_>]) -> Joint {
    let field = joined.field(operands);
    let axes = joined.axes.iter().map(|axes| axes.to_vec()).collect();
    Joint { dims: joined.dims, shape: joined.shape, axes, field }
}

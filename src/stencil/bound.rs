//! A field of the stencil with the argument that was passed for it.

use smallvec::SmallVec;

use super::declared::Spatial;
use super::{Argument, FieldSpec, StencilSpec};
use crate::error::Error;
use crate::field::{Dim, HaloWidth};
use crate::layout::{Extents, Layout};

/// A used field with its argument in the order of the declared dimensions.
pub(super) struct Bound<'a> {
    pub(super) stencil: &'a StencilSpec,
    pub(super) spec: &'a FieldSpec,
    pub(super) argument: &'a Argument,
    pub(super) axes: SmallVec<[usize; 6]>,
    /// Which of the declared dimensions belong to the iteration.
    pub(super) spatial: Spatial,
    /// What the call or the argument says about the first point.
    pub(super) given: Option<&'a Extents>,
    /// First point of the domain in the declared order, once the domain is known.
    pub(super) origin: Extents,
}

impl<'a> Bound<'a> {
    /// `(position among the axes of the iteration, position among the declared dimensions)`.
    pub(super) fn spatial(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.spatial.iter().map(|&(axis, at)| (axis.into(), at.into()))
    }

    /// Extents in the declared order.
    pub(super) fn shape(&self) -> Extents {
        (0..self.axes.len()).map(|at| self.extent_at(at)).collect()
    }

    /// Whether the argument says what its halo is.
    pub(super) fn knows_halo(&self) -> bool {
        self.argument.halo.is_some()
    }

    /// Name of an axis of the iteration.
    pub(super) fn axis_name(&self, axis: usize) -> &'a Dim {
        self.stencil.axes.get(axis).unwrap_or(&Dim::Data(0))
    }

    /// Where the memory of what was passed lies.
    pub(super) fn place(&self) -> (&'a Layout, usize) {
        match &self.argument.stands_for {
            Some(original) => (&original.bytes, original.address),
            None => (self.argument.managed.layout(), self.argument.managed.address()),
        }
    }

    pub(super) fn carries_halo(&self) -> bool {
        self.spatial().any(|(_, at)| self.halo_at(at) != (0, 0))
    }

    pub(super) fn halo_at(&self, at: usize) -> HaloWidth {
        let halo = self.axes.get(at).zip(self.argument.halo.as_ref());
        halo.and_then(|(&axis, halo)| halo.get(axis).copied()).unwrap_or((0, 0))
    }

    pub(super) fn extent_at(&self, at: usize) -> i64 {
        let shape = self.argument.managed.layout().shape();
        self.axes.get(at).and_then(|&axis| shape.get(axis).copied()).unwrap_or(0)
    }

    pub(super) fn origin_at(&self, at: usize) -> i64 {
        self.origin.get(at).copied().unwrap_or(0)
    }

    pub(super) fn reach_at(&self, at: usize) -> HaloWidth {
        self.spec.reach.get(at).copied().unwrap_or((0, 0))
    }

    pub(super) fn about(&self) -> String {
        format!("argument '{}'", self.spec.name)
    }

    pub(super) fn error(&self, text: impl std::fmt::Display) -> Error {
        Error::Argument(format!("{}: {text}", self.about()))
    }
}

/// What every argument says about every axis of the iteration, for messages: a line for each field,
/// a column for each axis.
pub(super) fn table(spec: &StencilSpec, bound: &[Bound<'_>]) -> String {
    let mut rows: Vec<Vec<String>> = vec![vec!["field".into()]];
    rows[0].extend(spec.axes.iter().map(Dim::to_string));
    for field in bound {
        let mut row = vec![field.spec.name.clone()];
        row.extend((0..spec.axes.len()).map(|axis| cell(field, axis)));
        rows.push(row);
    }
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..=spec.axes.len()).map(|at| width(at).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        format!("\n  {}", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

fn cell(field: &Bound<'_>, axis: usize) -> String {
    let Some((_, at)) = field.spatial().find(|one| one.0 == axis) else {
        return "-".into();
    };
    let extent = field.extent_at(at);
    let origin = field.given.and_then(|given| given.get(at));
    match (origin, field.knows_halo(), field.halo_at(at)) {
        (Some(origin), _, _) => format!("{extent}, origin {origin}"),
        (None, false, _) => format!("{extent}, halo unknown"),
        (None, true, (0, 0)) => format!("{extent}"),
        (None, true, (low, high)) => format!("{extent}, halo ({low}, {high})"),
    }
}

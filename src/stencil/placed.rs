//! A field of the stencil with the argument that was passed for it.

use std::fmt::Display;
use std::iter;

use smallvec::SmallVec;

use super::footprint::{Along, Footprints, Placement, Range, Span, Touched};
use super::{Argument, CallOptions, FieldSpec, StencilSpec};
use crate::error::Error;
use crate::field::{Dim, HaloWidth};
use crate::layout::Extents;

/// A used field with its argument in the order of the declared dimensions.
pub(super) struct Placed<'a> {
    pub(super) stencil: &'a StencilSpec,
    pub(super) spec: &'a FieldSpec,
    pub(super) argument: &'a Argument,
    pub(super) axes: SmallVec<[usize; 6]>,
    /// The declared dimensions that belong to the iteration.
    pub(super) spatial: SmallVec<[Spatial<'a>; 3]>,
    /// The first point as the call or the argument gives it.
    pub(super) given: Option<&'a Extents>,
    /// True if the argument gives it.
    pub(super) begins_itself: bool,
    /// First point of the domain in the declared order, once the domain is known.
    pub(super) origin: Extents,
    /// The points that the call touches, once the domain is known.
    pub(super) touched: Touched<Range>,
}

/// A field along one axis of the iteration.
pub(super) struct Spatial<'a> {
    /// Position among the axes of the iteration.
    pub(super) axis: usize,
    /// Position among the declared dimensions.
    pub(super) at: usize,
    pub(super) name: &'a Dim,
    pub(super) extent: i64,
    /// Zeros if it is unknown.
    pub(super) halo: HaloWidth,
    /// The declared span of all that is touched.
    pub(super) span: Span,
}

impl Spatial<'_> {
    /// Points between the halos.
    pub(super) fn inner(&self) -> i64 {
        self.extent.saturating_sub(self.halo.0).saturating_sub(self.halo.1)
    }
}

impl<'a> Placed<'a> {
    /// Values in the order of the argument's own axes, put in the declared order.
    pub(super) fn in_declared_order(&self, own: &[i64]) -> Extents {
        self.axes.iter().filter_map(|&axis| own.get(axis).copied()).collect()
    }

    /// Values in the declared order, put in the order of the argument's own axes.
    pub(super) fn in_own_order(&self, declared: &Extents) -> Extents {
        let mut own = Extents::from_elem(0, self.axes.len());
        for (&axis, &value) in self.axes.iter().zip(declared) {
            if let Some(slot) = own.get_mut(axis) {
                *slot = value;
            }
        }
        own
    }

    /// The field along an axis of the iteration, if it has that axis.
    fn along(&self, axis: usize) -> Option<&Spatial<'a>> {
        self.spatial.iter().find(|one| one.axis == axis)
    }

    pub(super) fn carries_halo(&self) -> bool {
        self.spatial.iter().any(|one| one.halo != (0, 0))
    }

    /// Points behind the origin, less those that the stencil touches above the domain.
    pub(super) fn room(&self, one: &Spatial<'_>) -> i64 {
        one.extent.saturating_sub(self.origin_at(one.at)).saturating_sub(one.span.above)
    }

    pub(super) fn origin_at(&self, at: usize) -> i64 {
        self.origin.get(at).copied().unwrap_or(0)
    }

    /// A text that names the argument.
    pub(super) fn about(&self, text: impl Display) -> String {
        format!("argument '{}': {text}", self.spec.name)
    }

    pub(super) fn error(&self, text: impl Display) -> Error {
        Error::Argument(self.about(text))
    }
}

/// A call whose arguments are placed.
pub(super) struct PlacedCall<'a> {
    pub(super) spec: &'a StencilSpec,
    pub(super) options: &'a CallOptions,
    /// The used fields.
    pub(super) fields: SmallVec<[Placed<'a>; 8]>,
    /// First point of the domain, counted from the origins, once the domain is known.
    pub(super) start: Extents,
}

impl<'a> PlacedCall<'a> {
    /// One value for each axis of the iteration.
    pub(super) fn each<T, C: FromIterator<T>>(&self, of: impl Fn(usize) -> T) -> C {
        (0..self.spec.axes.len()).map(of).collect()
    }

    /// The fields that have an axis, with what each has along it.
    pub(super) fn along(&self, axis: usize) -> impl Iterator<Item = (&Placed<'a>, &Spatial<'a>)> {
        self.fields.iter().filter_map(move |field| Some((field, field.along(axis)?)))
    }

    /// Extents, halos and origins of every argument along every axis of the iteration, for
    /// messages: a line for each field, a column for each axis.
    pub(super) fn table(&self) -> String {
        let head = iter::once("field".to_owned()).chain(self.spec.axes.iter().map(Dim::to_string));
        let mut rows: Vec<Vec<String>> = vec![head.collect()];
        for field in &self.fields {
            let mut row = vec![field.spec.name.clone()];
            row.extend((0..self.spec.axes.len()).map(|axis| cell(field, axis)));
            rows.push(row);
        }
        let width = |column: usize| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> =
            (0..=self.spec.axes.len()).map(|at| width(at).unwrap_or(0)).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
            format!("\n  {}", cells.collect::<Vec<_>>().join("  ").trim_end())
        };
        rows.iter().map(line).collect()
    }
}

impl PlacedCall<'_> {
    /// Finds the points that each field touches, and returns their basis.
    ///
    /// # Errors
    /// As [`Footprints::find`].
    pub(super) fn touch<F: Footprints>(
        &mut self,
        domain: &Extents,
        footprints: &F,
    ) -> Result<F::Basis, F::Error> {
        let fields = self.spec.fields.iter().map(|spec| {
            let field = self.fields.iter().find(|field| std::ptr::eq(field.spec, spec))?;
            let shape = field.in_declared_order(field.argument.managed.layout().shape());
            Some((shape, &field.origin))
        });
        let call = Placement { fields: fields.collect(), domain, start: &self.start };
        let (found, basis) = footprints.find(&call)?;
        for field in &mut self.fields {
            let at = self.spec.fields.iter().position(|spec| std::ptr::eq(field.spec, spec));
            field.touched = match found.as_ref().zip(at) {
                Some((found, at)) => found.get(at).cloned().unwrap_or_default(),
                None => {
                    let along = field.spatial.iter().map(|one| domain.get(one.axis).copied());
                    let points: Along<i64> = along.map(Option::unwrap_or_default).collect();
                    field.spec.touched.of(&points, domain.contains(&0))
                }
            };
        }
        Ok(basis)
    }
}

fn cell(field: &Placed<'_>, axis: usize) -> String {
    let Some(one) = field.along(axis) else { return "-".into() };
    let (extent, origin) = (one.extent, field.given.and_then(|given| given.get(one.at)));
    match (origin, &field.argument.halo, one.halo) {
        (Some(origin), _, _) => format!("{extent}, origin {origin}"),
        (None, None, _) => format!("{extent}, halo unknown"),
        (None, _, (0, 0)) => format!("{extent}"),
        (None, _, (low, high)) => format!("{extent}, halo ({low}, {high})"),
    }
}

//! Derives origin and domain from halos unless the caller gives them. The rules: docs/stencils.md,
//! "Origin and domain".
//!
//! A halo of zeros does not decide where a field begins: the extent does. So the `domain_view` of a
//! storage lines up with the first point of a plain array. The outputs of an operator of gt4py.next
//! decide alone, as in GT4Py; a program decides by itself.

use super::frame::{Frame, widest};
use super::origin;
use super::placed::{Placed, PlacedCall, Spatial};
use super::{DecidedBy, FieldSpec, StencilSpec};
use crate::error::{Error, Result};
use crate::field::Dim;
use crate::layout::Extents;

impl PlacedCall<'_> {
    /// Gives every field an origin and returns the domain.
    pub(super) fn resolve_domain(&mut self) -> Result<Extents> {
        let spec = self.spec;
        check_length(spec, self.options.domain.as_ref())?;
        let domain = match spec.decided_by {
            DecidedBy::Stencil => return self.decided(),
            DecidedBy::Outputs => self.of_outputs()?,
            DecidedBy::Fields => self.anywhere()?,
            DecidedBy::Arrays { origin, .. } => self.whole_arrays(origin)?,
        };
        self.check_domain(&domain)?;
        Ok(domain)
    }

    /// Refuses too few points. Zero are legal, as on an empty MPI rank, if every field has none.
    fn check_domain(&self, domain: &Extents) -> Result<()> {
        let (spec, empty) = (self.spec, domain.contains(&0));
        let short = |(axis, (points, _)): &(usize, (&i64, _))| match **points {
            0 => !self.may_be_empty(*axis),
            ..0 => true,
            points => !empty && points < spec.fewest(*axis),
        };
        let mut points = domain.iter().zip(&spec.axes).enumerate();
        let Some((axis, (&points, name))) = points.find(short) else { return Ok(()) };
        let expected = match points {
            1.. => spec.fewest(axis),
            0 => 1,
            ..0 => i64::from(self.options.domain.is_none()),
        };
        let way_out = self.too_small(domain);
        let plural = if expected == 1 { "" } else { "s" };
        let because = match spec.smallest_because.as_str() {
            reason if points > 0 && !reason.is_empty() => format!(", {reason}"),
            _ => String::new(),
        };
        Err(Error::Argument(format!(
            "domain of '{}': expected at least {expected} point{plural} along {name}{because}, \
             got {points}{way_out}",
            spec.name
        )))
    }

    fn too_small(&self, domain: &Extents) -> String {
        match &self.options.domain {
            Some(given) => format!(" in {:?}; pass another domain=", given.as_slice()),
            None => {
                let way_out = self.spec.decided_by.place_options();
                format!(" in {:?}; pass larger fields, or {way_out}", domain.as_slice())
            }
        }
    }

    fn may_be_empty(&self, axis: usize) -> bool {
        let outputs = self.spec.decided_by == DecidedBy::Outputs;
        let given = self.options.domain.is_some() || self.fields.iter().any(Placed::carries_halo);
        let decided = outputs || given;
        decided || self.along(axis).all(|(field, one)| field.room(one) <= 0)
    }

    /// For a stencil that gets origin and domain: each field has an origin of its own.
    fn anywhere(&mut self) -> Result<Extents> {
        let (frame, given) = (self.frame(), &self.options.domain);
        let domain = match given {
            None if !frame.is_empty() => Some(self.domain_of_halos()?),
            given => given.clone(),
        };
        let inner = |axis: usize| domain.as_ref().and_then(|domain| domain.get(axis).copied());
        for field in &mut self.fields {
            field.origin = match field.given {
                None => origin::found(field, &frame, inner)?,
                Some(given) => origin::given(field, given)?,
            };
            if field.given.is_some() && given.is_none() {
                origin::check_shift(field)?;
            }
        }
        Ok(domain.unwrap_or_else(|| self.largest_domain()))
    }

    fn domain_of_halos(&self) -> Result<Extents> {
        let found =
            self.agreed(|field| field.carries_halo(), self.spec.decided_by.place_options())?;
        // Along an axis without such a field: the smallest extent of the others, or 1.
        let smallest = |axis| self.along(axis).map(|(_, one)| one.extent).min();
        let points = found.into_iter().enumerate();
        Ok(points.map(|(axis, points)| points.or_else(|| smallest(axis)).unwrap_or(1)).collect())
    }

    /// For a stencil that lacks origin or domain: arrays of one extent and with one halo, or, if
    /// none has a halo, with as many points around the domain as the stencil reaches.
    fn whole_arrays(&mut self, takes_origin: bool) -> Result<Extents> {
        let parts = self.each::<_, Result<Vec<_>>>(|axis| self.same_along(axis))?;
        for field in &mut self.fields {
            field.origin = match field.given.filter(|_| takes_origin) {
                Some(given) => origin::given(field, given)?,
                None => below(field, &parts)?,
            };
        }
        match &self.options.domain {
            Some(domain) => Ok(domain.clone()),
            None if takes_origin => Ok(self.largest_domain()),
            None => Ok(parts.iter().map(|part| part.1).collect()),
        }
    }

    /// Points below the domain, and in it, along one axis.
    fn same_along(&self, axis: usize) -> Result<(i64, i64)> {
        let Some((first, same)) = self.along(axis).next() else { return Ok((0, 1)) };
        let (extent, halo) = (same.extent, same.halo);
        let differs =
            |(_, one): &(&Placed<'_>, &Spatial<'_>)| (one.extent, one.halo) != (extent, halo);
        if let Some((field, one)) = self.along(axis).find(differs) {
            return Err(field.error(format!(
                "expected {extent} points with a halo of {halo:?} along {}, as '{}' has, since \
                 '{}' is not told where to compute, got {} with {:?}; pass arrays of one shape and \
                 halo, or give it parameters origin and domain",
                one.name, first.spec.name, self.spec.name, one.extent, one.halo
            )));
        }
        let with_halo = self.fields.iter().any(Placed::carries_halo);
        let touched = || widest(self.along(axis).map(|(_, one)| (one.span.below, one.span.above)));
        let (low, high) = if with_halo { halo } else { touched() };
        Ok((low, extent.saturating_sub(low).saturating_sub(high)))
    }

    /// Lets every field begin where it says, or at its lower halo.
    fn place_each(&mut self, inner: impl Fn(usize) -> Option<i64>) -> Result<()> {
        let frame = self.frame_of_lows();
        for field in &mut self.fields {
            field.origin = match field.given {
                None => origin::found(field, &frame, &inner)?,
                Some(given) => origin::given(field, given)?,
            };
            if field.given.is_some() {
                origin::check_inside(field)?;
            }
        }
        Ok(())
    }

    /// For a stencil whose outputs decide: the points that they have between their halos. Where they
    /// are to be made, those that all fields have.
    fn of_outputs(&mut self) -> Result<Extents> {
        let given = self.options.domain.clone();
        let counted = given.as_ref().filter(|_| self.options.start.is_none()).cloned();
        self.place_each(|axis| counted.as_ref()?.get(axis).copied())?;
        if let Some(domain) = given {
            self.start = self.options.start.clone().unwrap_or_else(|| self.start.clone());
            return Ok(domain);
        }
        for field in self.fields.iter().filter(|field| !field.begins_itself) {
            origin::check_shift(field)?;
        }
        let frame = self.frame();
        let windows = self.each::<_, Result<Vec<_>>>(|axis| self.window_along(axis, &frame))?;
        self.start = windows.iter().map(|window| window.0).collect();
        Ok(windows.iter().map(|&(first, end)| end.saturating_sub(first)).collect())
    }

    /// First point of the domain of the outputs along an axis, and the end behind the last.
    fn window_along(&self, axis: usize, frame: &[Frame]) -> Result<(i64, i64)> {
        let window = |one: (&Placed<'_>, &Spatial<'_>)| one.0.window(one.1, frame.get(axis));
        let writes = |field: &FieldSpec| field.access.writes();
        let has_axis = |field: &FieldSpec| {
            self.spec.axes.get(axis).is_some_and(|one| field.dims.contains(one))
        };
        if !self.spec.fields.iter().any(|field| writes(field) && has_axis(field)) {
            return Ok((0, 1)); // nothing is computed along it
        }
        let mut outputs = self.along(axis).filter(|(field, _)| writes(field.spec));
        let Some(first) = outputs.next() else {
            let common =
                |one: (i64, i64), other: (i64, i64)| (one.0.max(other.0), one.1.min(other.1));
            return Ok(self.along(axis).map(window).reduce(common).unwrap_or((0, 1)));
        };
        match outputs.find(|&other| window(other) != window(first)) {
            None => Ok(window(first)),
            Some(other) => {
                let ((low, high), (from, to)) = (window(first), window(other));
                let (name, known) = (first.1.name, &first.0.spec.name);
                Err(other.0.error(format!(
                    "expected points {low} to {high} along {name}, as in '{known}', got {from} to \
                     {to} (0 is the origin, the last is not among them); pass domain="
                )))
            }
        }
    }

    /// For a stencil that decides its domain: every field by itself. The returned domain is that of
    /// the outputs of a functional call, and means nothing otherwise.
    fn decided(&mut self) -> Result<Extents> {
        self.place_each(|_| None)?;
        match &self.options.domain {
            Some(domain) => Ok(domain.clone()),
            None if self.options.functional => {
                let found = self.agreed(|_| true, "domain=, or the outputs")?;
                Ok(found.into_iter().map(|points| points.unwrap_or(1)).collect())
            }
            None => Ok(self.largest_domain()),
        }
    }
}

/// The origin behind the points that `parts` has below the domain along each axis.
fn below(field: &Placed<'_>, parts: &[(i64, i64)]) -> Result<Extents> {
    let mut origin = origin::found(field, &[], |_| None)?;
    for one in &field.spatial {
        if let (Some(first), Some(part)) = (origin.get_mut(one.at), parts.get(one.axis)) {
            *first = part.0;
        }
    }
    Ok(origin)
}

fn check_length(spec: &StencilSpec, given: Option<&Extents>) -> Result<()> {
    let axes = &spec.axes;
    match given.filter(|domain| domain.len() != axes.len()) {
        None => Ok(()),
        Some(domain) => {
            let by_outputs = spec.decided_by == DecidedBy::Outputs;
            let outputs = || spec.fields.iter().filter(|field| field.access.writes());
            let counts = |axis: &&Dim| !by_outputs || outputs().any(|one| one.dims.contains(axis));
            let names: Vec<_> = axes.iter().filter(counts).map(Dim::to_string).collect();
            Err(Error::Argument(format!(
                "domain: expected {} numbers for {}, got {:?}",
                names.len(),
                names.join(", "),
                domain.as_slice()
            )))
        }
    }
}

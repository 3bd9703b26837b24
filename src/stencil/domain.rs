//! Derives origin and domain from halos unless the caller gives them. The rules, and why they are
//! so: docs/design.md, "How does `bind` find the domain?".

use super::StencilSpec;
use super::frame::widest;
use super::origin::{self, WAY_OUT};
use super::placed::{Placed, PlacedCall, Spatial};
use crate::error::{Error, Result};
use crate::layout::Extents;

impl PlacedCall<'_> {
    /// Gives every field an origin and returns the domain.
    pub(super) fn resolve_domain(&mut self) -> Result<Extents> {
        let spec = self.spec;
        check_length(spec, self.options.domain.as_ref())?;
        if spec.decides_domain {
            return self.decided();
        }
        let (origin, domain) = (spec.takes_origin, spec.takes_domain);
        let domain = if origin && domain { self.anywhere()? } else { self.whole_arrays()? };
        self.check_domain(&domain)?;
        Ok(domain)
    }

    /// Refuses too few points. None are legal, as on an MPI rank without points, if every field
    /// says so.
    fn check_domain(&self, domain: &Extents) -> Result<()> {
        let spec = self.spec;
        let short = |(axis, (points, _)): &(usize, (&i64, _))| match **points {
            0 => !self.may_be_empty(*axis),
            points => points < spec.fewest(*axis),
        };
        let mut points = domain.iter().zip(&spec.axes).enumerate();
        let Some((axis, (&points, name))) = points.find(short) else { return Ok(()) };
        let (expected, way_out) = match points {
            1.. => (spec.fewest(axis), String::new()),
            0 => (1, too_small(domain)),
            _ => (0, too_small(domain)),
        };
        let plural = if expected == 1 { "" } else { "s" };
        Err(Error::Argument(format!(
            "domain of '{}': expected at least {expected} point{plural} along {name}, got \
             {points}{way_out}",
            spec.name
        )))
    }

    fn may_be_empty(&self, axis: usize) -> bool {
        let decided = self.options.domain.is_some() || self.fields.iter().any(Placed::carries_halo);
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
        let found = self.agreed(|field| field.carries_halo(), WAY_OUT)?;
        // Along an axis without such a field: the smallest extent of the others, or 1.
        let smallest = |axis| self.along(axis).map(|(_, one)| one.extent).min();
        let points = found.into_iter().enumerate();
        Ok(points.map(|(axis, points)| points.or_else(|| smallest(axis)).unwrap_or(1)).collect())
    }

    /// For a stencil that lacks origin or domain: arrays of one extent and with one halo, or, if
    /// none has a halo, with as many points around the domain as the stencil reaches.
    fn whole_arrays(&mut self) -> Result<Extents> {
        let takes_origin = self.spec.takes_origin;
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
        let reach = || widest(self.along(axis).map(|(_, one)| one.reach));
        let (low, high) = if with_halo { halo } else { reach() };
        Ok((low, extent.saturating_sub(low).saturating_sub(high)))
    }

    /// For a stencil that decides its domain: every field by itself. The returned domain is that of
    /// the outputs of a functional call, and means nothing otherwise.
    fn decided(&mut self) -> Result<Extents> {
        let frame = self.frame_of_lows();
        for field in &mut self.fields {
            field.origin = match field.given {
                None => origin::found(field, &frame, |_| None)?,
                Some(given) => origin::given(field, given)?,
            };
            if field.given.is_some() {
                origin::check_inside(field)?;
            }
        }
        match &self.options.domain {
            Some(domain) => Ok(domain.clone()),
            None if self.options.functional => {
                let found = self.agreed(|_| true, "pass domain=, or the outputs")?;
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
        Some(domain) => Err(Error::Argument(format!(
            "domain: expected {} numbers for {}, got {:?}",
            axes.len(),
            axes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            domain.as_slice()
        ))),
    }
}

fn too_small(domain: &Extents) -> String {
    format!(" in {:?}; pass larger fields, or {WAY_OUT}", domain.as_slice())
}

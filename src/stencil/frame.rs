//! The halos of all fields of a call, along each axis of the iteration.

use super::DecidedBy;
use super::placed::{Placed, PlacedCall, Spatial};
use crate::error::Result;
use crate::field::{Halo, HaloWidth};
use crate::layout::Extents;

/// Extent and halo along one axis of all fields that have a halo.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    /// No field with a halo has the axis.
    Open,
    /// All have the same extent, halo included, and the same halo.
    Agreed(i64, HaloWidth),
    /// They differ.
    Differs,
}

/// The largest widths on both sides.
pub(super) fn widest(widths: impl Iterator<Item = HaloWidth>) -> HaloWidth {
    widths.fold((0, 0), |widest, one| (widest.0.max(one.0), widest.1.max(one.1)))
}

impl Placed<'_> {
    /// The points along an axis where an output is computed: all, but those of its halo, or of the
    /// halo of the others if it has as many points as they have with it.
    pub(super) fn window(&self, one: &Spatial<'_>, frame: Option<&Frame>) -> (i64, i64) {
        let origin = self.origin_at(one.at);
        match frame {
            _ if self.begins_itself => (origin.saturating_neg(), one.extent.saturating_sub(origin)),
            _ if self.carries_halo() => (0, one.inner()),
            Some(&Frame::Agreed(whole, (low, high))) if whole == one.extent => {
                (0, whole.saturating_sub(low).saturating_sub(high))
            }
            _ => (0, one.extent.saturating_sub(origin)),
        }
    }
}

impl PlacedCall<'_> {
    /// The widest halo along each axis.
    pub(super) fn widest_halo(&self) -> Halo {
        self.each(|axis| widest(self.along(axis).map(|(_, one)| one.halo)))
    }

    /// Points around the domain of an output that is made: none for a stencil that might compute
    /// there, as many as the other fields have for one that is not told where to compute.
    pub(super) fn output_halo(&self, domain: &Extents, halo: &Halo) -> Halo {
        match self.spec.decided_by {
            DecidedBy::Stencil => return Halo::from_elem((0, 0), self.spec.axes.len()),
            DecidedBy::Fields | DecidedBy::Outputs => return halo.clone(),
            DecidedBy::Arrays { .. } => {}
        }
        self.each(|axis| {
            let Some((field, one)) = self.along(axis).next() else { return (0, 0) };
            let (low, points) = (field.origin_at(one.at), domain.get(axis).copied().unwrap_or(0));
            (low, one.extent.saturating_sub(low).saturating_sub(points))
        })
    }

    /// The frame along each axis; empty if no field has a halo.
    pub(super) fn frame(&self) -> Vec<Frame> {
        if !self.fields.iter().any(Placed::carries_halo) {
            return Vec::new();
        }
        self.each(|axis| {
            let with_halo = self.along(axis).filter(|(field, _)| field.carries_halo());
            let own = with_halo.map(|(_, one)| Frame::Agreed(one.extent, one.halo));
            let joined = own.reduce(|known, own| if known == own { own } else { Frame::Differs });
            joined.unwrap_or(Frame::Open)
        })
    }

    /// As [`PlacedCall::frame`], for fields that need not have the same extents: along an axis where
    /// no field has points below its domain, every field begins with it.
    pub(super) fn frame_of_lows(&self) -> Vec<Frame> {
        let lowest = |axis| self.along(axis).map(|(_, one)| one.halo.0).max();
        let known = self.frame().into_iter().enumerate();
        known.map(|(axis, own)| if lowest(axis) == Some(0) { Frame::Open } else { own }).collect()
    }

    /// Points between the halos, which must be the same for all fields for which `counts` is true;
    /// `None` for an axis that none of them has.
    pub(super) fn agreed(
        &self,
        counts: impl Fn(&Placed<'_>) -> bool,
        way_out: &str,
    ) -> Result<Vec<Option<i64>>> {
        self.each(|axis| {
            let mut fields = self.along(axis).filter(|(field, _)| counts(field));
            let Some((first, one)) = fields.next() else { return Ok(None) };
            let points = one.inner();
            match fields.find(|(_, other)| other.inner() != points) {
                None => Ok(Some(points)),
                Some((field, other)) => Err(field.error(format!(
                    "expected {points} points between the halos along {}, as in '{}', got {}; \
                     pass {way_out}",
                    other.name,
                    first.spec.name,
                    other.inner()
                ))),
            }
        })
    }

    /// GT4Py's rule: along each axis the points that all fields with that axis have.
    pub(super) fn largest_domain(&self) -> Extents {
        self.each(|axis| self.along(axis).map(|(field, one)| field.room(one)).min().unwrap_or(1))
    }
}

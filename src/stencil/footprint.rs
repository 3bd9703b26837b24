//! Footprint: the points of each field that a stencil reads and writes, for one domain. A declared
//! footprint grows with the domain and is evaluated here; any other is found call by call.

use smallvec::SmallVec;

use crate::error::Error;
use crate::layout::Extents;

/// First point along an axis, and the end behind the last. 0 is the origin of the field.
pub(crate) type Range = (i64, i64);

/// Points along one axis that are touched, as a function of the number of points `n` of the domain:
/// from `min(-below, max(n - below_end, -most_below))` up to
/// `max(n + above, min(above_start, n + most_above))`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) below: i64,
    pub(crate) above: i64,
    /// Points below the upper end of the domain that are touched, however few points it has.
    pub(crate) below_end: i64,
    /// Points above the lower end of the domain that are touched, however few points it has.
    pub(crate) above_start: i64,
    /// The most points below the domain that `below_end` comes to.
    pub(crate) most_below: i64,
    /// The most points above the domain that `above_start` comes to.
    pub(crate) most_above: i64,
}

impl Span {
    /// The points for a domain that is not empty. A span that ends before it begins, because the
    /// stencil reads ahead or behind alone, covers both of its ends: they must exist.
    fn of(self, points: i64) -> Range {
        let low = points.saturating_sub(self.below_end).max(-self.most_below).min(-self.below);
        let most = points.saturating_add(self.most_above);
        let high = self.above_start.min(most).max(points.saturating_add(self.above));
        (low.min(high.saturating_sub(1)), high.max(low.saturating_add(1)))
    }

    /// The smallest span that covers two.
    pub(crate) fn hull(self, other: Self) -> Self {
        Self {
            below: self.below.max(other.below),
            above: self.above.max(other.above),
            below_end: self.below_end.max(other.below_end),
            above_start: self.above_start.max(other.above_start),
            most_below: self.most_below.max(other.most_below),
            most_above: self.most_above.max(other.most_above),
        }
    }
}

/// One value for each axis of the iteration that a field has.
pub(crate) type Along<T> = SmallVec<[T; 3]>;

/// The points of one field that a stencil touches: declared as [`Span`]s, or [`Range`]s of one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Touched<T> {
    /// The box that is read; `None` if nothing is.
    pub(crate) reads: Option<Along<T>>,
    /// The box that is written; `None` if nothing is.
    pub(crate) writes: Option<Along<T>>,
    /// False if points outside of the boxes may be touched, too.
    pub(crate) complete: bool,
    /// True if every access is at the point that is being computed.
    pub(crate) pointwise: bool,
}

impl Touched<Span> {
    /// The span of everything that is touched along an axis of the field.
    pub(super) fn span(&self, at: usize) -> Span {
        let along = |spans: &Option<Along<Span>>| spans.as_ref()?.get(at).copied();
        match (along(&self.reads), along(&self.writes)) {
            (Some(read), Some(written)) => read.hull(written),
            (one, other) => one.or(other).unwrap_or_default(),
        }
    }

    /// The points for a domain. Where it has none along some axis, nothing is computed.
    pub(super) fn of(&self, points: &[i64], empty: bool) -> Touched<Range> {
        let range = |(span, &points): (&Span, &i64)| match empty {
            true => (-span.below, points.saturating_add(span.above)),
            false => span.of(points),
        };
        // Unknown accesses may begin at the first point.
        let lowest = |(low, high): Range| (if self.complete { low } else { low.min(0) }, high);
        let along = |spans: &Option<Along<Span>>| {
            Some(spans.as_ref()?.iter().zip(points).map(range).map(lowest).collect())
        };
        Touched {
            reads: along(&self.reads),
            writes: along(&self.writes),
            complete: self.complete,
            pointwise: self.pointwise,
        }
    }
}

/// The fields of a call, the footprint of which is wanted: shape and origin in the declared order of
/// dimensions, `None` for a missing field.
pub(crate) struct Placement<'a> {
    pub(crate) fields: Vec<Option<(Extents, &'a Extents)>>,
    /// Points to compute along the axes of the iteration.
    pub(crate) domain: &'a Extents,
    /// First of them, counted from the origins.
    pub(crate) start: &'a Extents,
}

/// Finds the footprint of a call.
pub(crate) trait Footprints {
    /// All that a footprint depends on, besides what the plan depends on.
    type Basis;
    /// Raised for a call that has none.
    type Error: From<Error>;

    /// The footprint of a call: one entry for each field of the stencil; `None` if the declared one
    /// holds.
    ///
    /// # Errors
    /// If the stencil refuses the call.
    fn find(&self, call: &Placement<'_>) -> Result<Found<Self::Basis>, Self::Error>;
}

/// The points of each field, `None` as declared, and their basis.
pub(crate) type Found<B> = (Option<Vec<Touched<Range>>>, B);

/// Every footprint as declared.
#[cfg(test)]
pub(crate) struct Declared;

#[cfg(test)]
impl Footprints for Declared {
    type Basis = ();
    type Error = Error;

    fn find(&self, _: &Placement<'_>) -> Result<Found<()>, Error> {
        Ok((None, ()))
    }
}

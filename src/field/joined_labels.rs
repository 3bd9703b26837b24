//! The labels of a result of several operands: halo, origin, aligned point and order in memory.

use smallvec::SmallVec;

use super::description::{Field, Halo, HaloWidth};
use super::dims::Dim;
use super::joining::{Joined, Operand};
use super::matching::Axes;
use crate::layout::Extents;

impl Joined {
    /// The labels of a result without a target: the widest halo, the largest origin and the largest
    /// aligned index of the storages along each dimension. The halo is unknown if one is, or if it does
    /// not fit. A storage without an origin begins at its lower halo.
    pub(crate) fn field(&self, operands: &[Operand<'_>]) -> Field {
        let dims = self.dims.clone();
        let halo = self.widest_halo(operands);
        let field = Field { dims, halo, ..Field::default() };
        let origin = self.largest_origin(operands, &field);
        let aligned_index = self.largest_index(operands, &field);
        Field { origin, aligned_index, ..field }
    }

    /// Each storage with the axis of each dimension that it is not repeated along.
    fn storages<'a>(
        &'a self,
        operands: &'a [Operand<'a>],
    ) -> impl Iterator<Item = (&'a Field, Axes)> {
        let own = |(operand, axes): (&Operand<'a>, &Axes)| {
            let is_whole = |axis: usize, extent| operand.shape.get(axis) == Some(extent);
            let axes = axes.iter().zip(&self.shape);
            let axes = axes.map(|(axis, extent)| axis.filter(|&axis| is_whole(axis, extent)));
            operand.field.map(|field| (field, axes.collect()))
        };
        operands.iter().zip(&self.axes).filter_map(own)
    }

    fn widest_halo(&self, operands: &[Operand<'_>]) -> Option<Halo> {
        let mut widest = Halo::from_elem((0, 0), self.shape.len());
        for (field, axes) in self.storages(operands) {
            let own = field.halo.as_ref()?;
            for (width, axis) in widest.iter_mut().zip(axes) {
                let (low, high) = axis.and_then(|axis| own.get(axis).copied()).unwrap_or_default();
                *width = (width.0.max(low), width.1.max(high));
            }
        }
        let fits = |(width, &extent): (&HaloWidth, &i64)| width.0.saturating_add(width.1) <= extent;
        let is_data = |dim: &Dim| matches!(dim, Dim::Data(_));
        let data = self.dims.iter().flatten().zip(&widest);
        let has_none = data.filter(|(dim, _)| is_data(dim)).all(|(_, width)| *width == (0, 0));
        (has_none && widest.iter().zip(&self.shape).all(fits)).then_some(widest)
    }

    fn largest_origin(&self, operands: &[Operand<'_>], result: &Field) -> Option<Extents> {
        let mut given = operands.iter().filter_map(|one| one.field);
        if given.all(|field| field.origin.is_none()) {
            return None;
        }
        let own = |field: &Field| field.origin_by_axis(field.origin.as_ref()?.len());
        let largest = self.largest(operands, own);
        let found = largest.iter().any(Option::is_some);
        let at = |&axis: &usize| largest.get(axis).copied().flatten().unwrap_or(0);
        found.then(|| result.axes_in_order(self.shape.len()).iter().map(at).collect())
    }

    /// The aligned index of a result; `None` if that is its lower halo.
    fn largest_index(&self, operands: &[Operand<'_>], result: &Field) -> Option<Extents> {
        let largest = self.largest(operands, |field| field.aligned_index.clone());
        let inside = |(at, extent): (&Option<i64>, &i64)| {
            at.unwrap_or(0).min(extent.saturating_sub(1)).max(0)
        };
        let index: Extents = largest.iter().zip(&self.shape).map(inside).collect();
        let mut given = operands.iter().filter_map(|one| one.field);
        let is_requested = given.any(|field| field.aligned_index.is_some());
        let lower = result.aligned_index(index.len());
        let follows = index.iter().zip(&lower).all(|(at, lower)| at <= lower);
        (is_requested || !follows).then_some(index)
    }

    /// The largest index of the storages along each dimension: their `own`, else their lower halo.
    /// `None` if no storage has one there.
    fn largest(
        &self,
        operands: &[Operand<'_>],
        own: impl Fn(&Field) -> Option<Extents>,
    ) -> SmallVec<[Option<i64>; 4]> {
        let mut largest: SmallVec<[Option<i64>; 4]> = SmallVec::from_elem(None, self.shape.len());
        for (field, axes) in self.storages(operands) {
            let lower = || Some(field.halo.as_ref()?.iter().map(|width| width.0).collect());
            let Some(index) = own(field).or_else(lower) else { continue };
            for (slot, axis) in largest.iter_mut().zip(axes) {
                *slot = (*slot).max(axis.and_then(|axis| index.get(axis).copied()));
            }
        }
        largest
    }

    /// The ranks of a result: those of the first storage with all of its dimensions, else those of
    /// the first storage, with what it lacks outermost. `ranks` are those of each operand.
    pub(crate) fn ranks(&self, ranks: &[Option<Extents>]) -> Option<Extents> {
        let given =
            || self.axes.iter().zip(ranks).filter_map(|(axes, own)| Some((axes, own.as_ref()?)));
        let is_whole = |(axes, _): &(&Axes, &Extents)| axes.iter().all(Option::is_some);
        let (axes, own) = given().find(is_whole).or_else(|| given().next())?;
        let key =
            |axis: &Option<usize>| axis.map_or(-1, |axis| own.get(axis).copied().unwrap_or(0));
        let mut order: SmallVec<[usize; 6]> = (0..axes.len()).collect();
        order.sort_by_key(|&at| axes.get(at).map_or(-1, key));
        let rank_of =
            |at| order.iter().position(|&one| one == at).and_then(|rank| i64::try_from(rank).ok());
        (0..axes.len()).map(rank_of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    fn field(names: &str, halo: &[(i64, i64)], origin: &[i64]) -> Field {
        let dims = names.split_whitespace().map(Dim::from_name).collect();
        let (halo, origin) = (Some(halo.into()), Some(origin.into()));
        Field { dims: Some(dims), halo, origin, ..Field::default() }
    }

    #[test]
    fn halo_and_origin_are_the_largest_of_each_dimension() {
        let one = field("K I", &[(1, 0), (2, 0)], &[3, 0]);
        let two = field("I J", &[(1, 3), (0, 1)], &[1, 2]);
        let operands = [
            Operand { shape: &[4, 8], field: Some(&one) },
            Operand { shape: &[8, 5], field: Some(&two) },
        ];
        let joined = Joined::new(&operands).unwrap();
        let found = joined.field(&operands);
        assert_eq!(found.halo, Some(smallvec![(2, 3), (0, 1), (1, 0)]), "I, J, K");
        assert_eq!(found.origin.as_deref(), Some(&[3, 2, 0][..]), "in the order I, J, K");
        found.check(&joined.shape).unwrap();
    }

    #[test]
    fn a_storage_without_an_origin_begins_at_its_lower_halo() {
        let (one, two) =
            (field("I J", &[(2, 2), (0, 0)], &[0, 0]), field("I J", &[(0, 0); 2], &[1, 3]));
        let wide = Field { origin: None, ..one };
        let operands = [&wide, &two].map(|one| Operand { shape: &[8, 5], field: Some(one) });
        let found = Joined::new(&operands).unwrap().field(&operands);
        assert_eq!(found.origin.as_deref(), Some(&[2, 3][..]));
    }

    #[test]
    fn the_aligned_index_is_the_largest_and_follows_the_halo_unless_one_was_requested() {
        let index = |one: Option<[i64; 2]>, two| {
            let of = |index: Option<[i64; 2]>| Field {
                aligned_index: index.map(|index| Extents::from_slice(&index)),
                ..field("I J", &[(2, 1), (0, 0)], &[0, 0])
            };
            let fields = [of(one), of(two)];
            let operands =
                fields.each_ref().map(|one| Operand { shape: &[8, 5], field: Some(one) });
            Joined::new(&operands)
                .unwrap()
                .field(&operands)
                .aligned_index
                .map(|index| index.to_vec())
        };
        assert_eq!(index(None, None), None);
        assert_eq!(index(Some([1, 4]), Some([3, 0])), Some(vec![3, 4]));
        assert_eq!(index(Some([1, 1]), None), Some(vec![2, 1]));
    }

    #[test]
    fn a_halo_that_is_unknown_or_does_not_fit_is_unknown() {
        let halo = |one, two| {
            let fields = [one, two].map(|halo| Field { halo, ..field("I", &[], &[0]) });
            let operands = fields.each_ref().map(|one| Operand { shape: &[4], field: Some(one) });
            Joined::new(&operands).unwrap().field(&operands).halo
        };
        assert_eq!(halo(Some(smallvec![(3, 0)]), Some(smallvec![(0, 1)])), Some(smallvec![(3, 1)]));
        assert_eq!(halo(Some(smallvec![(3, 0)]), Some(smallvec![(0, 2)])), None);
        assert_eq!(halo(Some(smallvec![(3, 0)]), None), None);
    }

    #[test]
    fn a_dimension_that_is_repeated_brings_no_halo() {
        let one = Field { halo: Some(smallvec![(1, 0)]), ..Field::default() };
        let operands =
            [Operand { shape: &[1], field: Some(&one) }, Operand { shape: &[5], field: None }];
        let found = Joined::new(&operands).unwrap().field(&operands);
        assert_eq!(found.halo, Some(smallvec![(0, 0)]));
    }

    #[test]
    fn ranks_are_those_of_the_first_storage_that_has_all_dims() {
        let (small, whole) = (field("K", &[(0, 0)], &[0]), field("I K", &[(0, 0); 2], &[0, 0]));
        let operands = [
            Operand { shape: &[4], field: Some(&small) },
            Operand { shape: &[5, 4], field: Some(&whole) },
        ];
        let ranks = |ranks: [&[i64]; 2], operands: &[Operand<'_>]| {
            let ranks = ranks.map(|ranks| Some(ranks.into()));
            Joined::new(operands).unwrap().ranks(&ranks).unwrap().to_vec()
        };
        assert_eq!(ranks([&[0], &[1, 0]], &operands), [1, 0], "I, K: as the second");
        let other = field("I J", &[(0, 0); 2], &[0, 0]);
        let operands = [operands[1], Operand { shape: &[5, 3], field: Some(&other) }];
        assert_eq!(ranks([&[1, 0], &[0, 1]], &operands), [2, 0, 1], "I, J, K: J outermost");
    }
}

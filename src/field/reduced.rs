//! The dimensions and labels that a reduction leaves of its operand.

use smallvec::SmallVec;

use super::description::{Field, Halo};
use crate::layout::Extents;

/// The dimensions of the result of a reduction, in the order of the operand's axes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reduced {
    /// Axis of the operand, and true if it is whole; else it has extent 1.
    axes: SmallVec<[(usize, bool); 4]>,
}

impl Reduced {
    /// Reduces the axes `along` of an operand; with `keepdims` they stay with extent 1.
    pub(crate) fn new(ndim: usize, along: &[usize], keepdims: bool) -> Self {
        let axes = (0..ndim).map(|axis| (axis, !along.contains(&axis)));
        Self { axes: axes.filter(|(_, whole)| *whole || keepdims).collect() }
    }

    /// True if no dimension is left.
    pub(crate) fn is_number(&self) -> bool {
        self.axes.is_empty()
    }

    /// The extents of the result of an operand of shape `of`.
    pub(crate) fn shape(&self, of: &[i64]) -> Extents {
        self.of_each(of, 1)
    }

    /// The labels of the result of an operand with the field `of`, whose axes have the ranks `ranks`:
    /// a reduced dimension has no halo, and its first and its aligned point are 0.
    pub(crate) fn field(&self, of: &Field, ranks: &[i64]) -> Field {
        let name = |dims: &super::dims::Dims| {
            self.axes.iter().filter_map(|(axis, _)| dims.get(*axis).cloned()).collect()
        };
        let field = Field {
            dims: of.dims.as_ref().map(name),
            halo: of.halo.as_ref().map(|halo| self.of_each::<_, Halo>(halo, (0, 0))),
            order: Some(self.ranks(ranks)),
            aligned_index: of.aligned_index.as_ref().map(|index| self.of_each(index, 0)),
            ..Field::default()
        };
        Field { origin: self.origin(of, &field), ..field }
    }

    /// One entry for each dimension: that of the operand's axis, or `reduced`.
    fn of_each<T: Copy, C: FromIterator<T>>(&self, by_axis: &[T], reduced: T) -> C {
        let entry = |&(axis, whole): &(usize, bool)| {
            if whole { by_axis.get(axis).copied() } else { Some(reduced) }
        };
        self.axes.iter().filter_map(entry).collect()
    }

    /// The origin of `of`, in the order in which that of `field` counts.
    fn origin(&self, of: &Field, field: &Field) -> Option<Extents> {
        let by_axis: Extents = self.of_each(&of.origin_by_axis(of.origin.as_ref()?.len())?, 0);
        Some(field.origin_in_order(&by_axis))
    }

    /// The ranks of the axes among those that stay.
    fn ranks(&self, of: &[i64]) -> Extents {
        let rank = |axis: usize| of.get(axis).copied().unwrap_or(0);
        let before =
            |at: usize| self.axes.iter().filter(|(axis, _)| rank(*axis) < rank(at)).count();
        let ranks = self.axes.iter().map(|(axis, _)| before(*axis));
        ranks.filter_map(|rank| i64::try_from(rank).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::field::Dim;

    fn field(names: &str) -> Field {
        Field {
            dims: Some(names.split_whitespace().map(Dim::from_name).collect()),
            halo: Some(smallvec![(1, 2), (0, 1), (3, 0)]),
            origin: Some(smallvec![4, 5, 6]),
            aligned_index: Some(smallvec![1, 2, 3]),
            ..Field::default()
        }
    }

    #[test]
    fn the_dimensions_that_stay_keep_their_labels() {
        let reduced = Reduced::new(3, &[1], false);
        let found = reduced.field(&field("K I J"), &[2, 0, 1]);
        assert_eq!(found.dims, Some(smallvec![Dim::K, Dim::J]));
        assert_eq!(found.halo, Some(smallvec![(1, 2), (3, 0)]));
        assert_eq!(found.origin.as_deref(), Some(&[5, 6][..]), "of J, K, in the order I, J, K");
        assert_eq!(found.order.as_deref(), Some(&[1, 0][..]));
        assert_eq!(reduced.shape(&[9, 8, 7]).as_slice(), [9, 7]);
        found.check(&[9, 7]).unwrap();
    }

    #[test]
    fn an_origin_counts_anew_once_gt4py_knows_all_names_that_stay() {
        let found = Reduced::new(3, &[0], false).field(&field("lev J I"), &[0, 1, 2]);
        assert_eq!(found.origin.as_deref(), Some(&[6, 5][..]), "of I, J; before of lev, J, I");
    }

    #[test]
    fn a_kept_dimension_has_extent_1_and_neither_halo_nor_origin() {
        let reduced = Reduced::new(3, &[0, 2], true);
        let found = reduced.field(&field("I J K"), &[2, 0, 1]);
        assert_eq!(reduced.shape(&[9, 8, 7]).as_slice(), [1, 8, 1]);
        assert_eq!(found.halo, Some(smallvec![(0, 0), (0, 1), (0, 0)]));
        assert_eq!(found.origin.as_deref(), Some(&[0, 5, 0][..]));
        assert_eq!(found.aligned_index.as_deref(), Some(&[0, 2, 0][..]));
        assert_eq!(found.order.as_deref(), Some(&[2, 0, 1][..]));
    }

    #[test]
    fn what_is_unknown_stays_unknown() {
        let found = Reduced::new(2, &[0], false).field(&Field::default(), &[0, 1]);
        assert_eq!((found.dims, found.halo, found.origin), (None, None, None));
    }

    #[test]
    fn a_reduction_of_all_axes_is_a_number_unless_they_are_kept() {
        assert!(Reduced::new(2, &[0, 1], false).is_number());
        assert!(!Reduced::new(2, &[0, 1], true).is_number());
        assert!(Reduced::new(0, &[], false).is_number());
    }
}

//! What somebody says of an array of theirs, before it is a field.

use super::{Dims, Field, Halo};
use crate::error::Result;
use crate::layout::Extents;

/// What an array says of itself besides its memory, all of it about its own order of axes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Said {
    /// `None`: it has no names.
    pub(crate) dims: Option<Dims>,
    pub(crate) halo: SaidHalo,
    /// Where its domain begins, in the order I, J, K, data dimensions. `None`: it says nothing.
    pub(crate) origin: Option<Extents>,
}

/// What it says of its halo.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum SaidHalo {
    /// Nothing, as most libraries, which know of none: all of it is domain.
    #[default]
    Nothing,
    /// There was one, and it was about another part of the memory.
    Unknown,
    Known(Halo),
}

impl SaidHalo {
    /// The same, or another word where this one is no help.
    #[cfg(any(feature = "python", test))]
    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, other) => other,
            (Self::Unknown, Self::Known(halo)) => Self::Known(halo),
            (said, _) => said,
        }
    }

    /// As a [`Field`] has it.
    pub(crate) fn along(self, ndim: usize) -> Option<Halo> {
        match self {
            Self::Nothing => Some(Halo::from_elem((0, 0), ndim)),
            Self::Unknown => None,
            Self::Known(halo) => Some(halo),
        }
    }
}

/// The halo of a field, which is `None` where it is unknown.
impl From<Option<Halo>> for SaidHalo {
    fn from(halo: Option<Halo>) -> Self {
        halo.map_or(Self::Unknown, Self::Known)
    }
}

impl Said {
    /// # Errors
    /// As [`Field::check`].
    pub(crate) fn check(&self, shape: &[i64]) -> Result<()> {
        self.clone().verbatim(shape.len()).check(shape)
    }

    /// What is known of memory of that shape, to be checked. An origin that does not fit is left out: that of a
    /// field which begins before its memory, or whose names GT4Py does not know.
    pub(crate) fn into_field(self, shape: &[i64]) -> Field {
        let mut field = self.verbatim(shape.len());
        if field.origin.is_some() && field.check(shape).is_err() {
            field.origin = None;
        }
        field
    }

    fn verbatim(self, ndim: usize) -> Field {
        let Self { dims, halo, origin } = self;
        Field { dims, halo: halo.along(ndim), origin, ..Field::default() }
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::field::Dim;

    fn said(names: [&str; 2], origin: [i64; 2]) -> Said {
        let dims = names.iter().map(|name| Dim::from_name(name)).collect();
        Said {
            dims: Some(dims),
            halo: SaidHalo::Nothing,
            origin: Some(Extents::from_slice(&origin)),
        }
    }

    #[test]
    fn who_says_nothing_of_a_halo_has_none_and_an_unknown_one_stays_unknown() {
        let none: Halo = smallvec![(0, 0), (0, 0)];
        assert_eq!(SaidHalo::Nothing.along(2), Some(none.clone()));
        assert_eq!(SaidHalo::from(None).along(2), None);
        assert_eq!(SaidHalo::from(Some(none.clone())).along(2), Some(none));
    }

    #[test]
    fn a_known_halo_counts_more_than_an_unknown_one_and_that_more_than_silence() {
        let (silence, unknown) = (SaidHalo::Nothing, SaidHalo::Unknown);
        let [first, second]: [Halo; 2] = [smallvec![(1, 1)], smallvec![(2, 2)]];
        let known = SaidHalo::Known(first);
        assert_eq!(silence.clone().or(unknown.clone()), unknown);
        assert_eq!(unknown.clone().or(silence.clone()), unknown);
        assert_eq!(unknown.or(known.clone()), known);
        assert_eq!(known.clone().or(SaidHalo::Known(second)), known);
        assert_eq!(silence.clone().or(silence.clone()), silence);
    }

    #[test]
    fn an_origin_that_fits_stays() {
        let field = said(["J", "I"], [3, 0]).into_field(&[2, 5]);
        assert_eq!(field.origin.as_deref(), Some(&[3, 0][..]), "in the order I, J");
    }

    #[test]
    fn an_origin_that_does_not_fit_is_left_out_and_nothing_else() {
        for one in [said(["I", "J"], [-1, 0]), said(["I", "lon"], [1, 0])] {
            assert!(one.check(&[2, 5]).is_err(), "{one:?}");
            let field = one.clone().into_field(&[2, 5]);
            assert_eq!((field.origin, field.dims), (None, one.dims));
        }
    }
}

//! The domain of a view: as a whole, or plane by plane on several threads.

use ndarray::parallel::prelude::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use ndarray::{ArrayView, ArrayViewMut, Axis, Dimension, RemoveAxis, Slice};

use super::view::{FieldMut, FieldRef};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::field::Halo;
use crate::managed::Managed;

/// Range of an axis inside the halo.
fn inside(halo: &Halo, axis: Axis) -> Slice {
    let (low, high) = halo.get(axis.index()).copied().unwrap_or_default();
    let low = isize::try_from(low).unwrap_or(isize::MAX);
    let high = isize::try_from(high).unwrap_or(isize::MAX);
    // An end of -0 would mean the beginning.
    Slice::new(low, if high == 0 { None } else { Some(-high) }, 1)
}

/// Returns the halo, unless axes of the view were cut, reordered or inverted in place.
fn known_halo<'a>(
    halo: Option<&'a Halo>,
    memory: &Managed,
    (shape, strides): (&[usize], &[isize]),
) -> Result<&'a Halo> {
    let layout = memory.layout();
    let axes = shape
        .iter()
        .zip(strides)
        .map(|(&extent, &stride)| Some((i64::try_from(extent).ok()?, i64::try_from(stride).ok()?)));
    let is_own = |(axis, own): (Option<(i64, i64)>, (i64, i64))| {
        let moves = |extent| extent > 1 && layout.size() > 0;
        axis.is_some_and(|(extent, stride)| extent == own.0 && (!moves(extent) || stride == own.1))
    };
    if shape.len() != layout.ndim() || !axes.zip(layout.axes()).all(is_own) {
        return Err(Error::Argument(format!(
            "domain: expected the field's original shape {:?} with strides {:?}, got {shape:?} with \
             {strides:?}; do not reorder, invert or cut its axes in place",
            layout.shape(),
            layout.strides()
        )));
    }
    halo.ok_or_else(|| {
        Error::Argument(
            "domain: expected a halo, got a view whose halo is unknown; slice the domain yourself"
                .into(),
        )
    })
}

macro_rules! read_domain {
    ($view:ident) => {
        impl<T: Element, D: Dimension> $view<'_, T, D> {
            /// Returns the part inside the halo.
            ///
            /// # Errors
            /// [`Error::Argument`] if the halo is unknown, or axes of the view were changed in place.
            pub fn domain(&self) -> Result<ArrayView<'_, T, D>> {
                let halo = known_halo(self.halo(), self.memory(), (self.shape(), self.strides()))?;
                Ok(self.slice_each_axis(|axis| inside(halo, axis.axis)))
            }

            /// The axis that is outermost in memory, along which sharing work over threads is
            /// fastest.
            #[must_use]
            pub fn outermost_axis(&self) -> Axis {
                let axes = self.memory().layout().axes().enumerate();
                let strides = axes.filter(|(_, (extent, _))| *extent > 1);
                let outermost = strides.max_by_key(|(_, (_, stride))| stride.unsigned_abs());
                Axis(outermost.map_or(0, |(axis, _)| axis))
            }
        }
    };
}

read_domain!(FieldRef);
read_domain!(FieldMut);

impl<T: Element, D: Dimension> FieldMut<'_, T, D> {
    /// Returns the part inside the halo for writing.
    ///
    /// # Errors
    /// [`Error::Argument`] if the halo is unknown, or axes of the view were changed in place.
    pub fn domain_mut(&mut self) -> Result<ArrayViewMut<'_, T, D>> {
        let halo = known_halo(self.halo(), self.memory(), (self.shape(), self.strides()))?.clone();
        Ok(self.slice_each_axis_mut(|axis| inside(&halo, axis.axis)))
    }
}

impl<T: Element, D: RemoveAxis> FieldMut<'_, T, D> {
    /// Calls `write` for each plane of the domain across `axis`, on the threads of rayon's pool.
    /// The index of a plane counts in the whole field, halo included, so that it is valid for other
    /// fields of that shape.
    ///
    /// # Errors
    /// [`Error::Argument`] if the halo is unknown, axes of the view were changed in place, or there is
    /// no such axis.
    ///
    /// # Panics
    /// If `write` panics, maybe on several threads. Check shapes first, with
    /// [`same_shape`](crate::same_shape).
    ///
    /// # Example
    ///
    /// ```
    /// use dlfield::Storage;
    /// use dlfield::ndarray::{Axis, Ix2, s};
    ///
    /// let halo = [(1, 1), (0, 0)];
    /// let inp = Storage::builder([6, 4]).halo(halo).full(2.0_f64)?;
    /// let out = Storage::builder([6, 4]).halo(halo).zeros::<f64>()?;
    ///
    /// let values = inp.view::<f64, Ix2>()?;
    /// out.view_mut::<f64, Ix2>()?.par_planes_mut(Axis(0), |i, mut row| {
    ///     row.assign(&(&values.slice(s![i - 1, ..]) + &values.slice(s![i + 1, ..])));
    /// })?;
    /// assert_eq!(out.view::<f64, Ix2>()?.sum(), 4.0 * 16.0); // the halo is unchanged
    /// # Ok::<(), dlfield::Error>(())
    /// ```
    pub fn par_planes_mut(
        &mut self,
        axis: Axis,
        write: impl Fn(usize, ArrayViewMut<'_, T, D::Smaller>) + Sync + Send,
    ) -> Result<()> {
        let halo = known_halo(self.halo(), self.memory(), (self.shape(), self.strides()))?;
        let &(low, _) = halo.get(axis.index()).ok_or_else(|| {
            let (count, got) = (halo.len(), axis.index());
            Error::Argument(format!("axis: expected one of {count} axes, got {got}"))
        })?;
        let first = usize::try_from(low).unwrap_or(0);
        let mut domain = self.domain_mut()?;
        let planes = domain.axis_iter_mut(axis).into_par_iter().enumerate();
        planes.for_each(|(at, plane)| write(first.saturating_add(at), plane));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Ix2, Ix3, IxDyn};

    use super::*;
    use crate::storage::Storage;

    fn field() -> Storage {
        let halo = [(1, 2), (0, 1), (0, 0)];
        Storage::builder([8, 5, 3]).halo(halo).layout([2, 1, 0]).zeros::<f64>().unwrap()
    }

    #[test]
    fn the_domain_is_the_part_inside_the_halo() {
        let field = field();
        field.view_mut::<f64, Ix3>().unwrap().domain_mut().unwrap().fill(1.0);
        let view = field.view::<f64, Ix3>().unwrap();
        assert_eq!(view.sum(), 5.0 * 4.0 * 3.0);
        assert_eq!(view.domain().unwrap().shape(), [5, 4, 3]);
        assert_eq!((view[[1, 0, 0]], view[[0, 0, 0]], view[[6, 0, 0]]), (1.0, 0.0, 0.0));
    }

    #[test]
    fn planes_are_counted_in_the_whole_field() {
        let field = field();
        let mut view = field.view_mut::<f64, IxDyn>().unwrap();
        assert_eq!(view.outermost_axis(), Axis(2));
        view.par_planes_mut(Axis(0), |at, mut plane| plane.fill(at as f64)).unwrap();
        assert_eq!((view[[1, 2, 2]], view[[5, 2, 2]], view[[6, 2, 2]]), (1.0, 5.0, 0.0));
        let error = view.par_planes_mut(Axis(3), |_, _| ()).unwrap_err().to_string();
        assert_eq!(error, "axis: expected one of 3 axes, got 3");
    }

    #[test]
    fn axes_that_were_exchanged_or_inverted_in_place_have_no_halo() {
        let field = Storage::builder([4, 4]).halo([(1, 1), (0, 0)]).zeros::<f64>().unwrap();
        let changes: [fn(&mut FieldMut<'_, f64, Ix2>); 2] =
            [|view| view.swap_axes(0, 1), |view| view.invert_axis(Axis(0))];
        for change in changes {
            let mut view = field.view_mut::<f64, Ix2>().unwrap();
            change(&mut view);
            let error = view.domain_mut().unwrap_err().to_string();
            assert!(error.contains("do not reorder, invert or cut"), "{error}");
        }
    }

    #[test]
    fn a_field_with_an_unknown_halo_has_no_domain() {
        let field = Storage::builder([4, 4]).zeros::<f32>().unwrap().with_halo(None).unwrap();
        let error = field.view::<f32, Ix2>().unwrap().domain().unwrap_err().to_string();
        assert!(error.contains("slice the domain yourself"), "{error}");
    }
}

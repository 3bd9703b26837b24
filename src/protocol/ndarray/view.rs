//! Typed views of a field, with run-time borrows.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use ndarray::{ArrayRef, ArrayView, ArrayViewMut, Dimension, IxDyn};
use smallvec::SmallVec;

use super::convert::{for_reading, for_writing};
use crate::borrow::Borrow;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::field::{Dim, Dims, Field, Halo, show_dims};
use crate::managed::Managed;
use crate::storage::{Builder, Storage};
use crate::sync::Dirty;

/// A field for reading: derefs to [`ndarray::ArrayRef`], and knows the names and the halo of its
/// dimensions.
///
/// While it lives, a [`FieldMut`] of the same elements is refused. As an argument of a function
/// that PyO3 exports, it accepts any array (feature `python`). Its axes are in the array's own
/// order; names matter only for [`FieldRef::in_order`].
pub struct FieldRef<'a, T: Element, D: Dimension = IxDyn> {
    array: ArrayView<'a, T, D>,
    borrowed: Borrowed,
}

/// A field for writing: derefs to a mutable [`ndarray::ArrayRef`].
///
/// While it lives, any other view of the same elements is refused. Names, halo and domain belong to
/// the original field: methods that reorder or cut the array in place (`swap_axes`,
/// `slice_axis_inplace`) do not change them.
pub struct FieldMut<'a, T: Element, D: Dimension = IxDyn> {
    array: ArrayViewMut<'a, T, D>,
    borrowed: Borrowed,
}

/// The memory of a view, and its borrow. The hook runs while the borrow still excludes others.
struct Borrowed {
    field: Arc<Field>,
    /// Hook of a view for writing. Fields are dropped in order: it runs before the borrow ends.
    _written: Written,
    _borrow: Borrow,
    memory: Managed,
}

type Hook = Box<dyn FnOnce() + Send + Sync>;

/// Hook that runs after the memory was written.
struct Written(Option<Hook>);

impl Drop for Written {
    fn drop(&mut self) {
        if let Some(hook) = self.0.take() {
            hook();
        }
    }
}

impl<'a, T: Element, D: Dimension> FieldRef<'a, T, D> {
    /// Borrows host memory.
    pub(crate) fn over(memory: Managed, field: Arc<Field>) -> Result<Self> {
        let borrow = Borrow::shared(&memory)?;
        memory.wait()?; // for an earlier copy
        // SAFETY: `memory` and `borrow` live as long as the FieldRef, which excludes tracked
        // writers. The view is handed out only while the FieldRef is borrowed.
        let array = unsafe { for_reading(&memory) }?;
        let borrowed = Borrowed { field, _written: Written(None), _borrow: borrow, memory };
        Ok(Self { array, borrowed })
    }

    /// Reorders the axes by `names`. A field without names must have as many dimensions, and keeps
    /// its order. Copies nothing.
    ///
    /// # Errors
    /// [`Error::Argument`] if the field has other names, or `E` another number of dimensions.
    pub fn in_order<E: Dimension>(self, names: &[&str]) -> Result<FieldRef<'a, T, E>> {
        let borrowed = self.borrowed.in_order(names)?;
        // SAFETY: as in `over`, with the same borrow, which moves into the new view.
        let array = unsafe { for_reading(&borrowed.memory) }?;
        Ok(FieldRef { array, borrowed })
    }
}

impl<'a, T: Element, D: Dimension> FieldMut<'a, T, D> {
    /// Borrows host memory. Dropping the view calls `written`.
    pub(crate) fn over(memory: Managed, field: Arc<Field>, written: Option<Hook>) -> Result<Self> {
        let borrow = Borrow::exclusive(&memory)?;
        memory.wait()?; // for an earlier copy
        let written = Written(written);
        // SAFETY: as for a FieldRef. Borrow::exclusive checks that the memory is writable with one
        // index per element, and excludes other tracked users.
        let array = unsafe { for_writing(&memory) }?;
        Ok(Self { array, borrowed: Borrowed { field, _written: written, _borrow: borrow, memory } })
    }

    /// As [`FieldRef::in_order`].
    ///
    /// # Errors
    /// As [`FieldRef::in_order`].
    pub fn in_order<E: Dimension>(self, names: &[&str]) -> Result<FieldMut<'a, T, E>> {
        let borrowed = self.borrowed.in_order(names)?;
        // SAFETY: as in `over`, with the same borrow, which moves into the new view.
        let array = unsafe { for_writing(&borrowed.memory) }?;
        Ok(FieldMut { array, borrowed })
    }
}

impl Borrowed {
    /// Reorders the axes by `names`.
    fn in_order(self, names: &[&str]) -> Result<Self> {
        let wanted: Dims = names.iter().map(|name| Dim::from_name(name)).collect();
        let place = |own: &Dims, dim| own.iter().position(|one| one == dim).unwrap_or(usize::MAX);
        let axes: SmallVec<[usize; 4]> = match &self.field.dims {
            None => (0..wanted.len()).collect(),
            Some(own) => wanted.iter().map(|dim| place(own, dim)).collect(),
        };
        let memory = self.memory.permute(&axes).map_err(|_| {
            let wanted = show_dims(&wanted);
            Error::Argument(match &self.field.dims {
                None => {
                    let shape = self.memory.layout().shape();
                    format!("field: expected dimensions {wanted}, got shape {shape:?}; pass a part")
                }
                Some(own) => format!(
                    "field: expected dimensions {wanted}, got {}; rename them, or pass a part",
                    show_dims(own)
                ),
            })
        })?;
        let field = Arc::new(self.field.permute(&axes, memory.layout().shape()));
        Ok(Self { field, memory, ..self })
    }
}

macro_rules! labels {
    ($view:ident) => {
        impl<T: Element, D: Dimension> $view<'_, T, D> {
            /// Names of the dimensions, in the order of the axes. `None` means unnamed.
            #[must_use]
            pub fn dims(&self) -> Option<&Dims> {
                self.borrowed.field.dims.as_ref()
            }

            /// Number of points outside the domain at both ends of each dimension. `None` means
            /// unknown. Arrays of other libraries have a halo of zeros.
            #[must_use]
            pub fn halo(&self) -> Option<&Halo> {
                self.borrowed.field.halo.as_ref()
            }

            /// Starts a builder of a storage with the same shape, names, halo and order in memory.
            pub fn like(&self) -> Builder {
                Builder::like(&self.borrowed.memory, &self.borrowed.field)
            }

            /// The memory of the view.
            pub(super) fn memory(&self) -> &Managed {
                &self.borrowed.memory
            }
        }

        impl<T: Element, D: Dimension> Deref for $view<'_, T, D> {
            type Target = ArrayRef<T, D>;

            fn deref(&self) -> &Self::Target {
                &self.array
            }
        }

        impl<T: Element, D: Dimension> fmt::Debug for $view<'_, T, D> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($view))
                    .field("dims", &self.dims())
                    .field("halo", &self.halo())
                    .field("array", &self.array)
                    .finish_non_exhaustive()
            }
        }
    };
}

labels!(FieldRef);
labels!(FieldMut);

impl<T: Element, D: Dimension> DerefMut for FieldMut<'_, T, D> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.array
    }
}

impl Storage {
    /// Views the values on the host for reading, as elements of `T` in `D` dimensions. Copies
    /// nothing, except newer values of a pair's device buffer to the host.
    ///
    /// Borrows are checked at run time, across all storages of the same memory. Users of the memory
    /// through Python or DLPack are not tracked: exporting the memory means to answer for them.
    ///
    /// # Errors
    /// [`Error::Argument`] for another type or number of dimensions; [`Error::Buffer`] while
    /// another view writes the elements, and for misaligned elements; [`Error::Device`] for device
    /// memory.
    ///
    /// # Example
    ///
    /// ```
    /// use dlfield::Storage;
    /// use dlfield::ndarray::{Ix3, s};
    ///
    /// let field = Storage::builder([5, 4, 3]).dims(["I", "J", "K"]).zeros::<f64>()?;
    /// field.view_mut::<f64, Ix3>()?[[2, 0, 1]] = 7.0;
    ///
    /// let view = field.view::<f64, Ix3>()?;
    /// assert_eq!(view.slice(s![2, .., ..]).sum(), 7.0);
    /// assert!(field.view_mut::<f64, Ix3>().is_err(), "it is being read");
    ///
    /// let turned = view.in_order::<Ix3>(&["K", "J", "I"])?;
    /// assert_eq!((turned.shape(), turned[[1, 0, 2]]), (&[3, 4, 5][..], 7.0));
    /// # Ok::<(), dlfield::Error>(())
    /// ```
    pub fn view<T: Element, D: Dimension>(&self) -> Result<FieldRef<'_, T, D>> {
        FieldRef::over(self.host()?.clone(), self.field())
    }

    /// Views the values on the host for writing. When the view is dropped, the host's buffer of a
    /// pair counts as newer.
    ///
    /// # Errors
    /// As [`Storage::view`]; [`Error::Buffer`] while another view uses the elements, for read-only
    /// memory, and if several indices name one element.
    pub fn view_mut<T: Element, D: Dimension>(&self) -> Result<FieldMut<'_, T, D>> {
        let written = self
            .sync_state()
            .cloned()
            .map(|state| -> Hook { Box::new(move || state.set(Dirty::Host)) });
        FieldMut::over(self.host()?.clone(), self.field(), written)
    }
}

//! Typed views of a field, and who may have one.

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
use crate::sync::Newer;

/// A field for reading: derefs to [`ndarray::ArrayRef`], with the names and the halo of its dimensions beside it.
///
/// As long as there is one nobody gets a [`FieldMut`] of the same elements. In a function that PyO3 exports it is
/// an argument that takes any array (feature `python`). Its axes are in the array's own order: names count once
/// [`FieldRef::in_order`] has asked for them.
pub struct FieldRef<'a, T: Element, D: Dimension = IxDyn> {
    array: ArrayView<'a, T, D>,
    held: Held,
}

/// A field for writing: derefs to a mutable [`ndarray::ArrayRef`].
///
/// As long as there is one nobody gets another view of the same elements. Names, halo and domain are those of the
/// field as it came: what turns or cuts the array in place (`swap_axes`, `slice_axis_inplace`) does not change them.
pub struct FieldMut<'a, T: Element, D: Dimension = IxDyn> {
    array: ArrayViewMut<'a, T, D>,
    held: Held,
}

/// What a view stands on: dropped, it lets others at the memory. Whoever is told that it was written, and reads
/// or writes it at once in Rust, is refused: it is not let go yet.
struct Held {
    field: Arc<Field>,
    /// Of a view for writing: told before anything is let go, since what stands first is dropped first.
    _written: Written,
    _borrow: Borrow,
    memory: Managed,
}

/// Whom to tell that the memory was written.
struct Written(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Drop for Written {
    fn drop(&mut self) {
        if let Some(tell) = self.0.take() {
            tell();
        }
    }
}

impl<'a, T: Element, D: Dimension> FieldRef<'a, T, D> {
    /// Over memory of the host.
    ///
    /// # Errors
    /// As [`Storage::view`].
    pub(crate) fn over(memory: Managed, field: Arc<Field>) -> Result<Self> {
        let borrow = Borrow::shared(&memory)?;
        memory.wait()?; // a copy that was begun before
        // SAFETY: `held` keeps the memory and the borrow for as long as the view is there; nobody who asks writes it
        // meanwhile (Borrow). Nothing gives the view out for longer than the FieldRef is borrowed.
        let array = unsafe { for_reading(&memory) }?;
        let written = Written(None);
        Ok(Self { array, held: Held { field, _written: written, _borrow: borrow, memory } })
    }

    /// The same field with its axes in the order of `names`. Without names it has to have that many dimensions, and
    /// stays as it is. Copies nothing.
    ///
    /// # Errors
    /// [`Error::Argument`] where it has other names, or another number of them than `E` has dimensions.
    pub fn in_order<E: Dimension>(self, names: &[&str]) -> Result<FieldRef<'a, T, E>> {
        let held = self.held.in_order(names)?;
        check_count::<E>(names)?;
        // SAFETY: as for the whole, which this takes the place of.
        let array = unsafe { for_reading(&held.memory) }?;
        Ok(FieldRef { array, held })
    }
}

impl<'a, T: Element, D: Dimension> FieldMut<'a, T, D> {
    /// Over memory of the host; `written` is called when it is dropped.
    ///
    /// # Errors
    /// As [`Storage::view_mut`].
    pub(crate) fn over(
        memory: Managed,
        field: Arc<Field>,
        written: Option<Box<dyn FnOnce() + Send + Sync>>,
    ) -> Result<Self> {
        let borrow = Borrow::exclusive(&memory)?;
        memory.wait()?; // a copy that was begun before
        let written = Written(written);
        // SAFETY: as for a FieldRef; the memory may be written, has an element for each index, and nobody who asks
        // has it meanwhile (Borrow).
        let array = unsafe { for_writing(&memory) }?;
        Ok(Self { array, held: Held { field, _written: written, _borrow: borrow, memory } })
    }

    /// As [`FieldRef::in_order`].
    ///
    /// # Errors
    /// As [`FieldRef::in_order`].
    pub fn in_order<E: Dimension>(self, names: &[&str]) -> Result<FieldMut<'a, T, E>> {
        let held = self.held.in_order(names)?;
        check_count::<E>(names)?;
        // SAFETY: as for the whole, which this takes the place of.
        let array = unsafe { for_writing(&held.memory) }?;
        Ok(FieldMut { array, held })
    }
}

impl Held {
    /// The same with the axes in the order of `names`.
    fn in_order(self, names: &[&str]) -> Result<Self> {
        let wanted: Dims = names.iter().map(|name| Dim::from_name(name)).collect();
        let shape = self.memory.layout().shape();
        let axes: Option<SmallVec<[usize; 4]>> = match &self.field.dims {
            None => Some((0..shape.len()).collect()),
            Some(own) => wanted.iter().map(|dim| own.iter().position(|one| one == dim)).collect(),
        };
        let each = |axes: &SmallVec<[usize; 4]>| (0..shape.len()).all(|axis| axes.contains(&axis));
        let axes = axes.filter(|axes| wanted.len() == shape.len() && each(axes)).ok_or_else(|| {
            let wanted = show_dims(&wanted);
            Error::Argument(match &self.field.dims {
                None => format!("field: expected dimensions {wanted}, got shape {shape:?}; select what is to be passed"),
                Some(own) => format!(
                    "field: expected dimensions {wanted}, got {}; rename them, or select what is to be passed",
                    show_dims(own)
                ),
            })
        })?;
        let memory = self.memory.permute(&axes)?;
        let field = Arc::new(self.field.permute(&axes, memory.layout().shape()));
        Ok(Self { field, memory, ..self })
    }
}

fn check_count<D: Dimension>(names: &[&str]) -> Result<()> {
    match D::NDIM {
        Some(wanted) if wanted != names.len() => Err(Error::Argument(format!(
            "field: expected {wanted} names for as many dimensions, got {names:?}"
        ))),
        _ => Ok(()),
    }
}

macro_rules! what_is_known {
    ($view:ident) => {
        impl<T: Element, D: Dimension> $view<'_, T, D> {
            /// Names of the dimensions, in the order of the axes; `None`: nobody said.
            #[must_use]
            pub fn dims(&self) -> Option<&Dims> {
                self.held.field.dims.as_ref()
            }

            /// Points at the lower and upper end of each dimension that lie outside the domain; `None`: unknown. Arrays
            /// of other libraries have none: zeros.
            #[must_use]
            pub fn halo(&self) -> Option<&Halo> {
                self.held.field.halo.as_ref()
            }

            /// Starts the description of a fresh storage of this shape, with these names, halo and order in memory.
            pub fn like(&self) -> Builder {
                Builder::like(&self.held.memory, &self.held.field)
            }

            /// The memory it is a view of.
            pub(super) fn memory(&self) -> &Managed {
                &self.held.memory
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

what_is_known!(FieldRef);
what_is_known!(FieldMut);

impl<T: Element, D: Dimension> DerefMut for FieldMut<'_, T, D> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.array
    }
}

impl Storage {
    /// The values on the host for reading, as elements of `T` in `D` dimensions. Copies nothing, but the device's
    /// values to the host where those are newer.
    ///
    /// Other storages of the same memory, and those who got it through Python or DLPack, are not stopped by the
    /// compiler: Rust's are at run time, for the others whoever gave it to them answers.
    ///
    /// # Errors
    /// [`Error::Argument`] for another type or number of dimensions; [`Error::Buffer`] while somebody has the
    /// elements for writing, and for elements off their boundaries; [`Error::Device`] for memory of a device alone.
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
    /// assert!(field.view_mut::<f64, Ix3>().is_err(), "somebody reads it");
    ///
    /// let turned = view.in_order::<Ix3>(&["K", "J", "I"])?;
    /// assert_eq!((turned.shape(), turned[[1, 0, 2]]), (&[3, 4, 5][..], 7.0));
    /// # Ok::<(), dlfield::Error>(())
    /// ```
    pub fn view<T: Element, D: Dimension>(&self) -> Result<FieldRef<'_, T, D>> {
        FieldRef::over(self.on_host()?, self.shared_field())
    }

    /// The values on the host for writing; of a pair they count as newer when the view is dropped.
    ///
    /// # Errors
    /// As [`Storage::view`]; [`Error::Buffer`] while somebody else has the elements, for read-only memory, and where
    /// several indices name one element.
    pub fn view_mut<T: Element, D: Dimension>(&self) -> Result<FieldMut<'_, T, D>> {
        let state = self.sync_state().cloned();
        let written = state.map(|state| {
            let tell = move || state.set(Newer::Host);
            Box::new(tell) as Box<dyn FnOnce() + Send + Sync>
        });
        FieldMut::over(self.on_host()?, self.shared_field(), written)
    }
}

//! Stage 3 of 4. Takes a [`Managed`] and what is known of the field, gives a [`Storage`] to the
//! doors and to stencils.

mod residence;
mod buffers;
mod checks;
mod describe;
mod make;
mod builder;
mod copies;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::field::{Dim, Dims, Field, Halo, HaloWidth};
use crate::layout::{Extents, Item, steps};
use crate::managed::Managed;
use crate::preset::Preset;
use crate::sync::{Newer, SyncState};

use crate::device::Target;
pub(crate) use buffers::Buffers;
pub use builder::Builder;
pub use residence::{ManagedBy, Residence};

/// What somebody wants of a storage; everything that is `None` is open.
#[derive(Debug, Clone, Default)]
pub struct Spec {
    /// The order of the dimensions in memory.
    pub layout: Order,
    /// Alignment of the aligned element, in bytes.
    pub alignment: Option<usize>,
    /// Suits a backend; explicit wishes override it.
    pub preset: Option<&'static Preset>,
    /// Where it is to be, whatever the preset is for.
    pub device: Option<Target>,
    /// Who keeps host and device in step, for a storage on a GPU.
    pub managed: Option<ManagedBy>,
    /// Where the data is that it is made of; decides where nothing else does.
    pub near: Residence,
    /// Names, halo, aligned index; an alignment that only counts where nothing else asks for one.
    pub field: Field,
    /// Names for the preset's layout where the field has none; `None`: I, J, K and so on.
    pub layout_dims: Option<Dims>,
    /// A halo that is left open is unknown, rather than none.
    pub unknown_halo: bool,
}

/// How somebody wants the dimensions ordered in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Order {
    /// Nothing said: the preset decides, then the data, then C order.
    #[default]
    Open,
    /// As it comes, whatever the preset says.
    Any,
    /// Rank of each dimension, 0 = largest stride.
    Ranks(Extents),
}

/// A field: memory with named dimensions, halo and alignment.
///
/// Cloning and viewing copy no element. The memory is freed, or given back to its producer, when
/// the last storage, view and export of it is gone.
///
/// # Example
///
/// ```
/// use dlfield::{DType, Field, Fill, Preset, Spec, Storage};
///
/// let field = Field { halo: Some([(3, 3), (3, 3), (0, 0)].into_iter().collect()), ..Field::default() };
/// let spec = Spec { preset: Some(Preset::from_name("gt:cpu_ifirst")?), field, ..Spec::default() };
/// let storage = Storage::allocate(&[70, 70, 40], DType::Float64, &spec, Fill::Zeros)?;
///
/// assert_eq!(storage.managed().layout().strides(), [1, 70, 4900]); // in elements: I is contiguous
/// assert_eq!(storage.domain_view()?.managed().layout().shape(), [64, 64, 40]);
/// # Ok::<(), dlfield::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Storage {
    buffers: Buffers,
    field: Arc<Field>,
}

impl Storage {
    /// Memory and field that belong together.
    #[cfg(feature = "python")]
    pub(crate) fn from_parts(buffers: Buffers, field: Arc<Field>) -> Self {
        Self { buffers, field }
    }

    /// Takes it apart.
    #[cfg(feature = "python")]
    pub(crate) fn into_parts(self) -> (Buffers, Arc<Field>) {
        (self.buffers, self.field)
    }

    /// The memory, as it is: that of the host where there is one, else that of the device. To read
    /// values in it ask for [`Storage::on_host`] or [`Storage::on_device`].
    #[must_use]
    pub fn managed(&self) -> &Managed {
        self.buffers.managed()
    }

    /// The buffers as they are.
    #[cfg(feature = "python")]
    pub(crate) fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// The buffer that the host reaches, up to date, with nothing in flight. May copy from the device,
    /// and wait.
    ///
    /// # Errors
    /// [`Error::Device`] where there is none, or CUDA fails.
    pub fn on_host(&self) -> Result<Managed> {
        self.buffers.on_host()
    }

    /// The buffer that the device reaches, up to date once the work in flight on it is done. May copy
    /// from the host.
    ///
    /// # Errors
    /// [`Error::Device`] where there is none, or CUDA fails.
    pub fn on_device(&self) -> Result<Managed> {
        self.buffers.on_device()
    }

    /// Which buffers there are.
    #[must_use]
    pub fn residence(&self) -> Residence {
        self.buffers.residence()
    }

    /// Says that one buffer of a pair was written; of other storages there is nothing to say.
    pub fn set_newer(&self, newer: Newer) {
        self.buffers.set_newer(newer);
    }

    /// What the views of a pair of buffers share.
    #[must_use]
    pub fn sync_state(&self) -> Option<&Arc<SyncState>> {
        self.buffers.sync_state()
    }

    /// Extents of the dimensions, in elements.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        self.managed().layout().shape()
    }

    /// Type of an element.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.managed().dtype()
    }

    /// Names of the dimensions; `None`: nobody said.
    #[must_use]
    pub fn dims(&self) -> Option<&[Dim]> {
        self.field.dims.as_deref()
    }

    /// Points at the lower and upper end of each dimension that lie outside the domain; `None`: unknown.
    #[must_use]
    pub fn halo(&self) -> Option<&[HaloWidth]> {
        self.field.halo.as_deref()
    }

    /// Names, halo and alignment.
    #[must_use]
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// The same, to keep.
    #[cfg(feature = "ndarray")]
    pub(crate) fn shared_field(&self) -> Arc<Field> {
        Arc::clone(&self.field)
    }

    /// Rank of each dimension in memory, 0 = the largest stride (GDP-3 "layout"): as asked for where
    /// the strides do not contradict it.
    #[must_use]
    pub fn ranks(&self) -> Extents {
        self.managed().layout().ranks(self.field.order.as_deref().unwrap_or_default())
    }

    /// The part inside the halo, as a view whose halo is 0. Copies nothing.
    ///
    /// # Errors
    /// [`Error::Argument`] where the halo is unknown.
    pub fn domain_view(&self) -> Result<Self> {
        let halo = self.field.halo.as_ref().ok_or_else(|| {
            Error::Argument("domain_view: expected a halo, got a view whose halo is unknown; slice the domain yourself".into())
        })?;
        let inside = |(&(low, high), extent): (&HaloWidth, i64)| Item::Slice {
            start: Some(low),
            stop: Some(extent.saturating_sub(high)),
            step: None,
        };
        let extents = self.managed().layout().shape().iter().copied();
        self.select(&halo.iter().zip(extents).map(inside).collect::<SmallVec<[Item; 6]>>())
    }

    /// The part that `key` selects, as a view. Copies nothing.
    ///
    /// # Errors
    /// [`Error::Index`] for an index outside the storage or too many of them, [`Error::Argument`]
    /// for a step of 0.
    pub fn select(&self, key: &[Item]) -> Result<Self> {
        let shape = self.managed().layout().shape();
        let steps = steps(key, shape)?;
        let buffers = self.buffers.map(|one| one.select(&steps))?;
        let field = Arc::new(self.field.select(&steps, shape, buffers.managed().layout().shape()));
        Ok(Self { buffers, field })
    }

    /// A view with the dimensions in the order of `axes`. Copies nothing.
    ///
    /// # Errors
    /// [`Error::Argument`] where `axes` is no permutation.
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        let buffers = self.buffers.map(|one| one.permute(axes))?;
        let field = Arc::new(self.field.permute(axes, buffers.managed().layout().shape()));
        Ok(Self { buffers, field })
    }

    /// The same memory with other names for its dimensions, in their order. A default origin, which is counted in
    /// the order of the names, is forgotten.
    ///
    /// # Errors
    /// [`Error::Argument`] for names that repeat, and for another number of them.
    pub fn with_dims<D: Into<Dim>>(&self, names: impl IntoIterator<Item = D>) -> Result<Self> {
        let dims = names.into_iter().map(Into::into).collect();
        self.with_field(|field| {
            field.dims = Some(dims);
            field.origin = None;
        })
    }

    /// The same memory with another halo; `None`: unknown. The aligned element stays where it is.
    ///
    /// # Errors
    /// [`Error::Argument`] for a halo that does not fit.
    pub fn with_halo(&self, halo: Option<Halo>) -> Result<Self> {
        self.with_field(|field| field.halo = halo)
    }

    /// The same memory, with something else known of it. The aligned element stays where it is.
    fn with_field(&self, change: impl FnOnce(&mut Field)) -> Result<Self> {
        let shape = self.managed().layout().shape();
        let mut field = Field::clone(&self.field).with_fixed_index(shape);
        change(&mut field);
        field.check(shape)?;
        Ok(Self { buffers: self.buffers.clone(), field: Arc::new(field) })
    }
}

#[cfg(test)]
mod tests;

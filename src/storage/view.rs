//! Views of a storage: parts, other orders and other labels of the same memory. They copy nothing.

use std::sync::{Arc, PoisonError};

use smallvec::SmallVec;

use super::buffers::{Buffers, Residence};
use super::data::Storage;
use crate::error::{Error, Result};
use crate::field::{Dim, Field, Halo, HaloWidth};
use crate::layout::{Item, Layout, steps};
use crate::managed::Managed;

impl Storage {
    /// The part inside the halo, as a view whose halo is 0.
    ///
    /// # Errors
    /// [`Error::Argument`] if the halo is unknown.
    pub fn domain_view(&self) -> Result<Self> {
        let halo = self.halo().ok_or_else(|| {
            Error::Argument(
                "domain_view: expected a halo, got a view whose halo is unknown; slice the domain \
                 yourself"
                    .into(),
            )
        })?;
        let inside = |(&(low, high), &extent): (&HaloWidth, &i64)| Item::Slice {
            start: Some(low),
            stop: Some(extent.saturating_sub(high)),
            step: None,
        };
        let items = halo.iter().zip(self.shape()).map(inside);
        self.select(&items.collect::<SmallVec<[Item; 6]>>())
    }

    /// The part that `key` selects.
    ///
    /// # Errors
    /// [`Error::Index`] for an index outside the storage or too many of them, [`Error::Argument`]
    /// for a step of 0.
    pub fn select(&self, key: &[Item]) -> Result<Self> {
        let shape = self.shape();
        let steps = steps(key, shape)?;
        let buffers = self.buffers.map(|one| one.select(&steps))?;
        let field = self.field().select(&steps, shape, buffers.managed().layout().shape());
        Ok(Self::new(buffers, Arc::new(field)))
    }

    /// The dimensions in the order of `axes`.
    ///
    /// # Errors
    /// [`Error::Argument`] if `axes` is not a permutation.
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        let buffers = self.buffers.map(|one| one.permute(axes))?;
        let field = self.field().permute(axes, buffers.managed().layout().shape());
        Ok(Self::new(buffers, Arc::new(field)))
    }

    /// The same memory with other names for its dimensions, in their order. A default origin, which
    /// counts in the order of the names, is dropped.
    ///
    /// # Errors
    /// [`Error::Argument`] for names that repeat, and for another number of them.
    pub fn with_dims<D: Into<Dim>>(&self, names: impl IntoIterator<Item = D>) -> Result<Self> {
        let dims = names.into_iter().map(Into::into).collect();
        let field = self.changed_field(|field| {
            field.dims = Some(dims);
            field.origin = None;
        })?;
        Ok(Self::new(self.buffers.clone(), field))
    }

    /// Sets the halo; `None` if it is unknown. The aligned element stays where it is. Views
    /// and clones that exist already keep their halo.
    ///
    /// # Errors
    /// [`Error::Argument`] for a halo that does not fit.
    pub fn set_halo(&self, halo: Option<Halo>) -> Result<()> {
        let field = self.changed_field(|field| field.halo = halo)?;
        *self.field.write().unwrap_or_else(PoisonError::into_inner) = field;
        Ok(())
    }

    /// The field after a change. The aligned element stays where it is.
    fn changed_field(&self, change: impl FnOnce(&mut Field)) -> Result<Arc<Field>> {
        let shape = self.shape();
        let mut field = Field::clone(&self.field()).with_fixed_index(shape);
        change(&mut field);
        field.check(shape)?;
        Ok(Arc::new(field))
    }

    /// The same memory with another halo; `None` if it is unknown. The aligned element stays where
    /// it is.
    ///
    /// # Errors
    /// [`Error::Argument`] for a halo that does not fit.
    pub fn with_halo(&self, halo: Option<Halo>) -> Result<Self> {
        let field = self.changed_field(|field| field.halo = halo)?;
        Ok(Self::new(self.buffers.clone(), field))
    }

    /// Views a part of a 1-D storage of bytes as a storage without gaps, with the dtype, shape and
    /// names of `model`.
    ///
    /// # Errors
    /// [`Error::Argument`] for another storage than a row of bytes, and for bytes that it does not
    /// have.
    pub(crate) fn part_like(&self, start: i64, model: &Self) -> Result<Self> {
        let dtype = model.dtype();
        let layout = Layout::compact(model.shape().into(), dtype.itemsize())?;
        let bytes = i64::try_from(layout.nbytes()).unwrap_or(i64::MAX);
        let part = |row: &Managed| row.narrow(0, start, bytes)?.retyped(dtype, layout.clone());
        let field = Field { dims: model.field().dims.clone(), ..Field::default() };
        Ok(Self::new(self.buffers.map(part)?, Arc::new(field)))
    }

    /// The buffer of the device as a storage of its own, which shares the state of a pair.
    ///
    /// # Errors
    /// [`Error::NoBuffer`] if there is none, [`Error::Device`] if CUDA fails.
    pub fn device_side(&self) -> Result<Self> {
        let device = self.device()?;
        let alone = Residence::Device(device.device().ordinal);
        let buffers = self.buffers.with_residence(alone);
        let buffers = buffers.unwrap_or_else(|| Buffers::Device(device.clone().for_device()));
        Ok(Self::new(buffers, self.field()))
    }
}

//! What is requested of a storage, what that means for a shape, and checks of memory against it.

use std::sync::Arc;

use super::buffers::{ManagedBy, Residence};
use crate::alloc::{Plan, check_ranks, plan};
use crate::cuda::{check_ordinal, current_ordinal};
use crate::device::{Device, DeviceKind, Target};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::field::{Dims, Field, Halo, unlabelled};
use crate::layout::{Extents, falls_along};
use crate::managed::Managed;
use crate::preset::Preset;

/// Requested properties of a new storage. `None` means no preference.
#[derive(Debug, Clone, Default)]
pub struct Spec {
    /// Order of the dimensions in memory.
    pub layout: Order,
    /// Alignment of the aligned element, in bytes.
    pub alignment: Option<usize>,
    /// Preset that suits a backend; explicit requests override it.
    pub preset: Option<&'static Preset>,
    /// Where the storage is to lie, whatever the preset is for.
    pub device: Option<Target>,
    /// Who keeps host and device in step, for a storage on a GPU.
    pub managed: Option<ManagedBy>,
    /// Where the data is that the storage is made of; counts if nothing else decides.
    pub default_residence: Residence,
    /// Names, halo, aligned index; its alignment counts if no other is requested.
    pub field: Field,
    /// Names for the preset's layout if the field has none; `None` stands for I, J, K and so on.
    pub layout_dims: Option<Dims>,
    /// True if a halo of `None` means unknown rather than zero.
    pub unknown_halo: bool,
}

/// Requested order of the dimensions in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Order {
    /// No preference: the preset decides, then the data, then C order.
    #[default]
    Open,
    /// The order of the data, whatever the preset says.
    Any,
    /// Rank of each dimension, 0 = largest stride.
    Ranks(Extents),
}

impl Spec {
    /// A storage like a field: its names, halo, alignment and order, where it is.
    pub(crate) fn like(field: Field, default_residence: Residence) -> Self {
        Self { unknown_halo: field.halo.is_none(), field, default_residence, ..Self::default() }
    }

    /// The side that is requested: by `device`, else by the preset. `None` for no preference.
    pub(crate) fn target(&self) -> Option<Target> {
        self.device.or_else(|| self.preset.and_then(Preset::target))
    }

    /// Where the storage is to lie: as requested, else where the data is.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no such device.
    pub(crate) fn residence(&self) -> Result<Residence> {
        let number = match (self.target(), self.default_residence.ordinal()) {
            (Some(Target::Host), _) | (None, None) => return Ok(Residence::Host),
            (Some(Target::Gpu(number)), of_data) => number.or(of_data),
            (None, of_data) => of_data,
        };
        let ordinal = number.map_or_else(current_ordinal, Ok)?;
        check_ordinal(ordinal)?;
        let by = self.managed.unwrap_or(self.default_residence.managed_by());
        Ok(Residence::on_gpu(ordinal, by))
    }

    /// The ranks that are requested, explicitly or by a preset.
    fn ranks(&self, ndim: usize) -> Option<Extents> {
        let dims = self.field.dims.as_deref().or(self.layout_dims.as_deref());
        match (&self.layout, self.preset) {
            (Order::Ranks(ranks), _) => Some(ranks.clone()),
            (Order::Open, Some(preset)) => Some(preset.layout(ndim, dims)),
            (Order::Any, _) | (Order::Open, None) => None,
        }
    }

    /// True if nothing is requested of order, alignment and labels: a storage of such a
    /// specification is in C order, or in the order of its data, and shares its field with others.
    fn is_open(&self) -> bool {
        let order = self.layout != Order::Open || self.preset.is_some();
        !order && self.alignment.is_none() && !self.unknown_halo && self.field.is_empty()
    }

    fn field_for(&self, shape: &[i64], dtype: DType) -> Result<Arc<Field>> {
        let by_preset = || self.preset.map(|preset| preset.alignment(dtype.itemsize()));
        let alignment = self.alignment.or_else(by_preset).unwrap_or(self.field.alignment.max(1));
        let mut field = Field { alignment, ..self.field.clone() };
        if !self.unknown_halo {
            field.halo.get_or_insert_with(|| Halo::from_elem((0, 0), shape.len()));
        }
        field.check(shape)?;
        Ok(Arc::new(field))
    }

    /// Memory and field of a storage to allocate. Its order is that of `model` unless another is
    /// requested, and C order without a model.
    pub(super) fn plan(
        &self,
        shape: &[i64],
        dtype: DType,
        model: Option<&Managed>,
    ) -> Result<(Plan, Arc<Field>)> {
        let compact = Plan::compact(shape, dtype)?;
        if model.is_none() && self.is_open() {
            return Ok((compact, unlabelled(shape.len())));
        }
        if let Some(model) = model.filter(|_| self.device.is_none()) {
            check_allocatable(model.device())?;
        }
        let mut field = self.field_for(shape, dtype)?;
        let as_model = || match model {
            Some(model) => model.layout().ranks(field.order.as_deref().unwrap_or_default()),
            None => (0_i64..).take(shape.len()).collect(),
        };
        let ranks = self.ranks(shape.len()).unwrap_or_else(as_model);
        let index = field.aligned_index(shape.len());
        let plan = plan(shape, dtype, &ranks, field.alignment, &index)?;
        if field.order.as_ref() != Some(&ranks) {
            Arc::make_mut(&mut field).order = Some(ranks);
        }
        Ok((plan, field))
    }

    /// The field of memory that is to be shared, once it meets the requests.
    ///
    /// # Errors
    /// [`Error::Argument`] that names the request that the memory does not meet.
    pub(super) fn field_over(&self, memory: &Managed) -> Result<Arc<Field>> {
        let shape = memory.layout().shape();
        if self.is_open() {
            return Ok(unlabelled(shape.len()));
        }
        let mut field = self.field_for(shape, memory.dtype())?;
        if let Some(wanted) = self.ranks(shape.len()) {
            check_order(memory, &wanted)?;
            Arc::make_mut(&mut field).order = Some(wanted);
        }
        check_alignment(memory, &field)?;
        Ok(field)
    }
}

/// Refuses a model or a sibling where dlfield cannot allocate: memory of ROCm only passes through.
pub(super) fn check_allocatable(device: Device) -> Result<()> {
    if device.kind != DeviceKind::Rocm {
        return Ok(());
    }
    Err(Error::Device(format!(
        "device: expected the host or a CUDA device, got {device}, where dlfield cannot allocate; \
         request memory of the host, or copy it with the library that made it"
    )))
}

/// Refuses memory that is not on a GPU.
pub(crate) fn check_on_gpu(device: Device) -> Result<()> {
    if Residence::for_memory_on(device) != Residence::Host {
        return Ok(());
    }
    Err(Error::Buffer(format!(
        "device_data: expected memory on a GPU, got memory on {device}; pass it as data"
    )))
}

/// Refuses memory whose strides grow from one requested rank to the next.
fn check_order(host: &Managed, ranks: &[i64]) -> Result<()> {
    let layout = host.layout();
    check_ranks(ranks, layout.ndim())?;
    if falls_along(ranks, layout.axes()) {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "layout: expected memory ordered as {ranks:?}, got strides of {:?} elements, which is \
         {:?}; leave the layout open, or make a copy with that layout",
        layout.strides(),
        layout.ranks(&[]).as_slice()
    )))
}

fn check_alignment(host: &Managed, field: &Field) -> Result<()> {
    let (layout, alignment) = (host.layout(), field.alignment);
    if alignment <= 1 {
        return Ok(());
    }
    let index = field.aligned_index(layout.ndim());
    if layout.rows_are_on_boundary(host.position(), &index, alignment) {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "alignment_size: expected the element at {:?} of every row on a boundary of {alignment} \
         bytes, got memory at {:#x} with strides of {:?} bytes; leave the alignment open, or make \
         a copy with that alignment",
        index.as_slice(),
        layout.address_of(host.position(), &index),
        layout.byte_strides()
    )))
}

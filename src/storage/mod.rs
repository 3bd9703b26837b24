//! Stage 3 of 4. Takes a [`Managed`] and what is known of the field, gives a [`Storage`] to the
//! doors and to stencils.

mod checks;
mod describe;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::alloc::{Fill, Plan, allocate, check_shape, plan};
use crate::copy::copy;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::field::{Dims, Field, Halo, HaloWidth};
use crate::layout::{Extents, Item, steps};
use crate::managed::Managed;
use crate::preset::Preset;

/// What somebody wants of a storage; everything that is `None` is open.
#[derive(Debug, Clone, Default)]
pub struct Spec {
    /// The order of the dimensions in memory.
    pub layout: Order,
    /// Alignment of the aligned element, in bytes.
    pub alignment: Option<usize>,
    /// Suits a backend; explicit wishes override it.
    pub preset: Option<&'static Preset>,
    /// Host memory, also where the preset is for a GPU.
    pub on_host: bool,
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
/// assert_eq!(storage.host().layout().strides(), [1, 70, 4900]); // in elements: I is contiguous
/// assert_eq!(storage.domain_view()?.host().layout().shape(), [64, 64, 40]);
/// # Ok::<(), dlfield::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Storage {
    host: Managed,
    field: Arc<Field>,
}

impl Spec {
    /// The ranks somebody asked for, explicitly or by a preset.
    fn ranks(&self, ndim: usize) -> Option<Extents> {
        match (&self.layout, self.preset) {
            (Order::Ranks(ranks), _) => Some(ranks.clone()),
            (Order::Open, Some(preset)) => Some(preset.layout(
                ndim,
                self.field.dims.as_ref().or(self.layout_dims.as_ref()).map(AsRef::as_ref),
            )),
            (Order::Any, _) | (Order::Open, None) => None,
        }
    }

    fn alignment(&self, dtype: DType) -> usize {
        self.alignment
            .or_else(|| self.preset.map(|preset| preset.alignment(dtype.itemsize())))
            .unwrap_or(self.field.alignment.max(1))
    }

    /// The field of a storage of `shape`: no halo where none was asked for.
    fn field_for(&self, shape: &[i64], dtype: DType) -> Result<Field> {
        let mut field = Field { alignment: self.alignment(dtype), ..self.field.clone() };
        if !self.unknown_halo {
            field.halo.get_or_insert_with(|| Halo::from_elem((0, 0), shape.len()));
        }
        field.check(shape)?;
        Ok(field)
    }

    fn check_device(&self) -> Result<()> {
        match self.preset.filter(|preset| preset.gpu && !self.on_host) {
            None => Ok(()),
            Some(preset) => Err(Error::Device(format!(
                "preset '{}': expected a CUDA device, got a build without GPU storages; choose a \
                 preset for the CPU",
                preset.name
            ))),
        }
    }

    /// Memory and field of a storage to allocate. Its order is that of `model` where no other is
    /// wished for, and C order without a model.
    fn plan(&self, shape: &[i64], dtype: DType, model: Option<&Managed>) -> Result<(Plan, Field)> {
        self.check_device()?;
        check_shape(shape, dtype)?;
        let field = self.field_for(shape, dtype)?;
        let as_model = || match model {
            Some(model) => model.layout().ranks(self.order()),
            None => (0_i64..).take(shape.len()).collect(),
        };
        let ranks = self.ranks(shape.len()).unwrap_or_else(as_model);
        let index = field.aligned_index(shape.len());
        let plan = plan(shape, dtype, &ranks, field.alignment, &index)?;
        Ok((plan, Field { order: Some(ranks), ..field }))
    }

    fn order(&self) -> &[i64] {
        self.field.order.as_deref().unwrap_or_default()
    }
}

impl Storage {
    /// Allocates a storage; without a layout or preset it is in C order.
    ///
    /// # Errors
    /// [`Error::Argument`] for wishes that contradict each other or the shape,
    /// [`Error::OutOfMemory`], [`Error::Device`] for a preset of a GPU backend.
    pub fn allocate(shape: &[i64], dtype: DType, spec: &Spec, fill: Fill<'_>) -> Result<Self> {
        let (plan, field) = spec.plan(shape, dtype, None)?;
        Ok(Self { host: allocate(&plan, fill)?, field: Arc::new(field) })
    }

    /// Allocates a storage of the shape of `model`, in its order unless `spec` wishes for another.
    ///
    /// # Errors
    /// As [`Storage::allocate`].
    pub fn allocate_like(
        model: &Managed,
        dtype: DType,
        spec: &Spec,
        fill: Fill<'_>,
    ) -> Result<Self> {
        let (plan, field) = spec.plan(model.layout().shape(), dtype, Some(model))?;
        Ok(Self { host: allocate(&plan, fill)?, field: Arc::new(field) })
    }

    /// Puts existing memory into a storage. Copies nothing: every wish must hold already.
    ///
    /// # Errors
    /// [`Error::Argument`] that names the wish the memory does not meet; [`Error::Device`] for
    /// memory that the host cannot reach.
    pub fn wrap(host: Managed, spec: &Spec) -> Result<Self> {
        host.check_on_host()?;
        spec.check_device()?;
        let shape = host.layout().shape();
        let mut field = spec.field_for(shape, host.dtype())?;
        if let Some(wanted) = spec.ranks(shape.len()) {
            checks::check_order(&host, &wanted)?;
            field.order = Some(wanted);
        }
        checks::check_alignment(&host, &field)?;
        Ok(Self { host, field: Arc::new(field) })
    }

    /// Whether [`Storage::copy_of`] will find nothing wrong with its arguments, once the elements
    /// are of `dtype`.
    ///
    /// # Errors
    /// As [`Storage::copy_of`].
    pub fn check_copy(source: &Managed, dtype: DType, spec: &Spec) -> Result<()> {
        source.check_on_host()?;
        spec.plan(source.layout().shape(), dtype, Some(source)).map(|_| ())
    }

    /// Allocates a storage like `source` and copies its elements into it. What `spec` leaves open
    /// is as in `source`.
    ///
    /// # Errors
    /// As [`Storage::allocate`]; [`Error::Buffer`] for memory on a device.
    ///
    /// # Safety
    /// Nobody writes the elements of `source` meanwhile.
    pub unsafe fn copy_of(source: &Managed, spec: &Spec) -> Result<Self> {
        source.check_on_host()?;
        let (plan, field) = spec.plan(source.layout().shape(), source.dtype(), Some(source))?;
        let host = allocate(&plan, Fill::Nothing)?;
        // SAFETY: the target was made here; the caller excludes writers of the source.
        unsafe { copy(source, &host) }?;
        Ok(Self { host, field: Arc::new(field) })
    }

    /// Memory and field that belong together.
    #[cfg(feature = "python")]
    pub(crate) fn from_parts(host: Managed, field: Arc<Field>) -> Self {
        Self { host, field }
    }

    /// Takes it apart.
    #[cfg(feature = "python")]
    pub(crate) fn into_parts(self) -> (Managed, Arc<Field>) {
        (self.host, self.field)
    }

    /// The memory.
    #[must_use]
    pub fn host(&self) -> &Managed {
        &self.host
    }

    /// Names, halo and alignment.
    #[must_use]
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// Rank of each dimension in memory, 0 = the largest stride (GDP-3 "layout"): as asked for where
    /// the strides do not contradict it.
    #[must_use]
    pub fn ranks(&self) -> Extents {
        self.host.layout().ranks(self.field.order.as_deref().unwrap_or_default())
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
        let extents = self.host.layout().shape().iter().copied();
        self.select(&halo.iter().zip(extents).map(inside).collect::<SmallVec<[Item; 6]>>())
    }

    /// The part that `key` selects, as a view. Copies nothing.
    ///
    /// # Errors
    /// [`Error::Index`] for an index outside the storage or too many of them, [`Error::Argument`]
    /// for a step of 0.
    pub fn select(&self, key: &[Item]) -> Result<Self> {
        let shape = self.host.layout().shape();
        let steps = steps(key, shape)?;
        let host = self.host.select(&steps)?;
        let field = Arc::new(self.field.select(&steps, shape, host.layout().shape()));
        Ok(Self { host, field })
    }

    /// A view with the dimensions in the order of `axes`. Copies nothing.
    ///
    /// # Errors
    /// [`Error::Argument`] where `axes` is no permutation.
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        let host = self.host.permute(axes)?;
        let field = Arc::new(self.field.permute(axes, host.layout().shape()));
        Ok(Self { host, field })
    }

    /// The same memory with another halo; `None`: unknown. The aligned element stays where it is.
    ///
    /// # Errors
    /// [`Error::Argument`] for a halo that does not fit.
    pub fn with_halo(&self, halo: Option<Halo>) -> Result<Self> {
        let field = Field::clone(&self.field).with_fixed_index(self.host.layout().shape());
        let field = Field { halo, ..field };
        field.check(self.host.layout().shape())?;
        Ok(Self { host: self.host.clone(), field: Arc::new(field) })
    }
}

#[cfg(test)]
mod tests;

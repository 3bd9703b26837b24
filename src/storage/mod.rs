//! Stage 3 of 4. Takes a [`Managed`] and what is known of the field, gives a [`Storage`] to the
//! doors and to stencils.

mod checks;
mod describe;

use crate::alloc::{Fill, Plan, allocate, check_shape, plan};
use crate::copy::copy;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::field::{Field, Halo};
use crate::layout::Extents;
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
    field: Field,
}

impl Spec {
    /// The ranks somebody asked for, explicitly or by a preset.
    fn ranks(&self, ndim: usize) -> Option<Extents> {
        match (&self.layout, self.preset) {
            (Order::Ranks(ranks), _) => Some(ranks.clone()),
            (Order::Open, Some(preset)) => Some(preset.layout(ndim, self.field.dims.as_deref())),
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
        field.halo.get_or_insert_with(|| Halo::from_elem((0, 0), shape.len()));
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

    fn plan(
        &self,
        shape: &[i64],
        dtype: DType,
        field: &Field,
        otherwise: impl FnOnce() -> Extents,
    ) -> Result<Plan> {
        let ranks = self.ranks(shape.len()).unwrap_or_else(otherwise);
        plan(shape, dtype, &ranks, field.alignment, &field.aligned_index(shape.len()))
    }
}

impl Storage {
    /// Allocates a storage; without a layout or preset it is in C order.
    ///
    /// # Errors
    /// [`Error::Argument`] for wishes that contradict each other or the shape,
    /// [`Error::OutOfMemory`], [`Error::Device`] for a preset of a GPU backend.
    pub fn allocate(shape: &[i64], dtype: DType, spec: &Spec, fill: Fill<'_>) -> Result<Self> {
        spec.check_device()?;
        check_shape(shape, dtype)?;
        let field = spec.field_for(shape, dtype)?;
        let c_order = || (0_i64..).take(shape.len()).collect();
        let host = allocate(&spec.plan(shape, dtype, &field, c_order)?, fill)?;
        Ok(Self { host, field })
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
        let field = spec.field_for(shape, host.dtype())?;
        if let Some(wanted) = spec.ranks(shape.len()) {
            checks::check_order(&host, &wanted)?;
        }
        checks::check_alignment(&host, &field)?;
        Ok(Self { host, field })
    }

    /// Whether [`Storage::copy_of`] will find nothing wrong with its arguments.
    ///
    /// # Errors
    /// As [`Storage::copy_of`].
    pub fn check_copy(source: &Managed, spec: &Spec) -> Result<()> {
        Self::plan_copy(source, spec).map(|_| ())
    }

    fn plan_copy(source: &Managed, spec: &Spec) -> Result<(Plan, Field)> {
        source.check_on_host()?;
        spec.check_device()?;
        let shape = source.layout().shape();
        let field = spec.field_for(shape, source.dtype())?;
        let plan = spec.plan(shape, source.dtype(), &field, || source.layout().ranks())?;
        Ok((plan, field))
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
        let (plan, field) = Self::plan_copy(source, spec)?;
        let host = allocate(&plan, Fill::Nothing)?;
        // SAFETY: the target was made here; the caller excludes writers of the source.
        unsafe { copy(source, &host) }?;
        Ok(Self { host, field })
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

    /// The part inside the halo, as a view whose halo is 0. Copies nothing.
    ///
    /// # Errors
    /// [`Error::Argument`] where the halo is unknown.
    pub fn domain_view(&self) -> Result<Self> {
        let halo = self.field.halo.as_ref().ok_or_else(|| {
            Error::Argument("domain_view: expected a halo, got a view whose halo is unknown; slice the domain yourself".into())
        })?;
        let mut host = self.host.clone();
        for (axis, &(low, high)) in halo.iter().enumerate() {
            let extent = host.layout().shape().get(axis).copied().unwrap_or(0);
            host = host.narrow(axis, low, extent - low - high)?;
        }
        let lower: Extents = halo.iter().map(|width| width.0).collect();
        let field = self.field.moved_by(&lower, host.layout().shape());
        Ok(Self {
            host,
            field: Field { halo: Some(Halo::from_elem((0, 0), lower.len())), ..field },
        })
    }
}

#[cfg(test)]
mod tests;

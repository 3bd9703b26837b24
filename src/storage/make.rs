//! Making storages: fresh memory, memory like some other, copies, memory that is there.

use std::sync::Arc;

use super::{Buffers, ManagedBy, Order, Residence, Spec, Storage, checks};
#[cfg(feature = "python")]
use crate::alloc::plan_in_c_order;
use crate::alloc::{Fill, Plan, allocate, allocate_for, check_shape, plan};
use crate::copy::copy;
use crate::cuda::Kind;
use crate::device::{Device, DeviceKind, Target};
use crate::dtype::DType;
use crate::error::{Error, Result};
#[cfg(feature = "python")]
use crate::field::in_c_order;
use crate::field::{Field, Halo};
use crate::layout::Extents;
use crate::managed::Managed;
use crate::sync::{Mirrored, Newer, SyncState, check_alike};

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

    /// Memory and field of a storage to allocate. Its order is that of `model` where no other is
    /// wished for, and C order without a model.
    fn plan(&self, shape: &[i64], dtype: DType, model: Option<&Managed>) -> Result<(Plan, Field)> {
        check_shape(shape, dtype)?;
        if let Some(model) = model.filter(|_| self.device.is_none()) {
            check_make(model.device())?;
        }
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

/// Memory of ROCm passes through, but cannot be allocated.
fn check_make(device: Device) -> Result<()> {
    if device.kind != DeviceKind::Rocm {
        return Ok(());
    }
    Err(Error::Device(format!(
        "device: expected the host or a CUDA device, got {device}, where dlfield can allocate nothing; pass device='cpu', \
         or copy by the means of its own library"
    )))
}

/// Allocates the buffers of a storage. Of a pair that of the device is filled.
fn buffers(plan: &Plan, residence: Residence, fill: Fill<'_>) -> Result<Buffers> {
    Ok(match residence {
        Residence::Host => Buffers::Host(allocate(plan, fill)?),
        Residence::Device(on) => Buffers::Device(allocate_for(plan, Kind::Device, on, fill)?),
        Residence::Unified(on) => Buffers::Unified(allocate_for(plan, Kind::Managed, on, fill)?),
        Residence::Mirrored(on) => {
            let filled = !matches!(fill, Fill::Nothing);
            let device = allocate_for(plan, Kind::Device, on, fill)?;
            let host = allocate_for(plan, Kind::Pinned, on, Fill::Nothing)?;
            let newer = if filled { Newer::Device } else { Newer::Neither };
            Buffers::Mirrored(Mirrored::new(host, device, Arc::new(SyncState::new(newer)))?)
        }
    })
}

impl Storage {
    /// Allocates a storage; without a layout or preset it is in C order.
    ///
    /// # Errors
    /// [`Error::Argument`] for wishes that contradict each other or the shape,
    /// [`Error::OutOfMemory`], [`Error::Device`] for a device that cannot be had.
    pub fn allocate(shape: &[i64], dtype: DType, spec: &Spec, fill: Fill<'_>) -> Result<Self> {
        let (plan, field) = spec.plan(shape, dtype, None)?;
        Ok(Self { buffers: buffers(&plan, spec.residence()?, fill)?, field: Arc::new(field) })
    }

    /// As [`Storage::allocate`] on the host, where nothing is wished for.
    ///
    /// # Errors
    /// As [`Storage::allocate`].
    #[cfg(feature = "python")]
    pub(crate) fn in_c_order(shape: Extents, dtype: DType, fill: Fill<'_>) -> Result<Self> {
        let field = in_c_order(shape.len());
        let memory = allocate(&plan_in_c_order(shape, dtype)?, fill)?;
        Ok(Self { buffers: Buffers::Host(memory), field })
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
        Ok(Self { buffers: buffers(&plan, spec.residence()?, fill)?, field: Arc::new(field) })
    }

    /// Puts existing memory into a storage. Copies nothing: every wish must hold already.
    ///
    /// # Errors
    /// As [`Storage::wrap_both`].
    pub fn wrap(managed: Managed, spec: &Spec) -> Result<Self> {
        Self::wrap_both(Some(managed), None, None, spec)
    }

    /// Puts existing memory into a storage: of the host, of a device, or both. Copies nothing; for a
    /// storage that dlfield keeps in step a missing sibling is allocated, and what is there counts as
    /// newer. `state` says which of two buffers is (by default neither).
    ///
    /// # Errors
    /// [`Error::Argument`] that names the wish the memory does not meet; [`Error::Device`] for
    /// memory that is not where it is wished for.
    pub fn wrap_both(
        data: Option<Managed>,
        device_data: Option<Managed>,
        state: Option<Arc<SyncState>>,
        spec: &Spec,
    ) -> Result<Self> {
        let (host, device) = sides(data, device_data)?;
        if let (Some(host), Some(device)) = (&host, &device) {
            check_alike(host, device)?;
        }
        let given = [&host, &device].into_iter().flatten();
        let mut field = None;
        for managed in given {
            field = Some(spec.fitting(managed)?);
        }
        let buffers = gathered(host, device, state, spec)?;
        let field = match field {
            Some(field) => field,
            None => spec.fitting(buffers.managed())?,
        };
        Ok(Self { buffers, field: Arc::new(field) })
    }

    /// As [`Storage::wrap_both`], for the buffers of a storage.
    ///
    /// # Errors
    /// [`Error::Argument`] that names the wish that they do not meet.
    #[cfg(feature = "python")]
    pub(crate) fn wrap_buffers(buffers: Buffers, spec: &Spec) -> Result<Self> {
        let field = spec.fitting(buffers.managed())?;
        if let Some(device) = buffers.of_device() {
            spec.fitting(device)?;
        }
        Ok(Self { buffers, field: Arc::new(field) })
    }

    /// Whether [`Storage::wrap`] will find nothing wrong with its arguments.
    ///
    /// # Errors
    /// As [`Storage::wrap`].
    #[cfg(feature = "python")]
    pub(crate) fn check_wrap(managed: &Managed, spec: &Spec) -> Result<()> {
        spec.residence()?;
        spec.fitting(managed).map(|_| ())
    }

    /// Whether [`Storage::copy_of`] will find nothing wrong with its arguments, once the elements
    /// are of `dtype`.
    ///
    /// # Errors
    /// As [`Storage::copy_of`].
    pub fn check_copy(source: &Managed, dtype: DType, spec: &Spec) -> Result<()> {
        spec.residence()?;
        spec.plan(source.layout().shape(), dtype, Some(source)).map(|_| ())
    }

    /// Allocates a storage like `source` and copies its elements into it. What `spec` leaves open
    /// is as in `source`. Of a pair the buffer on the side of `source` is written, and newer.
    ///
    /// # Errors
    /// As [`Storage::allocate`]; [`Error::Buffer`] for memory that cannot be reached.
    ///
    /// # Safety
    /// Nobody writes the elements of `source` meanwhile, but work that its timeline knows of.
    pub unsafe fn copy_of(source: &Managed, spec: &Spec) -> Result<Self> {
        let (plan, field) = spec.plan(source.layout().shape(), source.dtype(), Some(source))?;
        let buffers = buffers(&plan, spec.residence()?, Fill::Nothing)?;
        let from_host = source.device().is_host();
        let target = match &buffers {
            Buffers::Mirrored(pair) if !from_host => pair.device(),
            buffers => buffers.managed(),
        };
        // SAFETY: the target was made here; the caller excludes writers of the source.
        unsafe { copy(source, target) }?;
        buffers.set_newer(if from_host { Newer::Host } else { Newer::Device });
        Ok(Self { buffers, field: Arc::new(field) })
    }
}

impl Spec {
    /// What is known of memory that is to be shared, once it meets the wishes.
    fn fitting(&self, managed: &Managed) -> Result<Field> {
        let shape = managed.layout().shape();
        let mut field = self.field_for(shape, managed.dtype())?;
        if let Some(wanted) = self.ranks(shape.len()) {
            checks::check_order(managed, &wanted)?;
            field.order = Some(wanted);
        }
        checks::check_alignment(managed, &field)?;
        Ok(field)
    }
}

type Sides = (Option<Managed>, Option<Managed>);

/// Memory of the host and of a device; a device's may come as the first.
fn sides(data: Option<Managed>, device_data: Option<Managed>) -> Result<Sides> {
    let Some(data) = data else {
        return Ok((None, device_data));
    };
    match device_data {
        None if !data.device().is_host() => Ok((None, Some(data))),
        None => Ok((Some(data), None)),
        Some(_) if !data.device().is_host() => Err(Error::Argument(format!(
            "data: expected memory of the host beside device_data, got memory on {}",
            data.device()
        ))),
        Some(device) => Ok((Some(data), Some(device))),
    }
}

fn gathered(
    host: Option<Managed>,
    device: Option<Managed>,
    state: Option<Arc<SyncState>>,
    spec: &Spec,
) -> Result<Buffers> {
    match (host, device) {
        (Some(host), None) => around_host(host, state, spec),
        (None, Some(device)) => around_device(device, state, spec),
        (Some(host), Some(device)) => {
            check_on_device(&device, spec)?;
            if spec.managed == Some(ManagedBy::Nobody) || spec.managed == Some(ManagedBy::Cuda) {
                return Err(Error::Argument(
                    "data: expected none beside device_data unless managed='gt4py' keeps both in step; leave one out"
                        .into(),
                ));
            }
            Ok(Buffers::Mirrored(Mirrored::new(host, device, state.unwrap_or_default())?))
        }
        (None, None) => Err(Error::Argument("data: expected a buffer, got none".into())),
    }
}

fn around_host(host: Managed, state: Option<Arc<SyncState>>, spec: &Spec) -> Result<Buffers> {
    match spec.residence()? {
        Residence::Host => {
            host.check_on_host()?;
            Ok(Buffers::Host(host.seen_at(Device::CPU)))
        }
        Residence::Unified(_) if matches!(Residence::of(host.device()), Residence::Unified(_)) => {
            check_on_device(&host, spec)?;
            Ok(Buffers::Unified(host))
        }
        Residence::Device(_) if matches!(Residence::of(host.device()), Residence::Unified(_)) => {
            check_on_device(&host, spec)?;
            let device = host.device().announced();
            Ok(Buffers::Device(host.seen_at(device)))
        }
        Residence::Mirrored(on) => {
            let device = allocate_for(&sibling(&host)?, Kind::Device, on, Fill::Nothing)?;
            mirrored(host, device, state, Newer::Host)
        }
        Residence::Device(_) | Residence::Unified(_) => Err(Error::Device(format!(
            "device: expected memory on the GPU{}, got memory of the host, which as_storage never copies; use \
             storage(...), or managed='gt4py'",
            if spec.managed == Some(ManagedBy::Cuda) { " that CUDA manages" } else { "" }
        ))),
    }
}

/// A pair of which one buffer was there before.
fn mirrored(
    host: Managed,
    device: Managed,
    state: Option<Arc<SyncState>>,
    newer: Newer,
) -> Result<Buffers> {
    let pair = Mirrored::new(host, device, state.unwrap_or_default())?;
    pair.state().set(newer);
    Ok(Buffers::Mirrored(pair))
}

fn around_device(device: Managed, state: Option<Arc<SyncState>>, spec: &Spec) -> Result<Buffers> {
    check_on_device(&device, spec)?;
    let by = spec.managed.unwrap_or(match Residence::of(device.device()) {
        Residence::Device(_) => ManagedBy::Nobody,
        Residence::Unified(_) => ManagedBy::Cuda,
        Residence::Host | Residence::Mirrored(_) => ManagedBy::Dlfield,
    });
    match by {
        ManagedBy::Nobody => Ok(Buffers::Device(device)),
        ManagedBy::Cuda if device.device().is_host() => Ok(Buffers::Unified(device)),
        ManagedBy::Cuda => Err(Error::Device(format!(
            "managed: expected memory that CUDA manages for 'cuda', got memory on {}; use storage(...), or \
             managed='gt4py'",
            device.device()
        ))),
        ManagedBy::Dlfield => {
            check_make(device.device())?;
            let on = device.device().ordinal;
            let host = allocate_for(&sibling(&device)?, Kind::Pinned, on, Fill::Nothing)?;
            mirrored(host, device, state, Newer::Device)
        }
    }
}

/// Memory of the same shape in the same order.
fn sibling(of: &Managed) -> Result<Plan> {
    let layout = of.layout();
    plan(layout.shape(), of.dtype(), &layout.ranks(&[]), 1, &[])
}

/// Refuses memory that is not on the device that was asked for.
fn check_on_device(memory: &Managed, spec: &Spec) -> Result<()> {
    let device = memory.device();
    if Residence::of(device) == Residence::Host {
        return Err(Error::Device(format!(
            "device_data: expected memory on a GPU, got memory on {device}; pass it as data"
        )));
    }
    match spec.device {
        Some(Target::Host) if !device.is_host() => device.check_on_host(),
        Some(Target::Gpu(Some(number))) if number != device.ordinal => Err(Error::Device(format!(
            "device: expected memory on GPU {number}, got memory on GPU {}; use storage(...) to copy it",
            device.ordinal
        ))),
        _ => Ok(()),
    }
}

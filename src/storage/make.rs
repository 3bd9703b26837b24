//! Making storages: fresh memory, memory like some other, copies, memory that exists already.

use std::sync::Arc;

use super::buffers::{Buffers, ManagedBy, Residence};
use super::data::Storage;
use super::spec::{Spec, check_allocatable, check_on_gpu};
use crate::alloc::{Fill, Plan, allocate, allocate_for};
use crate::copy::copy;
use crate::cuda::Kind;
use crate::device::Target;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::field::{Field, unlabelled};
use crate::managed::Managed;
use crate::sync::{Dirty, Mirrored, SyncState, check_alike};

/// Allocates the buffers of a storage. The device's buffer of a pair is filled.
pub(super) fn buffers(plan: &Plan, residence: Residence, fill: Fill<'_>) -> Result<Buffers> {
    Ok(match residence {
        Residence::Host => Buffers::Host(allocate(plan, fill)?),
        Residence::Device(on) => Buffers::Device(allocate_for(plan, Kind::Device, on, fill)?),
        Residence::Unified(on) => Buffers::Unified(allocate_for(plan, Kind::Managed, on, fill)?),
        Residence::Mirrored(on) => {
            let filled = !matches!(fill, Fill::Nothing);
            let device = allocate_for(plan, Kind::Device, on, fill)?;
            let host = allocate_for(plan, Kind::Pinned, on, Fill::Nothing)?;
            let dirty = if filled { Dirty::Device } else { Dirty::Neither };
            Buffers::Mirrored(Mirrored::new(host, device, Arc::new(SyncState::new(dirty)))?)
        }
    })
}

impl Storage {
    /// Allocates a storage; without a layout or preset it is in C order.
    ///
    /// # Errors
    /// [`Error::Argument`] for requests that contradict each other or the shape,
    /// [`Error::OutOfMemory`], [`Error::Device`] for a device that is not available.
    pub fn allocate(shape: &[i64], dtype: DType, spec: &Spec, fill: Fill<'_>) -> Result<Self> {
        let (plan, field) = spec.plan(shape, dtype, None)?;
        Ok(Self::new(buffers(&plan, spec.residence()?, fill)?, field))
    }

    /// Allocates a storage of the shape of `model`, in its order unless `spec` requests another.
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
        Ok(Self::new(buffers(&plan, spec.residence()?, fill)?, field))
    }

    /// Puts memory of the host into a storage without labels, as [`Storage::wrap`] does if nothing
    /// is requested.
    #[inline]
    pub(crate) fn over_host(memory: Managed) -> Self {
        let field = unlabelled(memory.layout().ndim());
        Self::new(Buffers::Host(memory), field)
    }

    /// Puts existing memory into a storage. Copies nothing: every request must hold already. For a
    /// storage that dlfield keeps in step a missing sibling is allocated, and the buffer that exists
    /// counts as newer.
    ///
    /// # Errors
    /// [`Error::Argument`] that names the request that the memory does not meet; [`Error::Device`]
    /// for memory that is not where it is requested.
    pub fn wrap(memory: Managed, spec: &Spec) -> Result<Self> {
        Self::wrap_with_state(memory, None, spec)
    }

    /// As [`Storage::wrap`], with the state of a pair that is made.
    ///
    /// # Errors
    /// As [`Storage::wrap`].
    pub fn wrap_with_state(
        memory: Managed,
        state: Option<Arc<SyncState>>,
        spec: &Spec,
    ) -> Result<Self> {
        let field = spec.field_over(&memory)?;
        let buffers = match memory.device().is_host() {
            true => around_host(memory, state, spec)?,
            false => around_device(memory, state, spec)?,
        };
        Ok(Self::new(buffers, field))
    }

    /// Puts memory of the host and of a device into a storage. Copies nothing. `state` says which of
    /// the two is newer (by default neither).
    ///
    /// # Errors
    /// As [`Storage::wrap`].
    pub fn wrap_both(
        host: Managed,
        device: Managed,
        state: Option<Arc<SyncState>>,
        spec: &Spec,
    ) -> Result<Self> {
        let field = Self::check_wrap_both(&host, &device, spec)?;
        let known = SyncState::of_pair(&host, &device);
        let state = SyncState::common([known.as_ref(), state.as_ref()])?;
        let pair = Mirrored::new(host, device, state.unwrap_or_default())?;
        Ok(Self::new(Buffers::Mirrored(pair), field))
    }

    /// Checks the arguments of [`Storage::wrap_both`] without wrapping. Returns the field.
    pub(crate) fn check_wrap_both(
        host: &Managed,
        device: &Managed,
        spec: &Spec,
    ) -> Result<Arc<Field>> {
        if !host.device().is_host() {
            return Err(Error::Argument(format!(
                "data: expected memory of the host beside device_data, got memory on {}",
                host.device()
            )));
        }
        check_alike(host, device)?;
        spec.field_over(host)?;
        let field = spec.field_over(device)?;
        check_on_device(device, spec)?;
        if spec.managed.is_some_and(|by| by != ManagedBy::Dlfield) {
            return Err(Error::Argument(
                "data: expected no buffer of the host beside one of the device unless dlfield \
                 keeps both in step; leave one out"
                    .into(),
            ));
        }
        Ok(field)
    }

    /// The same memory with the properties that `spec` requests. Copies nothing; a missing sibling
    /// is allocated. Sides of a pair go on sharing its state.
    ///
    /// # Errors
    /// As [`Storage::wrap`]; [`Error::Argument`] for another state than that of the pair.
    pub fn wrap_again(&self, state: Option<Arc<SyncState>>, spec: &Spec) -> Result<Self> {
        let state = SyncState::common([self.sync_state(), state.as_ref()])?;
        let wanted = spec.residence()?;
        let Some(buffers) = self.buffers.with_residence(wanted) else {
            let state = state.filter(|_| self.sync_state().is_none());
            return Self::wrap_with_state(self.for_residence(wanted)?.clone(), state, spec);
        };
        if let Some(device) = buffers.device_as_is() {
            spec.field_over(device)?;
        }
        let field = spec.field_over(buffers.managed())?;
        Ok(Self::new(buffers, field))
    }

    /// The buffer that a storage of another residence begins with, up to date.
    fn for_residence(&self, wanted: Residence) -> Result<&Managed> {
        match (wanted, &self.buffers) {
            (_, Buffers::Host(one)) | (Residence::Host, Buffers::Device(one)) => Ok(one),
            (_, Buffers::HostOf(_))
            | (Residence::Host, Buffers::Mirrored(_) | Buffers::Unified(_)) => self.host(),
            _ => self.device(),
        }
    }

    /// Checks the arguments of [`Storage::wrap`] without wrapping.
    pub(crate) fn check_wrap(managed: &Managed, spec: &Spec) -> Result<()> {
        spec.residence()?;
        spec.field_over(managed).map(|_| ())
    }

    /// Checks the arguments of [`Storage::copy_of`] without copying, for elements of `dtype`.
    ///
    /// # Errors
    /// As [`Storage::copy_of`].
    pub fn check_copy(source: &Managed, dtype: DType, spec: &Spec) -> Result<()> {
        spec.residence()?;
        spec.plan(source.layout().shape(), dtype, Some(source)).map(|_| ())
    }

    /// Allocates a storage like `source` and copies its elements into it. Properties that `spec`
    /// leaves open are those of `source`. The buffer of a pair on the side of `source` is written,
    /// and newer.
    ///
    /// # Errors
    /// As [`Storage::allocate`]; [`Error::Buffer`] for memory that cannot be reached.
    ///
    /// # Safety
    /// No other code writes the elements of `source` meanwhile, except work in its timeline.
    pub unsafe fn copy_of(source: &Managed, spec: &Spec) -> Result<Self> {
        let made = Self::allocate_like(source, source.dtype(), spec, Fill::Nothing)?;
        let from_host = source.device().is_host();
        let target = match &made.buffers {
            Buffers::Mirrored(pair) if !from_host => pair.device(),
            buffers => buffers.managed(),
        };
        // SAFETY: the target was made here; the caller excludes writers of the source.
        unsafe { copy(source, target) }?;
        made.set_dirty(if from_host { Dirty::Host } else { Dirty::Device });
        Ok(made)
    }
}

fn around_host(host: Managed, state: Option<Arc<SyncState>>, spec: &Spec) -> Result<Buffers> {
    let wanted = spec.residence()?;
    match wanted {
        Residence::Host => return Ok(Buffers::Host(host.for_host())),
        Residence::Mirrored(on) => return with_sibling(host, on, state),
        Residence::Device(_) | Residence::Unified(_) => {}
    }
    if !matches!(Residence::for_memory_on(host.device()), Residence::Unified(_)) {
        return Err(Error::Device(format!(
            "device: expected memory on the GPU{}, got memory of the host, which is never copied when \
             it is wrapped; make a copy, or have dlfield keep both sides in step",
            if spec.managed == Some(ManagedBy::Cuda) { " that CUDA manages" } else { "" }
        )));
    }
    check_on_device(&host, spec)?;
    Ok(match wanted {
        Residence::Device(_) => Buffers::Device(host.for_device()),
        _ => Buffers::Unified(host),
    })
}

fn around_device(device: Managed, state: Option<Arc<SyncState>>, spec: &Spec) -> Result<Buffers> {
    check_on_device(&device, spec)?;
    let on = device.device();
    match spec.managed.unwrap_or(Residence::for_memory_on(on).managed_by()) {
        ManagedBy::Nobody => Ok(Buffers::Device(device)),
        ManagedBy::Cuda => Err(Error::Device(format!(
            "managed: expected memory that CUDA manages, got memory on {on}; make a copy, or have \
             dlfield keep both sides in step"
        ))),
        ManagedBy::Dlfield => {
            check_allocatable(on)?;
            with_sibling(device, on.ordinal, state)
        }
    }
}

/// A pair of a buffer that exists, which counts as newer, and a new sibling on the other side.
fn with_sibling(one: Managed, on: i32, state: Option<Arc<SyncState>>) -> Result<Buffers> {
    let plan = Plan::like(one.layout(), one.dtype())?;
    let (kind, dirty) = match one.device().is_host() {
        true => (Kind::Device, Dirty::Host),
        false => (Kind::Pinned, Dirty::Device),
    };
    let sibling = allocate_for(&plan, kind, on, Fill::Nothing)?;
    let (host, device) = if dirty == Dirty::Host { (one, sibling) } else { (sibling, one) };
    let pair = Mirrored::new(host, device, state.unwrap_or_default())?;
    pair.state().set(dirty);
    Ok(Buffers::Mirrored(pair))
}

/// Refuses memory that is not on the requested device.
fn check_on_device(memory: &Managed, spec: &Spec) -> Result<()> {
    let device = memory.device();
    check_on_gpu(device)?;
    match spec.target() {
        Some(Target::Host) if !device.is_host() => device.check_on_host(),
        Some(Target::Gpu(Some(number))) if number != device.ordinal => Err(Error::Device(format!(
            "device: expected memory on GPU {number}, got memory on GPU {}; make a copy there",
            device.ordinal
        ))),
        _ => Ok(()),
    }
}

//! The last plan of a stencil, for calls that ask for the same again.
//!
//! The key holds everything that a plan depends on except addresses. Of an address only the
//! distance from a boundary counts; overlap is checked at every call. Calls that are refused,
//! copied or slow are not remembered.

use std::sync::{Arc, Mutex, PoisonError};

use super::footprint::Footprints;
use super::overlap::are_all_apart;
use super::resolve::resolve;
use super::{Argument, CallOptions, CallPlan, FieldSpec, StencilSpec};
use crate::device::Device;
use crate::dtype::DType;
use crate::field::{Dims, Halo};
use crate::layout::{Extents, Layout};

/// The last plan, if it is worth remembering.
#[derive(Debug)]
pub(crate) struct Remembered<B>(Mutex<Option<Arc<LastCall<B>>>>);

#[derive(Debug)]
struct LastCall<B> {
    keys: Vec<Option<Key>>,
    options: CallOptions,
    plan: Arc<CallPlan>,
    basis: B,
}

/// The properties of an argument that a plan depends on.
#[derive(Debug)]
struct Key {
    layout: Layout,
    dtype: DType,
    device: Device,
    readonly: bool,
    dims: Option<Dims>,
    halo: Option<Halo>,
    origin: Option<Extents>,
    boundary: Boundary,
}

/// Where an address lies behind a boundary, which is all that checks of alignment depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Boundary {
    bytes: usize,
    /// Distance in bytes from the last such boundary.
    past: usize,
}

/// The plan of a call.
pub(crate) struct Resolved<B> {
    pub(crate) plan: Arc<CallPlan>,
    /// The basis of its footprint.
    pub(crate) basis: B,
    /// True if the plan is that of the last call.
    pub(crate) again: bool,
}

impl<B> Default for Remembered<B> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<B: Clone> Remembered<B> {
    /// As [`resolve`], which runs only if something differs from the last call.
    ///
    /// # Errors
    /// As [`resolve`].
    pub(crate) fn resolve<'a, F: Footprints<Basis = B>>(
        &self,
        spec: &'a StencilSpec,
        arguments: impl Iterator<Item = Option<&'a Argument>> + Clone,
        options: &'a CallOptions,
        footprints: &F,
    ) -> Result<Resolved<B>, F::Error> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let serves = |last: &Arc<LastCall<B>>| last.serves(spec, arguments.clone(), options);
        if let Some(last) = last.filter(serves)
            && footprints.holds(&last.basis)?
        {
            let (plan, basis) = (Arc::clone(&last.plan), last.basis.clone());
            return Ok(Resolved { plan, basis, again: true });
        }
        let (plan, basis) = resolve(spec, arguments.clone(), options, footprints)?;
        let plan = Arc::new(plan);
        let fast = plan.first_copy().is_none() && plan.slow.is_empty();
        let call = (fast && !options.functional).then(|| {
            let keys = spec
                .fields
                .iter()
                .zip(arguments)
                .map(|(field, argument)| argument.map(|argument| Key::new(argument, field)));
            Arc::new(LastCall {
                keys: keys.collect(),
                options: options.clone(),
                plan: Arc::clone(&plan),
                basis: basis.clone(),
            })
        });
        let before =
            std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), call);
        drop(before); // not under the lock: a basis may hold objects of Python's
        Ok(Resolved { plan, basis, again: false })
    }
}

impl<B> LastCall<B> {
    fn serves<'a>(
        &self,
        spec: &StencilSpec,
        arguments: impl Iterator<Item = Option<&'a Argument>> + Clone,
        options: &CallOptions,
    ) -> bool {
        let mut given = arguments.clone();
        let fits = |key: &Option<Key>| match (key, given.next().flatten()) {
            (None, None) => true,
            (Some(key), Some(argument)) => key.fits(argument),
            _ => false,
        };
        let place =
            |argument: &'a Argument| (argument.managed.layout(), argument.managed.position());
        *options == self.options
            && self.keys.iter().all(fits)
            && are_all_apart(spec, arguments.map(|argument| argument.map(place)))
    }
}

impl Key {
    fn new(argument: &Argument, field: &FieldSpec) -> Self {
        let managed = &argument.managed;
        Self {
            layout: managed.layout().clone(),
            dtype: managed.dtype(),
            device: managed.device(),
            readonly: managed.readonly(),
            dims: argument.dims.clone(),
            halo: argument.halo.clone(),
            origin: argument.origin.clone(),
            boundary: Boundary::new(field, managed.position()),
        }
    }

    fn fits(&self, argument: &Argument) -> bool {
        let managed = &argument.managed;
        argument.copied.is_none()
            && self.dtype == managed.dtype()
            && self.device == managed.device()
            && self.readonly == managed.readonly()
            && self.boundary.is_kept_by(managed.position())
            && self.layout == *managed.layout()
            && self.dims == argument.dims
            && self.halo == argument.halo
            && self.origin == argument.origin
    }
}

impl Boundary {
    pub(crate) fn new(field: &FieldSpec, address: usize) -> Self {
        // A multiple of the declared alignment, and of the alignment of every type.
        let bytes = field.alignment.max(1).saturating_mul(16);
        Self { bytes, past: address.checked_rem(bytes).unwrap_or(0) }
    }

    /// True if another address lies as far behind a boundary.
    pub(crate) fn is_kept_by(self, address: usize) -> bool {
        address.checked_rem(self.bytes) == Some(self.past)
    }
}

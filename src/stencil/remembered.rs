//! The last plan of a stencil, for calls that ask for the same again.
//!
//! The key holds everything that a plan depends on except addresses. Of an address only the
//! distance from a boundary counts; overlap is checked at every call. Calls that are refused,
//! copied or slow are not remembered.

use std::sync::{Arc, Mutex, PoisonError};

use super::resolve::resolve;
use super::{Argument, CallOptions, CallPlan, StencilSpec, overlap};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::field::{Dims, Halo};
use crate::layout::{Extents, Layout};

/// The last plan, if it is worth remembering.
#[derive(Debug, Default)]
pub(crate) struct Remembered(Mutex<Option<Arc<LastCall>>>);

#[derive(Debug)]
struct LastCall {
    keys: Vec<Option<Key>>,
    options: CallOptions,
    plan: Arc<CallPlan>,
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
    /// The boundary in bytes that checks of alignment depend on.
    boundary: usize,
    /// Distance in bytes from the last such boundary.
    past: usize,
}

impl Remembered {
    /// As [`resolve`], which runs only if something differs from the last call.
    ///
    /// # Errors
    /// As [`resolve`].
    pub(crate) fn resolve<'a>(
        &self,
        spec: &'a StencilSpec,
        arguments: impl Iterator<Item = Option<&'a Argument>> + Clone,
        options: &'a CallOptions,
    ) -> Result<Arc<CallPlan>> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(last) = last.filter(|last| last.serves(spec, arguments.clone(), options)) {
            return Ok(Arc::clone(&last.plan));
        }
        let plan = Arc::new(resolve(spec, arguments.clone(), options)?);
        let fast = plan.first_copy().is_none() && plan.slow.is_empty();
        let call = (fast && !options.functional).then(|| {
            let keys = spec.fields.iter().zip(arguments).map(|(field, argument)| {
                argument.map(|argument| Key::new(argument, field.alignment))
            });
            Arc::new(LastCall {
                keys: keys.collect(),
                options: options.clone(),
                plan: Arc::clone(&plan),
            })
        });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = call;
        Ok(plan)
    }
}

impl LastCall {
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
        *options == self.options
            && self.keys.iter().all(fits)
            && overlap::are_all_apart(spec, arguments)
    }
}

impl Key {
    fn new(argument: &Argument, alignment: usize) -> Self {
        let managed = &argument.managed;
        // A multiple of the declared alignment, and of the alignment of every type.
        let boundary = alignment.max(1).saturating_mul(16);
        Self {
            layout: managed.layout().clone(),
            dtype: managed.dtype(),
            device: managed.device(),
            readonly: managed.readonly(),
            dims: argument.dims.clone(),
            halo: argument.halo.clone(),
            origin: argument.origin.clone(),
            boundary,
            past: past(argument, boundary),
        }
    }

    fn fits(&self, argument: &Argument) -> bool {
        let managed = &argument.managed;
        argument.copied.is_none()
            && self.dtype == managed.dtype()
            && self.device == managed.device()
            && self.readonly == managed.readonly()
            && self.past == past(argument, self.boundary)
            && self.layout == *managed.layout()
            && self.dims == argument.dims
            && self.halo == argument.halo
            && self.origin == argument.origin
    }
}

fn past(argument: &Argument, boundary: usize) -> usize {
    argument.managed.position().checked_rem(boundary).unwrap_or(0)
}

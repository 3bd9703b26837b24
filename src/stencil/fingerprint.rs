//! Fingerprint of a call: everything in its arguments and options that a plan depends on, except
//! addresses. Of an address only the distance from a boundary counts; overlap is checked at every call.

use super::overlap::are_all_apart;
use super::{Argument, CallOptions, FieldSpec, StencilSpec};
use crate::device::Device;
use crate::dtype::DType;
use crate::field::{Dims, Halo};
use crate::layout::{Extents, Layout};
use crate::managed::Managed;

/// The properties of a call that its plan depends on, except the basis of its footprint.
#[derive(Debug)]
pub(crate) struct Fingerprint {
    arguments: Vec<Option<ArgumentPrint>>,
    options: CallOptions,
}

/// The properties of an argument that a plan depends on.
#[derive(Debug)]
pub(crate) struct ArgumentPrint {
    layout: Layout,
    dtype: DType,
    device: Device,
    readonly: bool,
    dims: Option<Dims>,
    halo: Option<Halo>,
    origin: Option<Extents>,
    /// All that checks of alignment depend on is where an address lies behind a boundary.
    boundary: usize,
    /// Distance in bytes from the last such boundary.
    past: usize,
}

impl Fingerprint {
    /// `arguments` follow the fields of `spec`.
    pub(crate) fn new<'a>(
        spec: &StencilSpec,
        arguments: impl Iterator<Item = Option<&'a Argument>>,
        options: &CallOptions,
    ) -> Self {
        let print = |(field, argument): (_, Option<&_>)| {
            argument.map(|argument| ArgumentPrint::new(argument, field))
        };
        let arguments = spec.fields.iter().zip(arguments).map(print).collect();
        Self { arguments, options: options.clone() }
    }

    /// True if a call has this fingerprint, and no output of it overlaps another argument.
    pub(crate) fn fits<'a>(
        &self,
        spec: &StencilSpec,
        arguments: impl Iterator<Item = Option<&'a Argument>> + Clone,
        options: &CallOptions,
    ) -> bool {
        let mut given = arguments.clone();
        let fits = |print: &Option<ArgumentPrint>| match (print, given.next().flatten()) {
            (None, None) => true,
            (Some(print), Some(argument)) => print.fits(argument),
            _ => false,
        };
        let place =
            |argument: &'a Argument| (argument.managed.layout(), argument.managed.position());
        self.has(options, &[])
            && self.arguments.iter().all(fits)
            && are_all_apart(spec, arguments.map(|argument| argument.map(place)))
    }

    /// True if these are the options of the call, and the extents of some of its arguments, by their
    /// position among the fields.
    pub(crate) fn has(&self, options: &CallOptions, shapes: &[(usize, Extents)]) -> bool {
        let has_shape = |(at, shape): &(usize, Extents)| {
            let print = self.arguments.get(*at).and_then(Option::as_ref);
            print.is_some_and(|print| print.layout.shape() == shape.as_slice())
        };
        self.options == *options && shapes.iter().all(has_shape)
    }

    /// One for each field of the stencil; `None` for one that was missing.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = Option<&ArgumentPrint>> {
        self.arguments.iter().map(Option::as_ref)
    }
}

impl ArgumentPrint {
    fn new(argument: &Argument, field: &FieldSpec) -> Self {
        let managed = &argument.managed;
        // A multiple of the declared alignment, and of the alignment of every type.
        let boundary = field.alignment.max(1).saturating_mul(16);
        Self {
            layout: managed.layout().clone(),
            dtype: managed.dtype(),
            device: managed.device(),
            readonly: managed.readonly(),
            dims: argument.dims.clone(),
            halo: argument.halo.clone(),
            origin: argument.origin.clone(),
            boundary,
            past: managed.position().checked_rem(boundary).unwrap_or(0),
        }
    }

    fn fits(&self, argument: &Argument) -> bool {
        argument.copied.is_none()
            && self.is_of(&argument.managed)
            && self.may_lie_at(argument.managed.position())
            && self.dims == argument.dims
            && self.halo == argument.halo
            && self.origin == argument.origin
    }

    /// True for memory with these properties, wherever it lies and whatever its labels are.
    pub(crate) fn is_of(&self, managed: &Managed) -> bool {
        self.dtype == managed.dtype()
            && self.device == managed.device()
            && self.readonly == managed.readonly()
            && self.layout == *managed.layout()
    }

    /// True if an address lies as far behind a boundary.
    pub(crate) fn may_lie_at(&self, address: usize) -> bool {
        address.checked_rem(self.boundary) == Some(self.past)
    }
}

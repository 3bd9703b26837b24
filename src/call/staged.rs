//! Step 5 of a call, first half, and step 7: copies of arguments that are on another device, or not
//! laid out as the stencil needs them. They are made once everything is acquired, and copied back
//! before anything is touched.

use pyo3::intern;
use pyo3::prelude::*;

use super::hooks::first_of;
use super::incoming::Incoming;
use super::planned::Planned;
use super::runner::Runner;
use crate::copy::copy;
use crate::cuda::ordinal_of;
use crate::device::Target;
use crate::field::Field;
use crate::managed::Managed;
use crate::python::numpy::array_over;
use crate::python::storage::copy_with;
use crate::stencil::{Copied, FieldPlan, FieldSpec};
use crate::storage::{Order, Residence, Spec};

/// The copies of one call.
pub(super) struct Staged<'a> {
    runner: &'a Runner,
    copies: Vec<StagedCopy<'a>>,
}

struct StagedCopy<'a> {
    /// Position among the stencil's fields.
    at: usize,
    incoming: &'a Incoming,
    /// The memory that was passed, in the order of the declared dimensions.
    passed: Managed,
    /// The memory that the stencil gets, in the same order.
    given: Managed,
    /// The object that holds `given`, if the stencil copied it to its device.
    object: Option<Py<PyAny>>,
    /// The layout and alignment that `given` was asked to have.
    wanted: Spec,
}

impl<'a> Staged<'a> {
    /// Makes the copies of a call. Memory that is passed twice is copied once, if one copy serves
    /// both.
    pub(super) fn copy(py: Python<'_>, call: &'a Planned<'_, '_>) -> PyResult<Self> {
        let mut staged = Self { runner: call.runner, copies: Vec::new() };
        if call.plan.first_copy().is_none() {
            return Ok(staged);
        }
        let target = call.declared.spec.target;
        for field in call.fields() {
            let Some((incoming, plan)) = field.given.filter(|(_, plan)| plan.copy.is_some()) else {
                continue;
            };
            let passed = incoming.argument.managed.permute(&plan.axes)?;
            let wanted = wanted(field.spec, plan, &passed);
            let known = staged.copies.iter().find(|one| one.serves(incoming, &passed, &wanted));
            let (given, object) = match known {
                Some(one) => (one.given.clone(), one.object.as_ref().map(|one| one.clone_ref(py))),
                None if target == Target::Host => {
                    (copy_on_host(py, field.spec, incoming, &passed, &wanted)?, None)
                }
                None => copy_to_device(py, call.runner, target, &passed, &wanted)?,
            };
            let at = field.at;
            staged.copies.push(StagedCopy { at, incoming, passed, given, object, wanted });
        }
        Ok(staged)
    }

    /// The memory that the stencil gets for a field, if it is a copy.
    pub(super) fn given(&self, at: usize) -> Option<&Managed> {
        self.copies.iter().find(|copy| copy.at == at).map(|copy| &copy.given)
    }

    /// Copies back what the stencil may have written. Every copy is tried; the first error counts.
    pub(super) fn copy_back(&self, py: Python<'_>, outcome: PyResult<()>) -> PyResult<()> {
        let written = self.copies.iter().filter(|copy| copy.incoming.written);
        written
            .fold(outcome, |outcome, copy| first_of(py, outcome, copy.copy_back(py, self.runner)))
    }
}

impl StagedCopy<'_> {
    /// True if this is a copy of the same memory, laid out as wanted.
    fn serves(&self, incoming: &Incoming, passed: &Managed, wanted: &Spec) -> bool {
        let originals = (self.incoming.argument.original(), incoming.argument.original());
        let same = match originals {
            (None, None) => self.passed.is_same_as(passed),
            (one, other) => one == other && self.passed.layout() == passed.layout(),
        };
        let is_padded = wanted.alignment.unwrap_or(1) > 1;
        let aligned = !is_padded || self.wanted.field.aligned_index == wanted.field.aligned_index;
        let laid_out =
            (&self.wanted.layout, self.wanted.alignment) == (&wanted.layout, wanted.alignment);
        same && laid_out && aligned
    }

    fn copy_back(&self, py: Python<'_>, runner: &Runner) -> PyResult<()> {
        if let Some(object) = &self.object {
            return runner.to_host(py, object, &self.passed);
        }
        // SAFETY: the copy belongs to this call, whose stencil has ended. The user guards the
        // memory that was passed against other threads, as in NumPy.
        py.detach(|| unsafe { copy(&self.given, &self.passed) })?;
        let original = self.incoming.argument.original().and(self.incoming.array.as_ref());
        if let Some(original) = original {
            let array = array_over(py, &self.passed, true)?;
            let numpy = py.import(intern!(py, "numpy"))?;
            numpy.call_method1(intern!(py, "copyto"), (original, array))?;
        }
        Ok(())
    }
}

fn copy_on_host(
    py: Python<'_>,
    field: &FieldSpec,
    incoming: &Incoming,
    passed: &Managed,
    wanted: &Spec,
) -> PyResult<Managed> {
    let here = passed.device().is_host();
    let copied = matches!(incoming.argument.copied, Some(Copied::ToHost(_)));
    if copied && field.takes_any_order() && passed.is_aligned() && here {
        return Ok(passed.clone()); // a copy already
    }
    Ok(copy_with(py, passed, wanted)?.managed().clone())
}

/// Copies memory to the device of the stencil, by the stencil's own means if it has them. Then also
/// returns the object that holds the copy.
pub(super) fn copy_to_device(
    py: Python<'_>,
    runner: &Runner,
    target: Target,
    passed: &Managed,
    wanted: &Spec,
) -> PyResult<(Managed, Option<Py<PyAny>>)> {
    if let Some((given, object)) = runner.to_device(py, passed)? {
        return Ok((given, Some(object)));
    }
    let default_residence = Residence::Device(ordinal_of(target)?);
    let copied = copy_with(py, passed, &Spec { default_residence, ..wanted.clone() })?;
    Ok((copied.managed().clone(), None))
}

/// Layout and alignment of a copy: the demanded order, else the fast one, else that of the
/// argument.
fn wanted(field: &FieldSpec, plan: &FieldPlan, passed: &Managed) -> Spec {
    let inside = |(&at, &extent): (&i64, &i64)| at.clamp(0, extent.saturating_sub(1).max(0));
    let index = plan.origin.iter().zip(passed.layout().shape()).map(inside).collect();
    Spec {
        layout: field.ranks_of_copy().map_or(Order::Open, Order::Ranks),
        alignment: Some(field.alignment.max(1)),
        field: Field { aligned_index: Some(index), ..Field::default() },
        ..Spec::default()
    }
}

//! Copies for a call: of what is on another device, or not laid out as the stencil needs it.
//!
//! A copy is made once everything is acquired, and what the stencil wrote is copied back before
//! anybody is told that it was written.

use pyo3::intern;
use pyo3::prelude::*;

use super::BoundStencil;
use super::argument::Incoming;
use super::around::first_of;
use crate::copy::copy;
use crate::cuda::{device_count, ordinal_of};
use crate::device::Target;
use crate::error::Error;
use crate::field::Field;
use crate::managed::Managed;
use crate::protocol::Wish;
use crate::python::numpy::array_over;
use crate::python::storage::{arrival, copy_with};
use crate::stencil::{Argument, CallPlan, FieldPlan, FieldSpec, Mismatch};
use crate::storage::{Order, Residence, Spec};

/// The copies of one call.
#[derive(Default)]
pub(super) struct Staged(Vec<Copy>);

struct Copy {
    /// Which of the stencil's fields.
    at: usize,
    /// What was passed, in the order of the declared dimensions.
    passed: Managed,
    /// What the stencil gets, in the same order.
    given: Managed,
    /// The object that holds `given`, where a device made it.
    object: Option<Py<PyAny>>,
    /// The object whose elements `passed` are a copy of.
    original: Option<Py<PyAny>>,
    written: bool,
    /// How `given` was asked to lie.
    wanted: Spec,
}

impl Staged {
    /// What the stencil gets for a field, if it is a copy.
    pub(super) fn given(&self, at: usize) -> Option<&Managed> {
        self.0.iter().find(|copy| copy.at == at).map(|copy| &copy.given)
    }
}

impl BoundStencil {
    /// Refuses copies that nobody can make, before anything is acquired.
    pub(super) fn check_stageable(&self, py: Python<'_>, plan: &CallPlan) -> PyResult<()> {
        let copied = plan.fields.iter().flatten().find_map(|field| match &field.copy {
            Some(Mismatch::Device(text) | Mismatch::Memory(text)) => Some(text),
            None => None,
        });
        let (Some(text), Target::Gpu(_)) = (copied, self.declared.spec.target) else {
            return Ok(());
        };
        let has = |method| self.runner.bind(py).hasattr(method);
        let own = [has(intern!(py, "to_device"))?, has(intern!(py, "to_host"))?];
        match (own, device_count()) {
            ([true, true], _) | ([false, false], Ok(_)) => Ok(()),
            ([false, false], Err(error)) => Err(error.about(text).into()),
            ([there, _], _) => Err(Error::Device(format!(
                "{text}; expected a stencil with both to_device(...) and to_host(...), or with neither, to copy it, got one \
                 without {}",
                if there { "to_host" } else { "to_device" }
            ))
            .into()),
        }
    }

    /// Makes the copies of a call. What is passed twice is copied once, where one copy will do.
    pub(super) fn stage(
        &self,
        py: Python<'_>,
        incoming: &Incoming<'_>,
        plan: &CallPlan,
    ) -> PyResult<Staged> {
        let mut staged = Staged::default();
        for (at, field) in self.declared.spec.fields.iter().enumerate() {
            let (Some(Some(plan)), Some(Some(argument))) =
                (plan.fields.get(at), incoming.arguments.get(at))
            else {
                continue;
            };
            if plan.copy.is_none() {
                continue;
            }
            let original = incoming.beside.get(at).and_then(|one| one.original.as_ref());
            let passed = argument.managed.permute(&plan.axes)?;
            let wanted = laid_out(field, plan, &passed);
            let same = |one: &&Copy| Self::serves(one, incoming, at, &passed, &wanted);
            let (given, object) = match staged.0.iter().find(same) {
                Some(one) => (one.given.clone(), one.object.as_ref().map(|one| one.clone_ref(py))),
                None => self.copied(py, field, argument, &passed, &wanted)?,
            };
            let original = argument.stands_for.as_ref().and(original);
            let original = original.map(|original| original.clone().unbind());
            let written = field.access.writes();
            staged.0.push(Copy { at, passed, given, object, original, written, wanted });
        }
        Ok(staged)
    }

    /// Whether a copy that was made for another field is one of the same memory, laid out as wanted.
    fn serves(
        copy: &Copy,
        incoming: &Incoming<'_>,
        at: usize,
        passed: &Managed,
        wanted: &Spec,
    ) -> bool {
        let original = |at: usize| {
            incoming.arguments.get(at)?.as_ref().and_then(|argument| argument.stands_for.as_ref())
        };
        let same = match (original(copy.at), original(at)) {
            (None, None) => copy.passed.is_same_as(passed),
            (one, other) => one == other && copy.passed.layout() == passed.layout(),
        };
        let boundary = wanted.alignment.unwrap_or(1) > 1;
        let there = !boundary || copy.wanted.field.aligned_index == wanted.field.aligned_index;
        let laid_out =
            (&copy.wanted.layout, copy.wanted.alignment) == (&wanted.layout, wanted.alignment);
        same && laid_out && there
    }

    fn copied(
        &self,
        py: Python<'_>,
        field: &FieldSpec,
        argument: &Argument,
        passed: &Managed,
        wanted: &Spec,
    ) -> PyResult<(Managed, Option<Py<PyAny>>)> {
        if self.declared.spec.target != Target::Host {
            return self.on_device(py, passed, wanted);
        }
        let any_order = field.ranks.is_none() && field.alignment <= 1;
        let here = passed.device().is_host();
        if argument.brought.is_some() && any_order && passed.is_aligned() && here {
            return Ok((passed.clone(), None)); // which is a copy already
        }
        Ok((copy_with(py, passed, wanted)?.managed().clone(), None))
    }

    /// A copy on the device where the stencil computes: by its own means where it has them.
    fn on_device(
        &self,
        py: Python<'_>,
        passed: &Managed,
        wanted: &Spec,
    ) -> PyResult<(Managed, Option<Py<PyAny>>)> {
        if !self.runner.bind(py).hasattr(intern!(py, "to_device"))? {
            let near = Residence::Device(ordinal_of(self.declared.spec.target)?);
            let copied = copy_with(py, passed, &Spec { near, ..wanted.clone() })?;
            return Ok((copied.managed().clone(), None));
        }
        let array = array_over(py, passed, true)?;
        let object = self.runner.bind(py).call_method1(intern!(py, "to_device"), (array,))?;
        let given = arrival(&object, Wish::For(self.declared.spec.target))?.managed;
        let here = self.declared.spec.target.reaches(given.device());
        if here
            && given.dtype() == passed.dtype()
            && given.layout().shape() == passed.layout().shape()
        {
            return Ok((given, Some(object.unbind())));
        }
        Err(Error::Buffer(format!(
            "to_device: expected {} of shape {:?} on {}, got {} of shape {:?} on {}",
            passed.dtype(),
            passed.layout().shape(),
            self.declared.spec.target,
            given.dtype(),
            given.layout().shape(),
            given.device()
        ))
        .into())
    }

    /// Copies back what the stencil may have written. Every copy is tried; the first error counts.
    pub(super) fn copy_back(
        &self,
        py: Python<'_>,
        staged: &Staged,
        outcome: PyResult<()>,
    ) -> PyResult<()> {
        let written = staged.0.iter().filter(|copy| copy.written);
        written.fold(outcome, |outcome, copy| first_of(py, outcome, self.one_back(py, copy)))
    }

    fn one_back(&self, py: Python<'_>, staged: &Copy) -> PyResult<()> {
        if let Some(object) = &staged.object {
            let array = array_over(py, &staged.passed, false)?;
            self.runner.bind(py).call_method1(intern!(py, "to_host"), (object, array))?;
            return Ok(());
        }
        // SAFETY: the copy belongs to this call, whose stencil has ended; the values of what was
        // passed are the user's to guard against other threads, as in NumPy.
        py.detach(|| unsafe { copy(&staged.given, &staged.passed) })?;
        if let Some(original) = &staged.original {
            let (numpy, array) = (py.import(intern!(py, "numpy"))?, &staged.passed);
            let array = array_over(py, array, true)?;
            numpy.call_method1(intern!(py, "copyto"), (original, array))?;
        }
        Ok(())
    }
}

/// What a copy must be like: the demanded order, else the fast one, else as it was passed.
fn laid_out(field: &FieldSpec, plan: &FieldPlan, passed: &Managed) -> Spec {
    let ranks = field.ranks.as_ref().or(field.fast.as_ref());
    let inside = |(&at, &extent): (&i64, &i64)| at.clamp(0, extent.saturating_sub(1).max(0));
    let index = plan.origin.iter().zip(passed.layout().shape()).map(inside).collect();
    Spec {
        layout: ranks.map_or(Order::Open, |ranks| Order::Ranks(ranks.clone())),
        alignment: Some(field.alignment.max(1)),
        field: Field { aligned_index: Some(index), ..Field::default() },
        ..Spec::default()
    }
}

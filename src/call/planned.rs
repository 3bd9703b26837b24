//! Step 2 of a call: it is resolved and checked, and nothing has been acquired.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::declared::Declared;
use super::footprint::domain_of;
use super::hooks::first_of;
use super::incoming::{Incoming, IncomingFields};
use super::runner::Runner;
use super::values::Values;
use super::warnings::{SlowWarned, warn};
use crate::protocol::note_written;
use crate::stencil::{CallPlan, DecidedBy, FieldPlan, FieldSpec};

/// A call that can be made.
pub(super) struct Planned<'a, 'py> {
    pub(super) declared: &'a Declared,
    pub(super) runner: &'a Runner,
    pub(super) values: Values<'py>,
    pub(super) fields: IncomingFields,
    pub(super) plan: Arc<CallPlan>,
    /// The user's own arrays may be handed in, since no foreign code has run since their import.
    pub(super) undisturbed: bool,
    /// It is a call that warns, whether or not it has now.
    pub(super) warns: bool,
}

/// A field of the stencil in a call.
#[derive(Clone, Copy)]
pub(super) struct PlannedField<'a> {
    /// Position among the fields.
    pub(super) at: usize,
    /// Position of its name among the arguments.
    pub(super) name_at: usize,
    pub(super) spec: &'a FieldSpec,
    /// `None` if it is missing or unused.
    pub(super) given: Option<(&'a Incoming, &'a FieldPlan)>,
    /// The array that was given for a field that is not used.
    pub(super) unused: Option<&'a Incoming>,
}

impl<'a, 'py> Planned<'a, 'py> {
    /// # Errors
    /// If the plan has copies that cannot be made.
    pub(super) fn new(
        py: Python<'py>,
        declared: &'a Declared,
        runner: &'a Runner,
        values: Values<'py>,
        fields: IncomingFields,
        plan: Arc<CallPlan>,
    ) -> PyResult<Self> {
        runner.check_copies(py, &plan)?;
        let undisturbed = fields.are_undisturbed();
        Ok(Self { declared, runner, values, fields, plan, undisturbed, warns: false })
    }

    /// The domain as the stencil takes it.
    pub(super) fn domain<'p>(&self, py: Python<'p>) -> PyResult<Bound<'p, PyTuple>> {
        domain_of(py, self.declared, &self.plan.domain, &self.plan.start)
    }

    /// Shows the warnings, which may be Python code of the user's.
    pub(super) fn warn(
        &mut self,
        py: Python<'_>,
        slow_warned: &SlowWarned,
        stack_level: i32,
    ) -> PyResult<()> {
        self.warns = warn(py, &self.plan, slow_warned, stack_level)?;
        self.undisturbed &= !self.warns;
        Ok(())
    }

    /// True if the stencil runs: there is something to compute, or the stencil decides that itself.
    pub(super) fn runs(&self) -> bool {
        let spec = &self.declared.spec;
        spec.decided_by == DecidedBy::Stencil || spec.runs_empty || !self.plan.domain.contains(&0)
    }

    /// Every field of the stencil.
    pub(super) fn fields(&self) -> impl Iterator<Item = PlannedField<'_>> {
        let found = self.fields.iter().zip(&self.plan.fields);
        let fields = self.declared.fields().zip(found).enumerate();
        fields.map(|(at, ((spec, name_at), (incoming, plan)))| PlannedField {
            at,
            name_at,
            spec,
            given: incoming.zip(plan.as_ref()),
            unused: incoming.filter(|_| plan.is_none()),
        })
    }

    /// Tells the libraries of the arrays that were written, even if `outcome` is an error. A
    /// functional call writes copies.
    pub(super) fn note_written(&self, py: Python<'_>, outcome: PyResult<()>) -> PyResult<()> {
        if self.values.options.functional {
            return outcome;
        }
        let written = self.fields().filter(|field| field.spec.access.writes());
        let arrays = written.filter_map(|field| self.values.named.get(field.name_at)?.as_ref());
        arrays.fold(outcome, |outcome, array| first_of(py, outcome, note_written(array)))
    }

    /// True if the stencil gets the field as read-only.
    ///
    /// GT4Py's compiled backends ask for a writable buffer even for fields that they only read.
    /// Such a field gets a view that claims to be writable. It lives for this call, is made
    /// read-only when the run has ended, and reaches no user object.
    pub(super) fn is_readonly(&self, field: &Incoming) -> bool {
        field.argument.managed.readonly() && (field.written || !self.declared.asks_writable)
    }
}

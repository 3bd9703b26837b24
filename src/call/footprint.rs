//! Step 2 of a call, the footprint: as declared, or found by a function of the declaration and kept
//! with everything that it depends on.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::declared::{Declared, FootprintRule};
use super::rows::Rows;
use super::values::Values;
use crate::stencil::{Along, DecidedBy, FieldSpec, Footprints, Found, Placement, Range, Touched};

/// The scalars and connectivities that a footprint depends on, besides extents, origins and domain.
#[derive(Clone, Default)]
pub(super) struct Basis(Option<Arc<Depends>>);

struct Depends {
    /// Position of a scalar among the scalars, with its value.
    scalars: Vec<(usize, Option<Py<PyAny>>)>,
    /// Every connectivity of the call, by name.
    /// The entries of a dict; `None` for another mapping.
    connectivities: Option<Vec<(Py<PyAny>, Py<PyAny>)>>,
    /// The rows of connectivities that are read, with what they hold.
    rows: Vec<Rows>,
}

/// The result of a function of the declaration, a `dlfield.stencils.footprint.CallFootprint`.
#[derive(FromPyObject)]
struct CallFootprint<'py> {
    reads: Bound<'py, PyDict>,
    writes: Bound<'py, PyDict>,
    unknown: Bound<'py, PyAny>,
    scalars: Vec<String>,
    rows: Vec<Bound<'py, PyAny>>,
}

/// Finds the footprint of a call from its scalars and connectivities.
pub(super) struct CallFootprints<'a, 'py> {
    pub(super) declared: &'a Declared,
    pub(super) values: &'a Values<'py>,
    pub(super) py: Python<'py>,
}

impl Footprints for CallFootprints<'_, '_> {
    type Basis = Basis;
    type Error = PyErr;

    fn find(&self, call: &Placement<'_>) -> PyResult<Found<Basis>> {
        let fields = &self.declared.spec.fields;
        match &self.declared.footprint {
            FootprintRule::Declared => Ok((None, Basis::default())),
            // Outputs are still to be made: the call that gets them is checked.
            FootprintRule::Called(_) if self.values.options.functional => {
                let later = Touched { complete: true, ..Touched::default() };
                Ok((Some(vec![later; fields.len()]), Basis::default()))
            }
            FootprintRule::Called(function) => {
                let found = self.called(function.bind(self.py), call)?;
                let touched = fields.iter().map(|field| touched(field, &found));
                Ok((Some(touched.collect::<PyResult<_>>()?), self.basis(&found)?))
            }
        }
    }
}

impl<'py> CallFootprints<'_, 'py> {
    fn called(
        &self,
        function: &Bound<'py, PyAny>,
        call: &Placement<'_>,
    ) -> PyResult<CallFootprint<'py>> {
        let (py, declared, fields) = (self.py, self.declared, PyDict::new(self.py));
        for ((_, at), place) in declared.fields().zip(&call.fields) {
            if let Some((shape, origin)) = place {
                let place = (PyTuple::new(py, shape)?, PyTuple::new(py, *origin)?);
                fields.set_item(declared.name(py, at), place)?;
            }
        }
        let scalars = PyDict::new(py);
        for (&(at, _), value) in declared.scalars.iter().zip(&self.values.scalars) {
            scalars.set_item(declared.name(py, at), value)?;
        }
        let domain = domain_of(py, declared, call.domain, call.start)?;
        function.call1((fields, domain, scalars, &self.values.connectivities))?.extract()
    }

    fn basis(&self, found: &CallFootprint<'py>) -> PyResult<Basis> {
        let scalars = self.declared.scalars.iter().zip(&self.values.scalars).enumerate();
        let decides = |name: &String| found.scalars.contains(name);
        let scalars = scalars
            .filter(|(_, ((_, scalar), _))| decides(&scalar.name))
            .map(|(at, (_, value))| (at, value.clone().map(Bound::unbind)));
        let connectivities = match &self.values.connectivities {
            Some(given) => items(given),
            None => Some(Vec::new()),
        };
        let depends = Depends {
            scalars: scalars.collect(),
            connectivities,
            rows: found.rows.iter().map(Rows::read).collect::<PyResult<_>>()?,
        };
        Ok(Basis(Some(Arc::new(depends))))
    }
}

impl Basis {
    /// True if scalars, connectivities and what these hold are as they were.
    ///
    /// # Errors
    /// Those of a connectivity.
    #[inline]
    pub(super) fn holds(&self, py: Python<'_>, values: &Values<'_>) -> PyResult<bool> {
        self.0.as_ref().map_or(Ok(true), |depends| depends.holds(py, values))
    }
}

impl Depends {
    fn holds(&self, py: Python<'_>, values: &Values<'_>) -> PyResult<bool> {
        let same = |(at, known): &(usize, Option<Py<PyAny>>)| {
            let value = values.scalars.get(*at).and_then(Option::as_ref);
            match (known, value) {
                (None, None) => true,
                (Some(known), Some(value)) => value.is(known) || are_equal(known.bind(py), value),
                _ => false,
            }
        };
        if !self.scalars.iter().all(same) || !self.same_connectivities(py, values)? {
            return Ok(false);
        }
        for rows in &self.rows {
            if !rows.are_unchanged(py)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn same_connectivities(&self, py: Python<'_>, values: &Values<'_>) -> PyResult<bool> {
        // Another mapping than a dict may answer differently at each call.
        let Some(connectivities) = &self.connectivities else { return Ok(false) };
        let Some(given) = &values.connectivities else { return Ok(connectivities.is_empty()) };
        let Ok(given) = given.cast_exact::<PyDict>() else { return Ok(false) };
        if given.len() != connectivities.len() {
            return Ok(false);
        }
        for (name, known) in connectivities {
            if !given.get_item(name.bind(py))?.is_some_and(|one| one.is(known)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// True for two integers, or two other real numbers, of one value. Code of a subclass is not asked.
fn are_equal(known: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> bool {
    match (known.extract::<i64>(), value.extract::<i64>()) {
        (Ok(known), Ok(value)) => known == value,
        (Err(_), Err(_)) => match (known.extract::<f64>(), value.extract::<f64>()) {
            (Ok(known), Ok(value)) => known.to_bits() == value.to_bits(),
            _ => false,
        },
        _ => false,
    }
}

/// The entries of a dict.
fn items(given: &Bound<'_, PyAny>) -> Option<Vec<(Py<PyAny>, Py<PyAny>)>> {
    let given = given.cast_exact::<PyDict>().ok()?;
    Some(given.iter().map(|(name, table)| (name.unbind(), table.unbind())).collect())
}

/// The domain as a stencil takes it: numbers of points, or for a stencil whose outputs decide, the
/// first point and the point after the last, counted from the origin.
pub(super) fn domain_of<'py>(
    py: Python<'py>,
    declared: &Declared,
    domain: &[i64],
    start: &[i64],
) -> PyResult<Bound<'py, PyTuple>> {
    if declared.spec.decided_by != DecidedBy::Outputs {
        return PyTuple::new(py, domain);
    }
    let end = |(&first, &points): (&i64, &i64)| (first, first.saturating_add(points));
    PyTuple::new(py, start.iter().zip(domain).map(end).collect::<Vec<_>>())
}

fn touched(field: &FieldSpec, found: &CallFootprint<'_>) -> PyResult<Touched<Range>> {
    let along = |boxes: &Bound<'_, PyDict>| -> PyResult<Option<Along<Range>>> {
        let found = boxes.get_item(&field.name)?.map(|ranges| ranges.extract::<Vec<Range>>());
        Ok(found.transpose()?.map(Along::from_vec))
    };
    Ok(Touched {
        reads: along(&found.reads)?,
        writes: along(&found.writes)?,
        complete: !found.unknown.contains(&field.name)?,
        pointwise: false,
    })
}

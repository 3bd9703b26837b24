//! A function at work on operands and outputs: NumPy on the host, CuPy on a GPU.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyTuple};
use smallvec::SmallVec;

use super::cupy::{Cupy, Found};
use super::given::{At, Given, is_in_order, moved};
use super::outputs::Output;
use crate::device::Target;
use crate::field::Joined;
use crate::layout::MAX_NDIM;
use crate::managed::Managed;
use crate::protocol::is_plain_ndarray;
use crate::sync::Dirty;

/// A function with all that it takes.
pub(super) struct Work<'a, 'py> {
    pub(super) function: &'a Bound<'py, PyAny>,
    /// Its name in messages.
    pub(super) name: &'a str,
    /// Keywords of NumPy's function.
    pub(super) options: Option<&'a Bound<'py, PyDict>>,
    /// `None` if all operands have the dimensions of the result.
    pub(super) joined: Option<&'a Joined>,
    /// The inputs, and the mask if there is one.
    pub(super) given: &'a [Given<'py>],
    pub(super) masked: bool,
    pub(super) outputs: &'a [Output<'py>],
    /// True if one of the outputs is the caller's.
    pub(super) writes: bool,
}

/// The axes of an operand that has the dimensions of the result.
static IN_ORDER: [Option<usize>; MAX_NDIM] = {
    let mut axes = [None; MAX_NDIM];
    let mut axis = 0;
    while axis < MAX_NDIM {
        axes[axis] = Some(axis);
        axis += 1;
    }
    axes
};

type Values<'py> = SmallVec<[Bound<'py, PyAny>; 4]>;

impl<'py> Work<'_, 'py> {
    /// Lets NumPy compute into the outputs.
    pub(super) fn on_host(&self, py: Python<'py>) -> PyResult<()> {
        let outputs = self.outputs.iter().map(|output| output.value(self.name));
        let outputs = outputs.collect::<PyResult<SmallVec<[_; 2]>>>()?;
        let mut values = Values::new();
        for (one, axes) in self.operands() {
            let own = self.outputs.iter().zip(&outputs).find(|(output, _)| output.is(one));
            values.push(match own {
                Some((_, array)) => array.clone(),
                None => one.value(py, axes, self.name)?,
            });
        }
        let mask = if self.masked { values.pop() } else { None };
        values.extend(outputs);
        let outcome = match (values.as_slice(), mask, self.options) {
            // An out by position is deprecated of these two, since NumPy 2.4.
            ([a, b, out], None, None) if matches!(self.name, "numpy.maximum" | "numpy.minimum") => {
                let options = [(intern!(py, "out"), out)].into_py_dict(py)?;
                self.function.call((a, b), Some(&options))
            }
            ([a, out], None, None) => self.function.call1((a, out)),
            ([a, b, out], None, None) => self.function.call1((a, b, out)),
            (values, mask, options) => {
                let options = options.map_or_else(|| Ok(PyDict::new(py)), |one| one.copy())?;
                mask.map(|mask| options.set_item(intern!(py, "where"), mask)).transpose()?;
                self.function.call(PyTuple::new(py, values)?, Some(&options))
            }
        };
        self.mark(py, Dirty::Host); // perhaps half written, if NumPy has raised
        outcome.map(drop).map_err(|error| explained(py, error, self.writes))
    }

    /// Each operand with the axis of each dimension of the result.
    fn operands<'b>(&'b self) -> impl Iterator<Item = (&'b Given<'py>, &'b [Option<usize>])> {
        let mut axes = self.joined.map(|joined| joined.axes.iter());
        let with_axes = move |one: &'b Given<'py>| {
            let ndim = one.operand().map(|operand| operand.shape.len());
            let own = ndim.and_then(|ndim| IN_ORDER.get(..ndim)).unwrap_or_default();
            let moved = axes.as_mut().filter(|_| ndim.is_some()).and_then(Iterator::next);
            (one, moved.map_or(own, |axes| &axes[..]))
        };
        self.given.iter().map(with_axes)
    }

    /// Lets CuPy compute into the outputs.
    pub(super) fn on_gpu(&self, py: Python<'py>, ordinal: i32) -> PyResult<()> {
        Cupy::work(py, ordinal, self.name, |cupy| {
            let target = Target::Gpu(Some(ordinal));
            let function = cupy.function(self.function, self.options, self.name)?;
            let memories = self.written(py, target)?;
            let outputs = memories.iter().map(|memory| cupy.array(py, memory));
            let outputs = outputs.collect::<PyResult<Values<'py>>>()?;
            let mut values = Values::new();
            for (one, axes) in self.operands() {
                values.push(match one.at(py, target, self.name)? {
                    At::Object(object, _) => cupys_number(object)?,
                    At::Memory(memory) => match in_place(memory, axes, &memories, &outputs) {
                        Some(output) => output.clone(),
                        None => read_by(cupy, py, memory, axes, &memories)?,
                    },
                });
            }
            let outcome = self.call(py, cupy, &function, values, &outputs);
            self.mark(py, Dirty::Device);
            outcome.map_err(|error| explained(py, error, self.writes))
        })
    }

    /// The memory of each output on a GPU.
    fn written(&self, py: Python<'py>, target: Target) -> PyResult<SmallVec<[Managed; 2]>> {
        let memory = |output: &Output<'py>| {
            output.memory_at(py, target, self.name).map(|memory| memory.cloned()).transpose()
        };
        self.outputs.iter().filter_map(memory).collect()
    }

    /// Calls a function of CuPy: straight into the outputs, or into new arrays that are copied.
    fn call(
        &self,
        py: Python<'py>,
        cupy: &Cupy<'py>,
        function: &Found<'py>,
        mut values: Values<'py>,
        outputs: &[Bound<'py, PyAny>],
    ) -> PyResult<()> {
        let mask = if self.masked { values.pop() } else { None };
        if function.takes_outputs && mask.is_none() {
            values.extend(outputs.iter().cloned());
            return function.own.call(PyTuple::new(py, values)?, self.options).map(drop);
        }
        let casting = self.options.map(|one| one.get_item(intern!(py, "casting"))).transpose()?;
        let made = function.own.call(PyTuple::new(py, values)?, self.options)?;
        let made: Values<'py> = match made.cast::<PyTuple>() {
            Ok(several) => several.iter().collect(),
            Err(_) => Values::from_iter([made]),
        };
        let casting = casting.flatten();
        let copied = outputs.iter().zip(&made);
        copied.into_iter().try_for_each(|(output, made)| {
            cupy.copy_to(output, made, casting.as_ref(), mask.as_ref())
        })
    }

    /// Marks the side that was written.
    fn mark(&self, py: Python<'_>, written: Dirty) {
        self.outputs.iter().for_each(|output| output.mark(py, written));
    }
}

/// NumPy and CuPy refuse types before they write; whatever else fails may have written some
/// elements.
pub(super) fn explained(py: Python<'_>, error: PyErr, written: bool) -> PyErr {
    if written && !error.is_instance_of::<PyTypeError>(py) {
        let note = "out: some elements may have been written before the error";
        drop(error.value(py).call_method1(intern!(py, "add_note"), (note,)));
    }
    error
}

/// The array of the output that is the operand itself. CuPy copies an operand whose elements are
/// those of an output, unless both are one object.
fn in_place<'a, 'py>(
    memory: &Managed,
    axes: &[Option<usize>],
    written: &[Managed],
    outputs: &'a [Bound<'py, PyAny>],
) -> Option<&'a Bound<'py, PyAny>> {
    let in_order = is_in_order(memory.layout().ndim(), axes);
    let at = written.iter().position(|out| in_order && memory.is_same_as(out));
    at.and_then(|at| outputs.get(at))
}

/// An array of CuPy over an operand: over a copy if it shares elements with an output, for which
/// CuPy looks in memory of its own alone.
fn read_by<'py>(
    cupy: &mut Cupy<'py>,
    py: Python<'py>,
    memory: &Managed,
    axes: &[Option<usize>],
    written: &[Managed],
) -> PyResult<Bound<'py, PyAny>> {
    let array = cupy.array(py, memory)?;
    let array = match written.iter().any(|out| memory.may_overlap(out)) {
        true => array.call_method0(intern!(py, "copy"))?,
        false => array,
    };
    moved(array, memory.layout().ndim(), axes)
}

/// A number as CuPy takes it, which takes no array of NumPy.
fn cupys_number<'py>(number: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match is_plain_ndarray(number) {
        true => number.get_item(PyTuple::empty(number.py())),
        false => Ok(number.clone()),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "for filters")]
pub(super) fn has_shape(given: &&Given<'_>) -> bool {
    given.operand().is_some()
}

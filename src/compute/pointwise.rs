//! One call of an elementwise function (`...->...`), which NumPy or CuPy computes. Reductions are in
//! `reduce`.

use std::rc::Rc;
use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyTuple};
use smallvec::SmallVec;

use super::cupy::Cupy;
use super::lift::{Lift, Names, result};
use super::operands::{Operand, is_in_order, moved};
use super::others::{Others, is_of_library};
use super::types::{Signature, Types, result_type, result_types};
use crate::error::Error;
use crate::field::{Field, Joined, Operand as Labels};
use crate::interpreter::{Caller, Inside};
use crate::layout::{Extents, MAX_NDIM};
use crate::managed::Managed;
use crate::short_ways::short_ways;
use crate::storage::{LastResult, Source, Storage};

/// A call to make: `function(inputs..., outputs..., where=mask, options...)`.
pub(super) struct Call<'a, 'py> {
    pub(super) function: &'a Bound<'py, PyAny>,
    /// Its name in messages, by which `on_host` also knows two functions.
    pub(super) name: &'a str,
    pub(super) inputs: &'a [Bound<'py, PyAny>],
    /// As many as the function has results; `None` for a new storage.
    pub(super) out: &'a [Option<Bound<'py, PyAny>>],
    pub(super) mask: Option<Bound<'py, PyAny>>,
    pub(super) names: Names,
    /// Other keywords of NumPy's function.
    pub(super) options: Option<Bound<'py, PyDict>>,
    pub(super) others: Others,
}

type Values<'py> = SmallVec<[Bound<'py, PyAny>; 4]>;
type Outputs<'py> = SmallVec<[Operand<'py>; 2]>;

impl<'py> Call<'_, 'py> {
    /// Computes the results; `None` if another operand is to decide what happens. A refused call
    /// writes nothing.
    pub(super) fn run(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let _inside = Inside::enter(py);
        let mask = self.mask.as_ref();
        let Some(lift) = Lift::read(self.name, self.inputs, mask, self.out, self.others)? else {
            return self.in_chunks(py);
        };
        let mut joined = None;
        let outputs = match self.outputs_alike(py, &lift)? {
            Some(outputs) => outputs,
            None => self.outputs(py, &lift, &mut joined)?,
        };
        let joined = joined.as_deref();
        match lift.target.ordinal() {
            None => self.on_host(py, &lift, joined, &outputs)?,
            Some(ordinal) => {
                self.dtypes_of_numpy(py, lift.inputs())?; // refuses what NumPy refuses
                self.on_gpu(py, ordinal, &lift, joined, &outputs)?;
            }
        }
        result(py, &outputs).map(Some)
    }

    /// Lets Dask compute if an operand is one of its arrays. Dask takes storages as it takes arrays
    /// of NumPy. `None` for other operands, and for a call with a mask or outputs.
    fn in_chunks(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.mask.is_some() || self.out.iter().any(Option::is_some) {
            return Ok(None);
        }
        for object in self.inputs {
            if is_of_library(object, "dask")? {
                let chunks = py.import(intern!(py, "dlfield.functions.chunks"))?;
                let inputs = PyTuple::new(py, self.inputs)?;
                let compute = intern!(py, "computed");
                return chunks
                    .call_method1(compute, (self.function, inputs, self.options.as_ref()))
                    .map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the outputs if all operands have one shape and field; `None` if they must be joined.
    fn outputs_alike(
        &self,
        py: Python<'py>,
        lift: &Lift<'_, 'py>,
    ) -> PyResult<Option<Outputs<'py>>> {
        let Some((memory, field)) = alike(lift) else { return Ok(None) };
        lift.check_outputs(py)?;
        if let Some(outputs) = lift.outputs.iter().cloned().collect() {
            return Ok(Some(outputs));
        }
        let mut outputs = Outputs::new();
        for (output, dtype) in lift.outputs.iter().zip(self.dtypes(py, lift.inputs())?) {
            outputs.push(match output {
                Some(output) => output.clone(),
                None => {
                    let made = Storage::for_result_like(memory, field, dtype, lift.residence)?;
                    Operand::new(py, made)?
                }
            });
        }
        Ok(Some(outputs))
    }

    /// Joins the operands into `joined`. Returns the caller's outputs, and new storages for the rest.
    fn outputs(
        &self,
        py: Python<'py>,
        lift: &Lift<'_, 'py>,
        joined: &mut Option<Rc<Joined>>,
    ) -> PyResult<Outputs<'py>> {
        let sources = self.sources(py, lift)?;
        if let Some(sources) = &sources
            && let Some(outputs) = self.outputs_again(py, lift, sources, joined)?
        {
            return Ok(outputs);
        }
        let labels: SmallVec<[Labels<'_>; 4]> =
            lift.operands.iter().filter_map(Operand::labels).collect();
        let joined = joined.insert(Rc::new(lift.join(py, &labels, self.names)?));
        if let Some(outputs) = lift.outputs.iter().cloned().collect() {
            return Ok(outputs);
        }
        let dtypes = self.dtypes(py, lift.inputs())?;
        let arrays = lift.operands.iter().filter(|operand| operand.labels().is_some());
        let ranks: SmallVec<[Option<Extents>; 4]> = arrays.map(Operand::ranks).collect();
        // A mask has a say in dims and layout, but its halo, origin and alignment do not count.
        let mask = usize::from(lift.mask().and_then(Operand::labels).is_some());
        let labels = labels.get(..labels.len().saturating_sub(mask)).unwrap_or_default();
        let (sources, residence) = (sources.as_deref(), lift.residence);
        let one = |(output, dtype): (&Option<Operand<'py>>, &_)| match output {
            Some(output) => Ok(output.clone()),
            None => {
                let made = Storage::for_result(joined, labels, &ranks, sources, *dtype, residence)?;
                Operand::new(py, made)
            }
        };
        lift.outputs.iter().zip(&dtypes).map(one).collect()
    }

    /// The operands that are no numbers, if all of them are storages and nothing else decides about the
    /// result. Without the short ways `None`.
    fn sources<'a>(
        &self,
        py: Python<'py>,
        lift: &'a Lift<'_, 'py>,
    ) -> PyResult<Option<SmallVec<[Source<'a>; 4]>>> {
        let is_plain = self.names == Names::Shared
            && lift.mask().is_none()
            && lift.outputs.iter().all(Option::is_none);
        if !is_plain || !short_ways() {
            return Ok(None);
        }
        let arrays = lift.operands.iter().filter(|one| !matches!(one, Operand::Number(_)));
        let sources: Option<SmallVec<_>> = arrays.map(Operand::storage).collect();
        Ok(match sources {
            Some(sources) if Caller::of_now(py)? == Caller::User => Some(sources),
            _ => None,
        })
    }

    /// New outputs, as the last call with such operands had them; `None` if there was none.
    fn outputs_again(
        &self,
        py: Python<'py>,
        lift: &Lift<'_, 'py>,
        sources: &[Source<'_>],
        joined: &mut Option<Rc<Joined>>,
    ) -> PyResult<Option<Outputs<'py>>> {
        let Some(last) = LastResult::find(sources, None) else { return Ok(None) };
        let mut outputs = Outputs::new();
        for dtype in self.dtypes(py, lift.inputs())? {
            let Some(last) = LastResult::find(sources, Some(dtype)) else { return Ok(None) };
            outputs.push(Operand::new(py, last.allocate(lift.residence)?)?);
        }
        joined.clone_from(&last.joined);
        Ok(Some(outputs))
    }

    /// The types of the results by NumPy's rules, as a call with empty arrays tells them.
    fn dtypes(&self, py: Python<'py>, inputs: &[Operand<'py>]) -> PyResult<Types> {
        let kinds = inputs.iter().map(Operand::kind).collect::<Option<_>>();
        let kinds = kinds.filter(|_| self.options.is_none());
        let ask = || self.dtypes_of_numpy(py, inputs);
        result_types(self.function, Signature::Elementwise, kinds, ask)
    }

    fn dtypes_of_numpy(&self, py: Python<'py>, inputs: &[Operand<'py>]) -> PyResult<Types> {
        let stand_ins = inputs.iter().map(|one| one.stand_in(py)).collect::<PyResult<Vec<_>>>()?;
        let answer = self.function.call(PyTuple::new(py, stand_ins)?, self.options.as_ref())?;
        each(answer).iter().map(|one| result_type(one, self.name)).collect()
    }

    /// Lets NumPy compute into the outputs.
    fn on_host(
        &self,
        py: Python<'py>,
        lift: &Lift<'_, 'py>,
        joined: Option<&Joined>,
        outputs: &[Operand<'py>],
    ) -> PyResult<()> {
        let arrays = outputs.iter().map(|output| output.array(py, self.name));
        let arrays = arrays.collect::<PyResult<SmallVec<[_; 2]>>>()?;
        let mut values = Values::new();
        for (operand, axes) in with_axes(&lift.operands, joined) {
            let own = outputs.iter().zip(&arrays).find(|(output, _)| output.is(operand));
            values.push(match own {
                Some((_, array)) => array.clone(),
                None => operand.value(py, axes, self.name)?,
            });
        }
        let mask = lift.mask().and_then(|_| values.pop());
        values.extend(arrays);
        let outcome = match (values.as_slice(), mask, &self.options) {
            // Since NumPy 2.4, these two deprecate an `out` that is passed by position.
            ([a, b, out], None, None) if matches!(self.name, "numpy.maximum" | "numpy.minimum") => {
                let options = [(intern!(py, "out"), out)].into_py_dict(py)?;
                self.function.call((a, b), Some(&options))
            }
            ([a, out], None, None) => self.function.call1((a, out)),
            ([a, b, out], None, None) => self.function.call1((a, b, out)),
            (values, mask, options) => {
                let options =
                    options.as_ref().map_or_else(|| Ok(PyDict::new(py)), |one| one.copy())?;
                mask.map(|mask| options.set_item(intern!(py, "where"), mask)).transpose()?;
                self.function.call(PyTuple::new(py, values)?, Some(&options))
            }
        };
        lift.written(py, outputs, outcome).map(drop)
    }

    /// Lets CuPy compute on a GPU.
    fn on_gpu(
        &self,
        py: Python<'py>,
        ordinal: i32,
        lift: &Lift<'_, 'py>,
        joined: Option<&Joined>,
        outputs: &[Operand<'py>],
    ) -> PyResult<()> {
        Cupy::work(py, ordinal, self.name, |cupy| {
            let (function, takes_outputs) =
                cupy.function(self.function, self.options.as_ref(), self.name)?;
            let memories = outputs.iter().map(|output| cupy.memory(py, output, self.name));
            let memories = memories.filter_map(Result::transpose).collect::<PyResult<Vec<_>>>()?;
            let arrays = memories.iter().map(|memory| cupy.array(py, memory));
            let arrays = arrays.collect::<PyResult<Values<'py>>>()?;
            let mut values = Values::new();
            for (operand, axes) in with_axes(&lift.operands, joined) {
                values.push(match cupy.memory(py, operand, self.name)? {
                    None => Cupy::number(&operand.object())?,
                    Some(memory) => match in_place(&memory, axes, &memories, &arrays) {
                        Some(output) => output.clone(),
                        None => read(cupy, py, &memory, axes, &memories)?,
                    },
                });
            }
            let mask = lift.mask().and_then(|_| values.pop());
            let outcome = if takes_outputs && mask.is_none() {
                values.extend(arrays);
                function.call(PyTuple::new(py, values)?, self.options.as_ref()).map(drop)
            } else {
                self.copy_results(py, cupy, &function, values, &arrays, mask.as_ref())
            };
            lift.written(py, outputs, outcome)
        })
    }

    /// Calls a function of CuPy that makes new arrays, and copies these into the outputs.
    fn copy_results(
        &self,
        py: Python<'py>,
        cupy: &Cupy<'py>,
        function: &Bound<'py, PyAny>,
        values: Values<'py>,
        outputs: &[Bound<'py, PyAny>],
        mask: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let options = self.options.as_ref();
        let casting = options.map(|one| one.get_item(intern!(py, "casting"))).transpose()?;
        let made = each(function.call(PyTuple::new(py, values)?, options)?);
        let casting = casting.flatten();
        outputs
            .iter()
            .zip(&made)
            .try_for_each(|(output, made)| cupy.copy_to(output, made, casting.as_ref(), mask))
    }
}

/// The results that a function returns: one, or a tuple.
fn each(answer: Bound<'_, PyAny>) -> Values<'_> {
    match answer.cast::<PyTuple>() {
        Ok(several) => several.iter().collect(),
        Err(_) => Values::from_iter([answer]),
    }
}

/// The first storage, if every other operand and output is a number or a storage of the same shape
/// and field, and there is no mask. Without the short ways `None`.
fn alike<'a>(lift: &'a Lift<'_, '_>) -> Option<(&'a Managed, &'a Arc<Field>)> {
    let mut first: Option<(&Managed, &Arc<Field>)> = None;
    for operand in lift.operands.iter().chain(lift.outputs.iter().flatten()) {
        match (operand, operand.storage(), first) {
            (Operand::Number(_), ..) => {}
            (_, Some(storage), None) => first = Some(storage),
            (_, Some((memory, field)), Some((first, its)))
                if (Arc::ptr_eq(field, its) || field == its)
                    && memory.layout().shape() == first.layout().shape() => {}
            _ => return None,
        }
    }
    first.filter(|_| short_ways() && lift.mask().is_none())
}

/// The axes of an operand that has the dimensions of the result in the same order.
static IN_ORDER: [Option<usize>; MAX_NDIM] = {
    let mut axes = [None; MAX_NDIM];
    let mut axis = 0;
    while axis < MAX_NDIM {
        axes[axis] = Some(axis);
        axis += 1;
    }
    axes
};

/// Pairs each operand with its axis for each dimension of the result. Without `joined`, all
/// operands have the dimensions of the result.
fn with_axes<'a, 'py>(
    operands: &'a [Operand<'py>],
    joined: Option<&'a Joined>,
) -> impl Iterator<Item = (&'a Operand<'py>, &'a [Option<usize>])> {
    let mut axes = joined.map(|joined| joined.axes.iter());
    operands.iter().map(move |operand| {
        let ndim = operand.labels().map(|labels| labels.shape.len());
        let own = ndim.and_then(|ndim| IN_ORDER.get(..ndim)).unwrap_or_default();
        let moved = axes.as_mut().filter(|_| ndim.is_some()).and_then(Iterator::next);
        (operand, moved.map_or(own, |axes| &axes[..]))
    })
}

/// The array of the output that is the operand itself, if there is one. CuPy copies an operand that
/// begins at the address of an output, unless both are one object.
fn in_place<'a, 'py>(
    memory: &Managed,
    axes: &[Option<usize>],
    outputs: &[Managed],
    arrays: &'a [Bound<'py, PyAny>],
) -> Option<&'a Bound<'py, PyAny>> {
    let in_order = is_in_order(memory.layout().ndim(), axes);
    let at = outputs.iter().position(|output| in_order && memory.is_same_as(output));
    at.and_then(|at| arrays.get(at))
}

/// An array of CuPy over an operand, or over a copy if it shares elements with an output. Of memory
/// that is not its own, CuPy notices that only if both begin at one address.
fn read<'py>(
    cupy: &mut Cupy<'py>,
    py: Python<'py>,
    memory: &Managed,
    axes: &[Option<usize>],
    outputs: &[Managed],
) -> PyResult<Bound<'py, PyAny>> {
    let array = cupy.array(py, memory)?;
    let array = match outputs.iter().any(|output| memory.may_overlap(output)) {
        true => array.call_method0(intern!(py, "copy"))?,
        false => array,
    };
    moved(array, memory.layout().ndim(), axes)
}

/// The error for a function of matrices, which does not work element by element.
pub(super) fn not_elementwise(name: &str) -> Error {
    Error::Type(format!(
        "{name}: expected a function that works element by element, got one for matrices, whose \
         dimensions have no names; use to_numpy() of the storages"
    ))
}

//! Operators and comparisons of storages, each by a universal function of NumPy. `pointwise` computes
//! them.

use std::slice;
use std::sync::{Mutex, PoisonError};

use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyFloat, PyInt};

use super::lift::Names;
use super::others::Others;
use super::pointwise::{Call, not_elementwise};
use crate::dtype::DType;
use crate::python::numpy::dtype_to;
use crate::python::storage::PyStorage;

/// A universal function of NumPy, looked up once.
struct Function {
    name: &'static str,
    results: usize,
    ufunc: PyOnceLock<Py<PyAny>>,
}

impl Function {
    const fn new(name: &'static str, results: usize) -> Self {
        Self { name, results, ufunc: PyOnceLock::new() }
    }

    /// Returns the result of an operator; `NotImplemented` if another operand is to decide.
    fn call<'py, const N: usize>(&self, inputs: [&Bound<'py, PyAny>; N]) -> Answer<'py> {
        let py = inputs[0].py();
        let result = self.run(py, &inputs.map(Clone::clone), &[const { None }; 2])?;
        Ok(result.unwrap_or_else(|| py.NotImplemented().into_bound(py)))
    }

    /// Returns the result of `==` or `!=` for types that NumPy cannot compare, as a number and a text.
    fn of_other_types<'py>(
        &self,
        slf: &Bound<'py, PyStorage>,
        other: &Bound<'py, PyAny>,
        error: PyErr,
    ) -> Answer<'py> {
        let py = slf.py();
        if error.get_type(py).qualname()? != "_UFuncNoLoopError" {
            return Err(error);
        }
        let functions = py.import(intern!(py, "dlfield.functions.ufuncs"))?;
        functions.call_method1(intern!(py, "of_other_types"), (self.name, slf, other))
    }

    /// Computes into the first operand.
    fn call_in_place<'py>(
        &self,
        slf: &Bound<'py, PyStorage>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let out = slf.as_any().clone();
        if self.run(slf.py(), &[out.clone(), other.clone()], &[Some(out)])?.is_some() {
            return Ok(());
        }
        let class = other.get_type();
        Err(PyTypeError::new_err(format!(
            "{}: expected an operand whose class does not decide the result, got a {}; assign the \
             result, storage[...] = ...",
            self.name,
            class.name()?
        )))
    }

    fn run<'py>(
        &self,
        py: Python<'py>,
        inputs: &[Bound<'py, PyAny>],
        out: &[Option<Bound<'py, PyAny>>],
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let out = out.get(..self.results).unwrap_or_default();
        let call = |function, inputs| {
            let (name, names, others) = (self.name, Names::Shared, Others::Decide);
            Call { function, name, inputs, out, mask: None, names, options: None, others }.run(py)
        };
        if let ("power", [base, exponent]) = (self.name, inputs)
            && let Some(function) = power_of_one(base, exponent)?
        {
            return call(&function, slice::from_ref(base));
        }
        call(self.ufunc.import(py, "numpy", self.name)?, inputs)
    }
}

/// NumPy's answer for a base type and an exponent: a function of one operand, or none.
type Known = (DType, Exponent, Option<Py<PyAny>>);

/// Returns the function of one operand that NumPy's `**` calls instead of `numpy.power`, such as
/// `numpy.square`. It may have other special values, and results of other types.
fn power_of_one<'py>(
    base: &Bound<'py, PyAny>,
    exponent: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    let py = base.py();
    let Ok(storage) = base.cast::<PyStorage>() else { return Ok(None) };
    let Some(special) = Exponent::of(exponent) else { return Ok(None) };
    let dtype = storage.get().storage().dtype();
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_same = |one: &&Known| (one.0, one.1) == (dtype, special);
    if let Some((.., function)) = known().iter().find(is_same) {
        return Ok(function.as_ref().map(|function| function.bind(py).clone()));
    }
    let ask = py.import("dlfield.functions.ufuncs")?.getattr("power_of_one")?;
    let answer = ask.call1((dtype_to(py, dtype)?, exponent))?;
    let function = Some(answer).filter(|answer| !answer.is_none());
    known().push((dtype, special, function.clone().map(Bound::unbind)));
    Ok(function)
}

/// An exponent, with its type, for which NumPy may call another function than `numpy.power`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exponent {
    Int(i8),
    Half,
    Float(i8),
}

impl Exponent {
    fn of(exponent: &Bound<'_, PyAny>) -> Option<Self> {
        let whole = |value: f64| [-1_i8, 2].into_iter().find(|&one| f64::from(one) == value);
        if exponent.is_exact_instance_of::<PyInt>() {
            return whole(exponent.extract().ok()?).map(Self::Int);
        }
        let value = exponent.cast_exact::<PyFloat>().ok()?.value();
        if value == 0.5 { Some(Self::Half) } else { whole(value).map(Self::Float) }
    }
}

type Other<'a, 'py> = &'a Bound<'py, PyAny>;
type Answer<'py> = PyResult<Bound<'py, PyAny>>;

/// Defines operators of one operand: the function and the method of each.
macro_rules! unary {
    ($($function:literal $method:ident;)+) => {$(const _: () = {
        static FUNCTION: Function = Function::new($function, 1);

        #[pymethods]
        impl PyStorage {
            fn $method<'py>(slf: &Bound<'py, Self>) -> Answer<'py> {
                FUNCTION.call([slf.as_any()])
            }
        }
    };)+};
}

/// Defines operators of two operands: the function, the number of its results, and the methods with
/// the storage on the left, on the right, and as the output. A third operand of `pow` is refused, as
/// in NumPy.
macro_rules! binary {
    ($($function:literal $results:literal
        $first:ident $last:ident $(($modulo:ident))? $([$($written:tt)+])?;)+) => {$(
        #[allow(unsafe_op_in_unsafe_fn, reason = "code that PyO3 generates")]
        const _: () = {
        static FUNCTION: Function = Function::new($function, $results);

        #[pymethods]
        impl PyStorage {
            fn $first<'py>(
                slf: &Bound<'py, Self>,
                other: Other<'_, 'py>,
                $($modulo: Option<Other<'_, 'py>>)?
            ) -> Answer<'py> {
                $(check_no_modulo($modulo)?;)?
                FUNCTION.call([slf.as_any(), other])
            }

            fn $last<'py>(
                slf: &Bound<'py, Self>,
                other: Other<'_, 'py>,
                $($modulo: Option<Other<'_, 'py>>)?
            ) -> Answer<'py> {
                $(check_no_modulo($modulo)?;)?
                FUNCTION.call([other, slf.as_any()])
            }
        }

        $(binary!(in_place $($written)+);)?
    };)+};
    (in_place $written:ident $(($modulo:ident))?) => {
        #[pymethods]
        impl PyStorage {
            fn $written<'py>(
                slf: &Bound<'py, Self>,
                other: Other<'_, 'py>,
                $($modulo: Option<Other<'_, 'py>>)?
            ) -> PyResult<()> {
                $(check_no_modulo($modulo)?;)?
                FUNCTION.call_in_place(slf, other)
            }
        }
    };
}

unary! {
    "negative" __neg__;
    "positive" __pos__;
    "absolute" __abs__;
    "invert" __invert__;
}

binary! {
    "add" 1 __add__ __radd__ [__iadd__];
    "subtract" 1 __sub__ __rsub__ [__isub__];
    "multiply" 1 __mul__ __rmul__ [__imul__];
    "true_divide" 1 __truediv__ __rtruediv__ [__itruediv__];
    "floor_divide" 1 __floordiv__ __rfloordiv__ [__ifloordiv__];
    "remainder" 1 __mod__ __rmod__ [__imod__];
    "left_shift" 1 __lshift__ __rlshift__ [__ilshift__];
    "right_shift" 1 __rshift__ __rrshift__ [__irshift__];
    "bitwise_and" 1 __and__ __rand__ [__iand__];
    "bitwise_or" 1 __or__ __ror__ [__ior__];
    "bitwise_xor" 1 __xor__ __rxor__ [__ixor__];
    "power" 1 __pow__ __rpow__ (modulo) [__ipow__ (modulo)];
    "divmod" 2 __divmod__ __rdivmod__;
}

fn check_no_modulo(modulo: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match modulo.filter(|modulo| !modulo.is_none()) {
        None => Ok(()),
        Some(_) => Err(PyTypeError::new_err(
            "pow: expected two operands, got a third one; use (a ** b) % c",
        )),
    }
}

static LESS: Function = Function::new("less", 1);
static LESS_EQUAL: Function = Function::new("less_equal", 1);
static EQUAL: Function = Function::new("equal", 1);
static NOT_EQUAL: Function = Function::new("not_equal", 1);
static GREATER: Function = Function::new("greater", 1);
static GREATER_EQUAL: Function = Function::new("greater_equal", 1);

#[pymethods]
impl PyStorage {
    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        operator: CompareOp,
    ) -> Answer<'py> {
        let function = match operator {
            CompareOp::Lt => &LESS,
            CompareOp::Le => &LESS_EQUAL,
            CompareOp::Eq => &EQUAL,
            CompareOp::Ne => &NOT_EQUAL,
            CompareOp::Gt => &GREATER,
            CompareOp::Ge => &GREATER_EQUAL,
        };
        let answer = function.call([slf.as_any(), other]);
        match answer {
            Err(error) if matches!(operator, CompareOp::Eq | CompareOp::Ne) => {
                function.of_other_types(slf, other, error)
            }
            answer => answer,
        }
    }

    /// Raise TypeError: a matrix product sums over dimensions without naming them.
    fn __matmul__(&self, _other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Err(not_elementwise("matmul").into())
    }

    fn __rmatmul__(&self, _other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Err(not_elementwise("matmul").into())
    }

    fn __imatmul__(&self, _other: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(not_elementwise("matmul").into())
    }
}

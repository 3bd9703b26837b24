//! Operators and comparisons, each of which is a universal function.

use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::pointwise::{Call, not_elementwise};
use crate::python::storage::PyStorage;

/// A universal function of NumPy that is looked up once.
struct Function {
    name: &'static str,
    found: PyOnceLock<Py<PyAny>>,
}

impl Function {
    const fn new(name: &'static str) -> Self {
        Self { name, found: PyOnceLock::new() }
    }

    fn get<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        self.found.import(py, "numpy", self.name)
    }

    /// The result of an operator; `NotImplemented` if another operand decides.
    fn of<'py, const N: usize>(
        &self,
        py: Python<'py>,
        inputs: [&Bound<'py, PyAny>; N],
        results: usize,
    ) -> Answer<'py> {
        let found = self.call(py, &inputs.map(Clone::clone), &[const { None }; 2][..results])?;
        Ok(found.unwrap_or_else(|| py.NotImplemented().into_bound(py)))
    }

    /// Computes into the first operand.
    fn write_first<'py>(
        &self,
        slf: &Bound<'py, PyStorage>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let (py, out) = (slf.py(), slf.as_any().clone());
        if self.call(py, &[out.clone(), other.clone()], &[Some(out)])?.is_some() {
            return Ok(());
        }
        let class = other.get_type();
        Err(PyTypeError::new_err(format!(
            "{}: expected an operand that leaves the result to the storage, got a {}; assign the \
             result, storage[...] = ...",
            self.name,
            class.name()?
        )))
    }

    fn call<'py>(
        &self,
        py: Python<'py>,
        inputs: &[Bound<'py, PyAny>],
        out: &[Option<Bound<'py, PyAny>>],
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let function = self.get(py)?;
        Call { function, name: self.name, inputs, out, mask: None, options: None }.run(py)
    }
}

type Other<'a, 'py> = &'a Bound<'py, PyAny>;
type Answer<'py> = PyResult<Bound<'py, PyAny>>;

static ADD: Function = Function::new("add");
static SUBTRACT: Function = Function::new("subtract");
static MULTIPLY: Function = Function::new("multiply");
static DIVIDE: Function = Function::new("true_divide");
static FLOOR_DIVIDE: Function = Function::new("floor_divide");
static REMAINDER: Function = Function::new("remainder");
static LEFT_SHIFT: Function = Function::new("left_shift");
static RIGHT_SHIFT: Function = Function::new("right_shift");
static BITWISE_AND: Function = Function::new("bitwise_and");
static BITWISE_OR: Function = Function::new("bitwise_or");
static BITWISE_XOR: Function = Function::new("bitwise_xor");
static NEGATIVE: Function = Function::new("negative");
static POSITIVE: Function = Function::new("positive");
static ABSOLUTE: Function = Function::new("absolute");
static INVERT: Function = Function::new("invert");
static POWER: Function = Function::new("power");
static DIVMOD: Function = Function::new("divmod");
static EQUAL: Function = Function::new("equal");
static NOT_EQUAL: Function = Function::new("not_equal");
static LESS: Function = Function::new("less");
static LESS_EQUAL: Function = Function::new("less_equal");
static GREATER: Function = Function::new("greater");
static GREATER_EQUAL: Function = Function::new("greater_equal");

#[pymethods]
impl PyStorage {
    fn __add__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        ADD.of(slf.py(), [slf.as_any(), other], 1)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        ADD.of(slf.py(), [other, slf.as_any()], 1)
    }

    fn __iadd__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> PyResult<()> {
        ADD.write_first(slf, other)
    }

    fn __sub__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        SUBTRACT.of(slf.py(), [slf.as_any(), other], 1)
    }

    fn __rsub__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        SUBTRACT.of(slf.py(), [other, slf.as_any()], 1)
    }

    fn __isub__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> PyResult<()> {
        SUBTRACT.write_first(slf, other)
    }

    fn __mul__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        MULTIPLY.of(slf.py(), [slf.as_any(), other], 1)
    }

    fn __rmul__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        MULTIPLY.of(slf.py(), [other, slf.as_any()], 1)
    }

    fn __imul__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> PyResult<()> {
        MULTIPLY.write_first(slf, other)
    }

    fn __truediv__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        DIVIDE.of(slf.py(), [slf.as_any(), other], 1)
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        DIVIDE.of(slf.py(), [other, slf.as_any()], 1)
    }

    fn __itruediv__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> PyResult<()> {
        DIVIDE.write_first(slf, other)
    }

    fn __floordiv__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        FLOOR_DIVIDE.of(slf.py(), [slf.as_any(), other], 1)
    }

    fn __rfloordiv__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        FLOOR_DIVIDE.of(slf.py(), [other, slf.as_any()], 1)
    }

    fn __ifloordiv__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> PyResult<()> {
        FLOOR_DIVIDE.write_first(slf, other)
    }

    fn __mod__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        REMAINDER.of(slf.py(), [slf.as_any(), other], 1)
    }

    fn __rmod__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        REMAINDER.of(slf.py(), [other, slf.as_any()], 1)
    }

    fn __imod__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> PyResult<()> {
        REMAINDER.write_first(slf, other)
    }

    fn __lshift__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        LEFT_SHIFT.of(slf.py(), [slf.as_any(), other], 1)
    }

    fn __rlshift__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        LEFT_SHIFT.of(slf.py(), [other, slf.as_any()], 1)
    }

    fn __ilshift__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> PyResult<()> {
        LEFT_SHIFT.write_first(slf, other)
    }

    fn __rshift__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        RIGHT_SHIFT.of(slf.py(), [slf.as_any(), other], 1)
    }

    fn __rrshift__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        RIGHT_SHIFT.of(slf.py(), [other, slf.as_any()], 1)
    }

    fn __irshift__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> PyResult<()> {
        RIGHT_SHIFT.write_first(slf, other)
    }

    fn __and__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        BITWISE_AND.of(slf.py(), [slf.as_any(), other], 1)
    }

    fn __rand__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        BITWISE_AND.of(slf.py(), [other, slf.as_any()], 1)
    }

    fn __iand__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> PyResult<()> {
        BITWISE_AND.write_first(slf, other)
    }

    fn __or__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        BITWISE_OR.of(slf.py(), [slf.as_any(), other], 1)
    }

    fn __ror__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        BITWISE_OR.of(slf.py(), [other, slf.as_any()], 1)
    }

    fn __ior__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> PyResult<()> {
        BITWISE_OR.write_first(slf, other)
    }

    fn __xor__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        BITWISE_XOR.of(slf.py(), [slf.as_any(), other], 1)
    }

    fn __rxor__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        BITWISE_XOR.of(slf.py(), [other, slf.as_any()], 1)
    }

    fn __ixor__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> PyResult<()> {
        BITWISE_XOR.write_first(slf, other)
    }

    fn __neg__<'py>(slf: &Bound<'py, Self>) -> Answer<'py> {
        NEGATIVE.of(slf.py(), [slf.as_any()], 1)
    }

    fn __pos__<'py>(slf: &Bound<'py, Self>) -> Answer<'py> {
        POSITIVE.of(slf.py(), [slf.as_any()], 1)
    }

    fn __abs__<'py>(slf: &Bound<'py, Self>) -> Answer<'py> {
        ABSOLUTE.of(slf.py(), [slf.as_any()], 1)
    }

    fn __invert__<'py>(slf: &Bound<'py, Self>) -> Answer<'py> {
        INVERT.of(slf.py(), [slf.as_any()], 1)
    }
}

/// Refuses the third operand of `pow`, as NumPy does.
fn check_no_modulo(modulo: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match modulo.filter(|modulo| !modulo.is_none()) {
        None => Ok(()),
        Some(_) => Err(PyTypeError::new_err(
            "pow: expected two operands, got a third one; use (a ** b) % c",
        )),
    }
}

#[pymethods]
impl PyStorage {
    fn __pow__<'py>(
        slf: &Bound<'py, Self>,
        other: Other<'_, 'py>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> Answer<'py> {
        check_no_modulo(modulo)?;
        POWER.of(slf.py(), [slf.as_any(), other], 1)
    }

    fn __rpow__<'py>(
        slf: &Bound<'py, Self>,
        other: Other<'_, 'py>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> Answer<'py> {
        check_no_modulo(modulo)?;
        POWER.of(slf.py(), [other, slf.as_any()], 1)
    }

    fn __ipow__<'py>(
        slf: &Bound<'py, Self>,
        other: Other<'_, 'py>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        check_no_modulo(modulo)?;
        POWER.write_first(slf, other)
    }

    fn __divmod__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        DIVMOD.of(slf.py(), [slf.as_any(), other], 2)
    }

    fn __rdivmod__<'py>(slf: &Bound<'py, Self>, other: Other<'_, 'py>) -> Answer<'py> {
        DIVMOD.of(slf.py(), [other, slf.as_any()], 2)
    }

    /// Raise TypeError: a product of matrices sums over dimensions without saying which.
    fn __matmul__(&self, _other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Err(not_elementwise("matmul").into())
    }

    fn __rmatmul__(&self, _other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Err(not_elementwise("matmul").into())
    }

    fn __imatmul__(&self, _other: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(not_elementwise("matmul").into())
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        operator: CompareOp,
    ) -> Answer<'py> {
        let function = match operator {
            CompareOp::Eq => &EQUAL,
            CompareOp::Ne => &NOT_EQUAL,
            CompareOp::Lt => &LESS,
            CompareOp::Le => &LESS_EQUAL,
            CompareOp::Gt => &GREATER,
            CompareOp::Ge => &GREATER_EQUAL,
        };
        function.of(slf.py(), [slf.as_any(), other], 1)
    }
}

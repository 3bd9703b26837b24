//! Guards for tensors of torch whose memory is not their value: a conjugation or negation that is
//! pending in a bit of the tensor, or a place in an autograd graph. And the note to autograd that a
//! tensor was written.
//!
//! No protocol expresses them. torch's exchange table, and its Python code for the negation, give
//! the memory as if there were nothing pending, so every tensor is asked. A tensor of exactly
//! torch's class is asked through torch's own C functions, found once; the class decides what they
//! answer. All others are asked by name, since a subclass may answer for itself.
//!
//! No question can be left out. A negation of real numbers begins with the imaginary part of a
//! conjugate, but nothing that is cheap to read tells the tensors apart that come from one:
//! `as_strided` hides the strides and `Tensor.data` the origin of a view.

use std::ffi::c_void;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCFunction, PyTuple, PyType};
use pyo3::{ffi, intern};

use crate::error::{Error, Failure};
use crate::interpreter::raised_by;
use crate::managed::Managed;

/// The C functions with which torch's class answers.
struct Questions {
    requires_grad: Getter,
    is_conj: ffi::PyCFunction,
    is_neg: ffi::PyCFunction,
}

/// An attribute of a class that computes its value.
struct Getter {
    descriptor: Py<PyAny>,
    get: ffi::descrgetfunc,
}

static QUESTIONS: PyOnceLock<Option<Questions>> = PyOnceLock::new();

/// A tensor that requires a gradient is detached where torch records none: in `torch.no_grad()`,
/// and in the `forward` of an autograd function. Elsewhere the gradient would be lost.
pub(super) fn without_gradient<'py>(
    tensor: &Bound<'py, PyAny>,
    exactly: bool,
) -> Result<Option<Bound<'py, PyAny>>, Failure> {
    let py = tensor.py();
    let requires_grad = match Questions::of(tensor, exactly) {
        Some(questions) => questions.requires_grad.get(tensor)?,
        None => tensor.getattr(intern!(py, "requires_grad"))?,
    };
    if !requires_grad.is_truthy()? {
        return Ok(None);
    }
    if py.import(intern!(py, "torch"))?.call_method0(intern!(py, "is_grad_enabled"))?.is_truthy()? {
        return Err(Error::Buffer(
            "torch tensor: expected one without a gradient, since torch cannot differentiate what \
             uses its memory, got requires_grad=True; to train, make an operator by \
             dlfield.torch_op(run, \"ns::name\", adjoint=...); to run, use torch.no_grad(); \
             tensor.detach() leaves the gradient out"
                .into(),
        )
        .into());
    }
    Ok(Some(tensor.call_method0(intern!(py, "detach"))?))
}

/// Refuses a tensor with a pending conjugation, which only a complex one can have, or negation.
pub(super) fn refuse_lazy(
    tensor: &Bound<'_, PyAny>,
    exactly: bool,
    managed: &Managed,
) -> Result<(), Failure> {
    let py = tensor.py();
    let questions = Questions::of(tensor, exactly);
    if managed.dtype().is_complex() {
        let is_conj = match questions {
            Some(questions) => call(questions.is_conj, tensor)?,
            None => tensor.call_method0(intern!(py, "is_conj"))?,
        };
        if is_conj.is_truthy()? {
            return Err(lazy("a pending conjugation", "resolve_conj()").into());
        }
    }
    let is_neg = match questions {
        Some(questions) => call(questions.is_neg, tensor)?,
        None => tensor.call_method0(intern!(py, "is_neg"))?,
    };
    if is_neg.is_truthy()? {
        return Err(lazy("a pending negation", "resolve_neg()").into());
    }
    Ok(())
}

/// Tells torch that a tensor was written, as its own operations in place do: autograd then refuses
/// a gradient for which it had kept the values that are gone.
pub(super) fn note_written(tensor: &Bound<'_, PyAny>) -> PyResult<()> {
    static INCREMENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = tensor.py();
    INCREMENT.get_or_try_init(py, || increment(py))?.call1(py, ((tensor,),)).map(drop)
}

/// The function of torch that takes a tuple of tensors. The public one is a frame of Python around a
/// function in C, which is called instead if it takes a tuple.
fn increment(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let public = py.import("torch.autograd.graph")?.getattr("increment_version")?;
    let inner = py.import("torch._C")?.getattr("_increment_version");
    let taken = inner.and_then(|inner| inner.call1((PyTuple::empty(py),)).map(|_| inner));
    Ok(taken.unwrap_or(public).unbind())
}

impl Questions {
    /// The questions for a tensor of exactly torch's class; `None` for others, and for a class that
    /// does not answer in C.
    fn of(tensor: &Bound<'_, PyAny>, exactly: bool) -> Option<&'static Self> {
        if !exactly {
            return None;
        }
        let find = || Self::find(tensor).ok().flatten();
        QUESTIONS.get_or_init(tensor.py(), find).as_ref()
    }

    /// Finds the functions, with a tensor of exactly torch's class.
    fn find(tensor: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let class = tensor.get_type();
        let requires_grad = Getter::find(&class, "requires_grad")?;
        let (is_conj, is_neg) =
            (c_function(tensor, &class, "is_conj")?, c_function(tensor, &class, "is_neg")?);
        let all = requires_grad.zip(is_conj.zip(is_neg));
        Ok(all.map(|(requires_grad, (is_conj, is_neg))| Self { requires_grad, is_conj, is_neg }))
    }
}

impl Getter {
    /// The attribute, if its class has it and no value in an object hides it.
    fn find(class: &Bound<'_, PyType>, name: &str) -> PyResult<Option<Self>> {
        let descriptor = class.getattr(name)?;
        let computed = &raw mut ffi::PyGetSetDescr_Type;
        if descriptor.get_type_ptr() != computed {
            return Ok(None);
        }
        // SAFETY: a class, and the number of a slot that holds such a function.
        let slot = unsafe { ffi::PyType_GetSlot(computed, ffi::Py_tp_descr_get) };
        // SAFETY: NULL, or the function of this slot.
        let get = unsafe { std::mem::transmute::<*mut c_void, Option<ffi::descrgetfunc>>(slot) };
        Ok(get.map(|get| Self { descriptor: descriptor.unbind(), get }))
    }

    fn get<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let class = object.get_type_ptr().cast();
        // SAFETY: the function of the descriptor's class, with an object of the class that has it.
        let value = unsafe { (self.get)(self.descriptor.as_ptr(), object.as_ptr(), class) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Bound::from_owned_ptr_or_opt(object.py(), value) }
            .ok_or_else(|| raised_by(object.py(), "torch tensor"))
    }
}

/// The C function of a method without arguments; `None` for a method of another kind.
pub(super) fn c_function(
    tensor: &Bound<'_, PyAny>,
    class: &Bound<'_, PyType>,
    name: &str,
) -> PyResult<Option<ffi::PyCFunction>> {
    let descriptor = class.getattr(name)?;
    if descriptor.get_type_ptr() != &raw mut ffi::PyMethodDescr_Type {
        return Ok(None);
    }
    let bound = descriptor.call_method1("__get__", (tensor, class))?;
    let Ok(bound) = bound.cast_exact::<PyCFunction>() else { return Ok(None) };
    // SAFETY: a function in C.
    if unsafe { ffi::PyCFunction_GetFlags(bound.as_ptr()) } != ffi::METH_NOARGS {
        return Ok(None);
    }
    // SAFETY: as above. The library that has the function is never unloaded.
    Ok(unsafe { ffi::PyCFunction_GetFunction(bound.as_ptr()) })
}

/// Calls the function of a method without arguments.
pub(super) fn call<'py>(
    function: ffi::PyCFunction,
    tensor: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: a METH_NOARGS function of the tensor's class; its second argument is NULL.
    let answer = unsafe { function(tensor.as_ptr(), std::ptr::null_mut()) };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Bound::from_owned_ptr_or_opt(tensor.py(), answer) }
        .ok_or_else(|| raised_by(tensor.py(), "torch tensor"))
}

fn lazy(state: &str, call: &str) -> Error {
    Error::Buffer(format!(
        "torch tensor: expected one whose memory holds its values, got {state}; call tensor.{call} \
         first"
    ))
}

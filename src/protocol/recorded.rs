//! Guards for what torch does with tensors while a function runs, of which the use of their memory
//! is no part: forward-mode derivatives, `torch.jit.trace`, `make_fx` and `torch.vmap`.
//!
//! Every tensor is asked, so a question costs a look into a module's dict or a call of a function in
//! C, and more only while torch does one of these.

use pyo3::exceptions::PyUserWarning;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyInt, PyString};

use super::lazy::{c_function, call};
use crate::error::{Error, Failure};

/// A variable of a module of torch, and its value while nothing is recorded.
struct Variable {
    module: Py<PyDict>,
    name: Py<PyString>,
    usual: Py<PyAny>,
}

/// The level of derivatives, and whether operations are dispatched to a mode of Python.
struct Variables {
    level: Variable,
    dispatched: Variable,
}

/// Refuses a tensor with a tangent, one without memory, and all where `make_fx` records. Warns where
/// `torch.jit.trace` records, as torch does.
pub(super) fn check(tensor: &Bound<'_, PyAny>, exactly: bool) -> Result<(), Failure> {
    let py = tensor.py();
    if !exactly && tensor.get_type().name()? == "FakeTensor" {
        return Err(refused("with values, got a FakeTensor", "torch.library.custom_op"));
    }
    if let Some(Variables { level, dispatched }) = Variables::of(py) {
        if !level.is_usual() {
            refuse_tangent(tensor)?;
        }
        if !dispatched.is_usual() {
            refuse_proxies(py)?;
        }
    }
    if is_traced(tensor, exactly)? { warn_of_trace(py) } else { Ok(()) }
}

/// The refusal of a tensor inside of `torch.vmap`, which stands for one of a batch and has no memory.
pub(super) fn batched(tensor: &Bound<'_, PyAny>) -> Option<Failure> {
    let functorch = tensor.py().import("torch._C._functorch").ok()?;
    let is_batched = functorch.call_method1("is_batchedtensor", (tensor,)).ok()?;
    is_batched.is_truthy().ok()?.then(|| {
        refused(
            "with memory of its own, got one of a batch inside of torch.vmap",
            "torch.library.custom_op with register_vmap, as dlfield.torch_op(run, ...) makes one",
        )
    })
}

impl Variable {
    fn find(py: Python<'_>, module: &str, name: &str) -> Option<Self> {
        let dict = py.import(module).ok()?.dict();
        let usual = match name {
            "_current_level" => PyInt::new(py, -1).into_any(), // the one object of this value
            _ => PyBool::new(py, false).to_owned().into_any(),
        };
        dict.get_item(name).ok()??;
        let name = PyString::intern(py, name).unbind();
        Some(Self { module: dict.unbind(), name, usual: usual.unbind() })
    }

    fn is_usual(&self) -> bool {
        // SAFETY: a dict and a string, with the interpreter attached. The value is compared by its
        // address alone.
        let value =
            unsafe { ffi::PyDict_GetItemWithError(self.module.as_ptr(), self.name.as_ptr()) };
        value == self.usual.as_ptr()
    }
}

impl Variables {
    fn of(py: Python<'_>) -> Option<&Self> {
        static VARIABLES: PyOnceLock<Option<Variables>> = PyOnceLock::new();
        let find = || {
            let level = Variable::find(py, "torch.autograd.forward_ad", "_current_level")?;
            let name = "_is_in_torch_dispatch_mode";
            let dispatched = Variable::find(py, "torch.utils._python_dispatch", name)?;
            Some(Self { level, dispatched })
        };
        VARIABLES.get_or_init(py, find).as_ref()
    }
}

/// In the `forward` of an autograd function torch records no tangent, and the tensor is taken.
fn refuse_tangent(tensor: &Bound<'_, PyAny>) -> Result<(), Failure> {
    let py = tensor.py();
    let recorded = py.import("torch._C")?.call_method0("_is_fwd_grad_enabled")?.is_truthy()?;
    let dual = py.import("torch.autograd.forward_ad")?.call_method1("unpack_dual", (tensor,))?;
    if !recorded || dual.getattr("tangent")?.is_none() {
        return Ok(());
    }
    Err(refused(
        "without a tangent, got a dual one of forward-mode differentiation",
        "torch.autograd.Function with a jvp, or pass the primal of \
         torch.autograd.forward_ad.unpack_dual(tensor)",
    ))
}

fn refuse_proxies(py: Python<'_>) -> Result<(), Failure> {
    let modules = py.import("sys")?.getattr("modules")?;
    let Ok(tensors) = modules.get_item("torch.fx.experimental.proxy_tensor") else { return Ok(()) };
    if tensors.call_method0("get_proxy_mode")?.is_none() {
        return Ok(());
    }
    Err(refused(
        "outside of make_fx, got one whose operations it records",
        "torch.library.custom_op",
    ))
}

fn refused(expected: &str, way_out: &str) -> Failure {
    Error::Buffer(format!(
        "torch tensor: expected one {expected}; call what uses its memory in a {way_out}"
    ))
    .into()
}

/// True while `torch.jit.trace` records: numbers of elements are tensors then.
fn is_traced(tensor: &Bound<'_, PyAny>, exactly: bool) -> PyResult<bool> {
    static NUMEL: PyOnceLock<Option<ffi::PyCFunction>> = PyOnceLock::new();
    let py = tensor.py();
    let find = || c_function(tensor, &tensor.get_type(), "numel").ok().flatten();
    match exactly.then(|| *NUMEL.get_or_init(py, find)).flatten() {
        Some(numel) => Ok(!call(numel, tensor)?.is_exact_instance_of::<PyInt>()),
        None => py.import("torch._C")?.call_method0("_is_tracing")?.is_truthy(),
    }
}

fn warn_of_trace(py: Python<'_>) -> Result<(), Failure> {
    let category = py.import("torch.jit")?.getattr("TracerWarning");
    let category = category.unwrap_or_else(|_| py.get_type::<PyUserWarning>().into_any());
    let text =
        c"torch tensor: torch.jit.trace does not record what uses its memory: values written \
                 there are constants of the trace; call it outside of the traced function";
    Ok(PyErr::warn(py, &category, text, 1)?)
}

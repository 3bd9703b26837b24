//! Bound stencils: the steps of a call (docs/stencils.md) as a row of types, each made of the one
//! before.
//!
//! ```text
//! Passed ─▶ Values ─▶ IncomingFields ─resolve─▶ Planned ─▶ Staged ─▶ Run ─▶ outcome
//!   the call   │   one array a field          HookSet: acquire ... touch, release   ▲
//!              └────────────── LastCall: the same call, its arrays at other addresses ─────────┘
//! ```

mod preset;
mod collections;
mod partial;
mod declared;
mod options;
mod scalars;
mod values;
mod rows;
mod footprint;
mod door;
mod incoming;
mod hooks;
mod runner;
mod warnings;
mod planned;
mod staged;
mod in_order;
mod run;
mod ready;
mod last_call;
mod plan;
mod running;
mod bound_stencil;
mod outline;
mod functional_plan;
mod functional;
mod next_field;
mod next_run;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("LayoutWarning", py.get_type::<warnings::LayoutWarning>())?;
    module.add("MemoryCopyWarning", py.get_type::<warnings::MemoryCopyWarning>())?;
    module.add("DeviceCopyWarning", py.get_type::<warnings::DeviceCopyWarning>())?;
    module.add_class::<preset::PyPreset>()?;
    module.add_class::<plan::PyCallPlan>()?;
    module.add_class::<plan::PyFieldPlan>()?;
    module.add_class::<plan::PyGivenArray>()?;
    module.add_class::<bound_stencil::BoundStencil>()?;
    module.add_class::<functional_plan::FunctionalPlan>()?;
    module.add_class::<next_run::NextRun>()?;
    module.add_function(wrap_pyfunction!(preset::preset, module)?)?;
    module.add_function(wrap_pyfunction!(running::is_bound_call, module)?)?;
    module.add_function(wrap_pyfunction!(functional::arguments_functional, module)?)?;
    module.add_function(wrap_pyfunction!(functional::bind_options, module)?)?;
    module.add_function(wrap_pyfunction!(functional::plan_functional, module)?)?;
    module.add_function(wrap_pyfunction!(functional::call_by_name, module)?)
}

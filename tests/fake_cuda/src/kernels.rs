//! Kernels: dlfield's own, host functions that a test registered under a kernel's name, and modules
//! of consumers. `queues` holds their launches; tests own the functions.

use std::collections::HashMap;
use std::ffi::c_void;

use crate::emulations::Known;
use crate::ffi::Handle;
use crate::memory::Memory;
use crate::status::{Outcome, Status, refuse};
use crate::words::ARGUMENT;

/// Argument of an emulation. It runs once per launch, for the whole grid.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dimensions {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
}

/// The second argument points to one pointer per kernel argument.
pub(crate) type Emulate = extern "C" fn(*const Dimensions, *const *mut c_void);

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Registered(Emulate),
    Known(Known),
}

#[derive(Clone, Debug)]
pub(crate) struct Emulation {
    pub(crate) body: Body,
    /// Sizes of the arguments, in bytes.
    pub(crate) sizes: Vec<usize>,
}

/// A launch in a stream, with a copy of its arguments.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) body: Body,
    pub(crate) dimensions: Dimensions,
    /// Units of 16 bytes, so that every argument is aligned.
    pub(crate) arguments: Vec<Vec<u128>>,
}

impl Launch {
    /// Runs a kernel of dlfield's, without callbacks. `None` for a kernel that a test registered.
    pub(crate) fn perform(&self, memory: &Memory) -> Option<Result<(), String>> {
        let Body::Known(known) = &self.body else {
            return None;
        };
        let Dimensions { grid, block, .. } = self.dimensions;
        Some(known.perform(memory, (grid, block), &self.arguments.concat()))
    }

    /// Runs a kernel that a test registered. It reaches device pointers among its arguments by
    /// `fake_cuda_reach`.
    pub(crate) fn call(mut self) {
        let Body::Registered(function) = self.body else {
            return;
        };
        let pointers: Vec<*mut c_void> =
            self.arguments.iter_mut().map(|argument| argument.as_mut_ptr().cast()).collect();
        function(&raw const self.dimensions, pointers.as_ptr());
    }
}

#[derive(Clone, Debug)]
struct Module {
    device: usize,
    /// The text of PTX. Entries of a binary are not looked up.
    text: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Function {
    module: Handle,
    pub(crate) device: usize,
    pub(crate) emulation: Emulation,
}

#[derive(Default, Debug)]
pub(crate) struct Kernels {
    /// Kernels that tests registered.
    emulations: HashMap<String, Emulation>,
    modules: HashMap<Handle, Module>,
    functions: HashMap<Handle, Function>,
}

impl Kernels {
    pub(crate) fn register(&mut self, name: String, emulation: Emulation) {
        self.emulations.insert(name, emulation);
    }

    pub(crate) fn load(&mut self, handle: Handle, device: usize, text: Option<String>) {
        self.modules.insert(handle, Module { device, text });
    }

    pub(crate) fn unload(&mut self, handle: Handle) -> Outcome {
        self.modules.remove(&handle).ok_or(Status::INVALID_HANDLE)?;
        self.functions.retain(|_, function| function.module != handle);
        Ok(())
    }

    /// Forgets modules of the context of a device.
    pub(crate) fn unload_all(&mut self, device: usize) {
        self.modules.retain(|_, module| module.device != device);
        self.functions.retain(|_, function| function.device != device);
    }

    fn emulation(&self, name: &str) -> Option<Emulation> {
        let known = |known| Emulation { body: Body::Known(known), sizes: vec![ARGUMENT] };
        self.emulations.get(name).cloned().or_else(|| Known::named(name).map(known))
    }

    /// Makes a handle for a kernel. PTX must have the entry, and there must be an emulation.
    pub(crate) fn find(&mut self, handle: Handle, module: Handle, name: &str) -> Outcome {
        let Module { device, text } = self.modules.get(&module).ok_or(Status::INVALID_HANDLE)?;
        if text.as_ref().is_some_and(|text| !has_entry(text, name)) {
            return refuse(
                Status::NOT_FOUND,
                &format!("module: expected an entry {name}, got none"),
            );
        }
        let Some(emulation) = self.emulation(name) else {
            let why = "got none; register one by fake_cuda_register_kernel";
            return refuse(
                Status::NOT_FOUND,
                &format!("kernel {name}: expected an emulation, {why}"),
            );
        };
        self.functions.insert(handle, Function { module, device: *device, emulation });
        Ok(())
    }

    pub(crate) fn function(&self, handle: Handle) -> Outcome<&Function> {
        self.functions.get(&handle).ok_or(Status::INVALID_HANDLE)
    }
}

/// True if a PTX text has an entry of this name.
fn has_entry(text: &str, name: &str) -> bool {
    let starts = |rest: &str| {
        let rest = rest.trim_start().strip_prefix(name);
        rest.is_some_and(|rest| {
            !rest.starts_with(|c: char| c.is_alphanumeric() || "_$".contains(c))
        })
    };
    text.split(".entry").skip(1).any(starts)
}

impl Dimensions {
    /// Checks the limits of a launch, which are equal for all devices.
    pub(crate) fn check(&self) -> Outcome {
        let Self { grid, block, shared_bytes } = *self;
        let threads = block.iter().map(|&n| u64::from(n)).product::<u64>();
        let fits = grid.iter().chain(&block).all(|&n| n != 0)
            && grid[0] <= 0x7fff_ffff
            && grid[1..].iter().all(|&n| n <= 65_535)
            && block[2] <= 64
            && threads <= 1024
            && shared_bytes <= 48 << 10;
        if fits {
            return Ok(());
        }
        refuse(
            Status::INVALID_VALUE,
            &format!("launch: expected sizes within the limits, got {self:?}"),
        )
    }
}

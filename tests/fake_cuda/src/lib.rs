//! A stand-in for the CUDA driver: its functions over host memory, on the worst legal schedule.
//!
//! Device memory is pages that fault when the host touches them. Asynchronous work waits in its
//! stream until a synchronisation, so that a missing event shows as stale data every time. A fault
//! of that work is reported when it runs and persists, as on a GPU. Functions that are not modelled
//! are not exported, or return "not supported": nothing reports success without doing the work.
//!
//! Settings, read once from the environment: `DLFIELD_FAKE_CUDA_DEVICES`, 1 by default and 0 for a
//! driver without a GPU; `DLFIELD_FAKE_CUDA_ARENA_GIB`, the memory of each device for the whole
//! life of the process, 4 by default; `DLFIELD_FAKE_CUDA_READABLE=1`, for consumers that read
//! device memory on the host; `DLFIELD_FAKE_CUDA_NO_MANAGED=1` and `DLFIELD_FAKE_CUDA_NO_POOLS=1`,
//! for devices without managed memory and without stream-ordered allocation.
//!
//! The modules are in the order in which a call passes them; each uses those above it.

mod status;

mod ffi;

mod threads;

mod arena;

mod memory;

mod region;

mod words;

mod elements;

mod tiles;

mod emulations;

mod kernels;

mod queues;

mod driver;

mod run;

mod submit;

mod api;

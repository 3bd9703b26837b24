//! A stand-in for the CUDA driver: its functions over host memory, on the worst legal schedule.
//!
//! Device memory is pages that fault when the host touches them. Asynchronous work waits in its
//! stream until somebody synchronises, so that a missing event shows as stale data, every time. A
//! fault of that work is reported when it runs and stays, as on a GPU. What is not modelled is not
//! exported, or answers "not supported": nothing here says success without having done it.
//!
//! Settings, read once from the environment: `DLFIELD_FAKE_CUDA_DEVICES`, 1 by default and 0 for a
//! driver without a GPU; `DLFIELD_FAKE_CUDA_ARENA_GIB`, the memory of each device that can be handed
//! out in the life of the process, 4 by default; `DLFIELD_FAKE_CUDA_READABLE=1`, for consumers that
//! peek at device memory; `DLFIELD_FAKE_CUDA_NO_MANAGED=1` and `DLFIELD_FAKE_CUDA_NO_POOLS=1`, for
//! devices without managed memory and without stream-ordered allocation.
//!
//! The order of the modules is the order in which a call travels down; each uses those above it.

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

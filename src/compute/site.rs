//! Where a function computes, and which buffers its results have (GDP-3's draft, "Mixing Devices").
//!
//! The draft lets a GPU compute with an array of the host. Here that is refused: CuPy takes no arrays of
//! NumPy, and copying one at each call would make a time loop slow without a warning.

use pyo3::prelude::*;

use super::given::Given;
use super::outputs::Output;
use crate::device::Target;
use crate::storage::Residence;

/// Where a function computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Site {
    /// The host, or a GPU by its number.
    pub(super) target: Target,
    /// The buffers of a new result: those of the storage that decides.
    pub(super) residence: Residence,
}

impl Site {
    const HOST: Self = Self { target: Target::Host, residence: Residence::Host };

    /// Chooses the place of a function of `given`, of which the first `inputs` are no mask.
    ///
    /// The first storage that is kept in step decides, else the first storage. It computes where its
    /// memory is. A pair computes on the GPU if an array is newest there; memory that CUDA manages,
    /// if a GPU can have all of them.
    ///
    /// # Errors
    /// `BufferError` for an array that is elsewhere.
    pub(super) fn choose(
        given: &[Given<'_>],
        inputs: usize,
        outputs: &[Option<Output<'_>>],
        what: &str,
    ) -> PyResult<Self> {
        let written = || outputs.iter().flatten().filter_map(Output::residence);
        let is_host = |residence| residence == Residence::Host;
        if given.iter().all(Given::is_of_host) && written().all(is_host) {
            return Ok(Self::HOST);
        }
        let all = || given.iter().take(inputs).filter_map(Given::residence).chain(written());
        let in_step =
            |one: &Residence| matches!(one, Residence::Mirrored(_) | Residence::Unified(_));
        let residence = all().find(in_step).or_else(|| all().next()).unwrap_or_default();
        let on_gpu = match residence {
            Residence::Host => false,
            Residence::Device(_) => true,
            Residence::Mirrored(_) => given.iter().any(Given::is_on_gpu),
            Residence::Unified(_) => given.iter().all(Given::is_for_gpu),
        };
        let target = if on_gpu { Target::Gpu(residence.ordinal()) } else { Target::Host };
        given.iter().try_for_each(|one| one.check_at(target, what))?;
        outputs.iter().flatten().try_for_each(|one| one.check_at(target, what))?;
        Ok(Self { target, residence })
    }
}

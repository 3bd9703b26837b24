//! Compares device, alignment and layout of an argument with what the stencil needs and prefers.

use super::placed::Placed;
use super::{Copied, Mismatch};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::field::{Dims, show_dims};
use crate::layout::{Extents, falls_along};

/// Gives the reason why the stencil gets a copy of an argument; `None`: it gets the argument.
///
/// # Errors
/// [`Error::Buffer`] if copies are not wanted, or do not help.
pub(super) fn mismatch(field: &Placed<'_>) -> Result<Option<Mismatch>> {
    let (spec, managed) = (field.stencil, &field.argument.managed);
    let on_host = managed.device().is_host();
    if let Some(Copied::ToHost(text)) = &field.argument.copied {
        return Ok(Some(Mismatch::Device(field.about(text))));
    }
    if !spec.target.reaches(managed.device()) {
        return elsewhere(field, managed.device());
    }
    let Some(text) = unusable(field) else { return Ok(None) };
    if spec.copy_memory && on_host {
        return Ok(Some(Mismatch::Memory(field.about(text))));
    }
    let way_out = if on_host {
        ", or let bind make one at each call: on_mismatch={\"memory\": \"copy\"}"
    } else {
        ""
    };
    let copy = if managed.is_aligned() && field.argument.original().is_none() {
        "dlfield.storage(x, layout=..., alignment_size=...)"
    } else {
        "x.copy()"
    };
    let text = format_args!("{text}; pass a copy, for example {copy}{way_out}");
    Err(Error::Buffer(field.about(text)))
}

/// Judges memory that the stencil does not reach. Nothing is copied from one device to another.
fn elsewhere(field: &Placed<'_>, device: Device) -> Result<Option<Mismatch>> {
    let text = format!("expected memory of {}, got {device}", field.stencil.target);
    let way_out = match (device.is_host(), field.stencil.copy_device) {
        (true, true) => return Ok(Some(Mismatch::Device(field.about(text)))),
        (true, false) => {
            "copy it there first, or let bind do so at each call: on_mismatch={\"device\": \"copy\"}"
        }
        (false, _) => "copy it there by the means of its own library",
    };
    Err(Error::Buffer(field.about(format_args!("{text}; {way_out}"))))
}

/// Refuses memory of two devices.
pub(super) fn check_one_device(placed: &[Placed<'_>]) -> Result<()> {
    let on_device = |field: &&Placed<'_>| !field.argument.managed.device().is_host();
    let mut fields = placed.iter().filter(on_device);
    let Some(first) = fields.next() else { return Ok(()) };
    let here = first.argument.managed.device();
    match fields.find(|field| field.argument.managed.device() != here) {
        None => Ok(()),
        Some(other) => Err(Error::Buffer(other.about(format_args!(
            "expected memory of {here}, as '{}' has, got {}; copy it there by the means of its own \
             library",
            first.spec.name,
            other.argument.managed.device()
        )))),
    }
}

/// Reason why the stencil cannot read the memory.
fn unusable(field: &Placed<'_>) -> Option<String> {
    let managed = &field.argument.managed;
    if let Some(original) = field.argument.original() {
        return Some(original.text.clone());
    }
    if !field.stencil.typed {
        return None; // a declared layout or alignment makes it slow at worst
    }
    if managed.is_aligned() {
        return undeclared(field);
    }
    let boundary = managed.dtype().alignment();
    Some(format!(
        "expected items aligned to {boundary} bytes, got ones {} bytes behind such a boundary",
        managed.position().checked_rem(boundary).unwrap_or(0)
    ))
}

/// The demand of the declaration that the memory does not meet.
fn undeclared(field: &Placed<'_>) -> Option<String> {
    match &field.spec.ranks {
        Some(ranks) if !is_ordered(field, ranks) => {
            let strides = field.argument.managed.layout().strides();
            Some(format!(
                "expected memory ordered as {:?}, got strides of {:?} elements",
                ranks.as_slice(),
                field.in_declared_order(strides).as_slice()
            ))
        }
        _ => gapped(field).or_else(|| misplaced(field)),
    }
}

/// Describes memory without the stride of 1 that the stencil was compiled for.
fn gapped(field: &Placed<'_>) -> Option<String> {
    let axis = field.spec.unit?;
    let strides = field.in_declared_order(field.argument.managed.layout().strides());
    let (dim, stride) = (field.spec.dims.get(axis)?, strides.get(axis)?);
    (*stride != 1).then(|| {
        format!(
            "expected a stride of 1 along {dim}, for which '{}' is compiled, got strides of {:?} \
             elements",
            field.stencil.name,
            strides.as_slice()
        )
    })
}

/// Describes rows whose first point of the domain is off the boundary that the declaration demands.
fn misplaced(field: &Placed<'_>) -> Option<String> {
    let wanted = field.spec.alignment;
    if wanted <= 1 {
        return None;
    }
    let managed = &field.argument.managed;
    let (layout, index) = (managed.layout(), field.in_own_order(&field.origin));
    (!layout.rows_are_on_boundary(managed.position(), &index, wanted)).then(|| {
        format!(
            "expected the first point of the domain in every row on a boundary of {wanted} bytes, \
             got one {} bytes behind such a boundary and strides of {:?} bytes",
            layout.bytes_behind_boundary(managed.position(), &index, wanted),
            layout.byte_strides()
        )
    })
}

fn is_ordered(field: &Placed<'_>, ranks: &Extents) -> bool {
    let layout = field.argument.managed.layout();
    let (shape, strides) = (layout.shape(), layout.strides());
    let extent_and_stride = |&axis: &usize| Some((*shape.get(axis)?, *strides.get(axis)?));
    falls_along(ranks, field.axes.iter().filter_map(extent_and_stride))
}

/// The reason why an argument makes the call slow: memory that is not in the order with which the
/// backend is fast, or an unmet demand of the declaration if the backend reads any memory.
pub(super) fn slow(field: &Placed<'_>) -> Option<String> {
    let spec = field.stencil;
    if !spec.typed
        && let Some(text) = undeclared(field)
    {
        return Some(field.about(text + "; slower than it could be"));
    }
    let fast = field.spec.fast.as_ref().filter(|_| field.spec.ranks.is_none())?;
    if is_ordered(field, fast) {
        return None;
    }
    let layout = field.argument.managed.layout().permute(&field.axes).ok()?;
    let own = field.in_own_order(fast);
    let ranks = own.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let way_out = match field.spec.access.writes() {
        true => format!("make it with layout=({ranks})"),
        false => format!(
            "dlfield.storage({}, layout=({ranks})) is a copy in that order",
            field.spec.name
        ),
    };
    Some(field.about(format_args!(
        "expected memory in the order {}, largest stride first, with which '{}' is fast{}, got {}; {}",
        by_rank(&field.spec.dims, fast),
        spec.backend,
        measured(spec.backend),
        by_rank(&field.spec.dims, &layout.ranks(&[])), // no strides: the text is the same for every size
        way_out
    )))
}

/// How much faster a backend was with its own order than with the reverse, dace:cpu than with I, J, K:
/// a Laplacian along I and J of 164,000 to 3.9 million float64 points, on an AMD EPYC.
const MEASURED: [(&str, &str); 4] = [
    ("numpy", "1.2 to 1.8"),
    ("dace:cpu", "1.1 to 3.9"),
    ("gt:cpu_kfirst", "8 to 11"),
    ("gt:cpu_ifirst", "8 to 13"),
];

fn measured(backend: &str) -> String {
    let known = MEASURED.iter().find(|(name, _)| *name == backend);
    known.map_or_else(String::new, |(_, factor)| format!(" ({factor} times, measured)"))
}

/// The names of dimensions in the order of memory.
fn by_rank(dims: &Dims, ranks: &[i64]) -> String {
    let mut ranked: Vec<_> = ranks.iter().zip(dims).collect();
    ranked.sort_by_key(|(rank, _)| **rank);
    show_dims(&ranked.into_iter().map(|(_, dim)| dim.clone()).collect::<Dims>())
}

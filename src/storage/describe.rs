//! A storage as text.

use std::fmt;

use super::{Residence, Storage};
use crate::device::{Device, DeviceKind};
use crate::field::show_dims;
use crate::sync::Dirty;

/// One line about the storage, without its values: the first line of the Python `repr`.
impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (memory, field) = (self.managed(), self.field());
        let shape = tuple(memory.layout().shape());
        write!(f, "shape={shape}, dtype={}", memory.dtype())?;
        if let Some(dims) = &field.dims {
            write!(f, ", dims={}", show_dims(dims))?;
        }
        match &field.halo {
            Some(halo) if halo.iter().all(|&width| width == (0, 0)) => {}
            Some(halo) => {
                let widths = halo.iter().map(|(low, high)| format!("({low}, {high})"));
                write!(f, ", halo={}", tuple(widths))?;
            }
            None => f.write_str(", halo=None")?,
        }
        write!(f, ", layout={}", tuple(self.ranks()))?;
        if field.alignment > 1 {
            write!(f, ", alignment_size={}", field.alignment)?;
        }
        let device = match self.residence() {
            Residence::Mirrored(ordinal) => Device { kind: DeviceKind::Cuda, ordinal },
            _ => memory.device(),
        };
        write!(f, ", device={device}")?;
        f.write_str(match self.sync_state().map(|state| state.dirty()) {
            Some(Dirty::Neither) => ", in sync",
            Some(Dirty::Host) => ", host modified",
            Some(Dirty::Device) => ", device modified",
            None => "",
        })?;
        f.write_str(if memory.readonly() { ", readonly" } else { "" })
    }
}

/// As Python prints a tuple.
fn tuple(entries: impl IntoIterator<Item = impl ToString>) -> String {
    let shown: Vec<_> = entries.into_iter().map(|entry| entry.to_string()).collect();
    match shown.as_slice() {
        [one] => format!("({one},)"),
        all => format!("({})", all.join(", ")),
    }
}

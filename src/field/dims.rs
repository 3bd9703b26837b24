//! Names of dimensions.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::{Error, did_you_mean, quoted_name, shown_name};

/// The meaning of one dimension.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Dim {
    /// First horizontal dimension of GT4Py's cartesian grid.
    I,
    /// Second horizontal dimension.
    J,
    /// Vertical dimension.
    K,
    /// Data dimension with its number, written in decimal ("0", "1", ...).
    Data(u32),
    /// Any other name, such as "Cell" or "lon".
    Named(Arc<str>),
}

/// Names of the dimensions, in the order of the axes.
pub type Dims = SmallVec<[Dim; 4]>;

impl Dim {
    /// Reads a name. Every text is a valid name: any but I, J, K or a decimal becomes `Named`.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let decimal = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        match (name, name.parse::<u32>()) {
            ("I", _) => Self::I,
            ("J", _) => Self::J,
            ("K", _) => Self::K,
            (_, Ok(number)) if decimal && (name == "0" || !name.starts_with('0')) => {
                Self::Data(number)
            }
            _ => Self::Named(name.into()),
        }
    }

    /// Placeholder for the name of an unnamed axis, as in xarray: `dim_0` for the first axis.
    #[must_use]
    pub fn unnamed(axis: usize) -> Self {
        Self::Named(format!("dim_{axis}").into())
    }

    /// True if this is the placeholder of an unnamed axis.
    #[must_use]
    pub fn is_unnamed(&self, axis: usize) -> bool {
        let Self::Named(name) = self else { return false };
        name.strip_prefix("dim_").is_some_and(|number| number == axis.to_string())
    }

    /// Position in GT4Py's order of dimensions.
    pub(super) fn rank(&self) -> (u8, u32) {
        match self {
            Self::I => (0, 0),
            Self::J => (1, 0),
            Self::K => (2, 0),
            Self::Data(number) => (3, *number),
            Self::Named(_) => (4, 0),
        }
    }

    /// The name as messages show it, without quotes.
    pub(crate) fn shown(&self) -> String {
        shown_name(&self.to_string()).into_owned()
    }

    /// True if GT4Py's cartesian stencils know the name.
    #[must_use]
    pub fn is_gt4py(&self) -> bool {
        !matches!(self, Self::Named(_))
    }
}

impl From<&str> for Dim {
    fn from(name: &str) -> Self {
        Self::from_name(name)
    }
}

impl From<&Self> for Dim {
    fn from(dim: &Self) -> Self {
        dim.clone()
    }
}

impl PartialEq<str> for Dim {
    fn eq(&self, name: &str) -> bool {
        *self == Self::from_name(name)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::I => f.write_str("I"),
            Self::J => f.write_str("J"),
            Self::K => f.write_str("K"),
            Self::Data(number) => write!(f, "{number}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

/// Names for additional data dimensions, numbered after the existing ones.
pub(crate) fn further_data_dims(dims: &[Dim]) -> impl Iterator<Item = Dim> + use<> {
    let numbers = dims.iter().filter_map(|dim| match dim {
        Dim::Data(number) => number.checked_add(1),
        _ => None,
    });
    (numbers.max().unwrap_or(0)..=u32::MAX).map(Dim::Data)
}

/// Formats names for messages, as a Python tuple prints them.
#[must_use]
pub(crate) fn show_dims(dims: &[Dim]) -> String {
    let quoted: Vec<String> = dims.iter().map(|dim| quoted_name(&dim.to_string())).collect();
    match quoted.as_slice() {
        [one] => format!("({one},)"),
        all => format!("({})", all.join(", ")),
    }
}

/// The refusal of a name that is not among those of `dims`; `got` is as messages show it.
pub(crate) fn unknown_dim(what: &str, got: &str, dims: &[Dim]) -> Error {
    let names: Vec<String> = dims.iter().map(Dim::to_string).collect();
    let way_out = did_you_mean(got.trim_matches('\''), names.iter().map(String::as_str));
    let way_out = way_out.unwrap_or_else(|| "use one of them".into());
    let known = show_dims(dims);
    Error::Argument(format!("{what}: expected one of {known}, got {got}; {way_out}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_as_it_was_read() {
        for name in ["I", "J", "K", "0", "12", "Cell", "i", "", "007", "4294967296", "1.5"] {
            assert_eq!(Dim::from_name(name).to_string(), name);
        }
        assert_eq!(Dim::from_name("12"), Dim::Data(12));
        assert!(!Dim::from_name("007").is_gt4py() && !Dim::from_name("i").is_gt4py());
    }
}

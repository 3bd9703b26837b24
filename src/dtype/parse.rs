//! Reading the spellings that have a grammar: typestr and PEP 3118 format.

use super::{ACCEPTED, DType, find};
use crate::error::{Error, Result};

impl DType {
    /// Parses an array interface `typestr` such as `<f8`.
    ///
    /// # Errors
    /// [`Error::Argument`] where it is no typestr, [`Error::Buffer`] for a type or a byte order
    /// that a storage cannot hold. `O` in particular: such a pointer could be forged.
    pub fn from_typestr(text: &str) -> Result<Self> {
        let (order, kind, size) = split_typestr(text).ok_or_else(|| {
            Error::Argument(format!(
                "typestr: expected an order, a kind and a size as in '<f8', got '{text}'"
            ))
        })?;
        let body = text.get(order.len()..).unwrap_or_default();
        let dtype = find(|row| row.typestr == Some(body));
        let dtype = dtype.filter(|_| kind != "O").ok_or_else(|| unusable("typestr", text))?;
        check_order(text, is_foreign(order) || order == "|", size)?;
        Ok(dtype)
    }

    /// Parses a PEP 3118 `format` for one item of `itemsize` bytes.
    ///
    /// # Errors
    /// [`Error::Buffer`] for a format that is no single native number, or whose size is not
    /// `itemsize`.
    pub fn from_format(format: &str, itemsize: usize) -> Result<Self> {
        let order = format.get(..1).filter(|c| ["@", "=", "<", ">", "!", "^"].contains(c));
        let body = format.get(order.map_or(0, str::len)..).unwrap_or_default();
        let native = matches!(order, None | Some("@" | "^"));
        let (kind, size) =
            format_code(body, native).ok_or_else(|| unusable("buffer format", format))?;
        check_order(format, order.is_some_and(is_foreign), size)?;
        if size != itemsize {
            return Err(Error::Buffer(format!(
                "buffer format: expected items of {size} bytes as '{format}' says, got itemsize {itemsize}"
            )));
        }
        find(|row| row.code == kind && usize::from(row.bits / 8) == size)
            .ok_or_else(|| unusable("buffer format", format))
    }
}

/// Order, kind and size of a typestr (NumPy's reference, "The array interface protocol").
fn split_typestr(text: &str) -> Option<(&str, &str, usize)> {
    let (order, body) = text.split_at_checked(1)?;
    let (kind, rest) = body.split_at_checked(1)?;
    let digits = rest.split('[').next()?; // a unit of time may follow
    let known = ["<", ">", "=", "|"].contains(&order) && "tbiufcmMOSUV".contains(kind);
    if known { Some((order, kind, digits.parse().ok()?)) } else { None }
}

fn is_foreign(order: &str) -> bool {
    let foreign: &[&str] = if cfg!(target_endian = "little") { &[">", "!"] } else { &["<"] };
    foreign.contains(&order)
}

fn check_order(text: &str, foreign: bool, size: usize) -> Result<()> {
    if foreign && size > 1 {
        return Err(Error::Buffer(format!(
            "dtype '{text}': expected native byte order, got byte-swapped items; convert with \
             x.astype(x.dtype.newbyteorder('='))"
        )));
    }
    Ok(())
}

fn unusable(what: &str, text: &str) -> Error {
    Error::Buffer(format!("{what}: {ACCEPTED}, got '{text}'; convert with astype(...)"))
}

/// DLPack code and size in bytes of one `struct` character; `l`, `L` shrink in standard sizes.
fn format_code(body: &str, native: bool) -> Option<(u8, usize)> {
    let long = if native { size_of::<std::ffi::c_long>() } else { 4 };
    Some(match body {
        "?" => (6, 1),
        "b" => (0, 1),
        "h" => (0, 2),
        "i" => (0, 4),
        "l" => (0, long),
        "q" => (0, 8),
        "n" if native => (0, size_of::<isize>()),
        "B" => (1, 1),
        "H" => (1, 2),
        "I" => (1, 4),
        "L" => (1, long),
        "Q" => (1, 8),
        "N" if native => (1, size_of::<usize>()),
        "e" => (2, 2),
        "f" => (2, 4),
        "d" => (2, 8),
        "Zf" | "F" => (5, 8),
        "Zd" | "D" => (5, 16),
        _ => return None,
    })
}

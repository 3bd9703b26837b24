//! Parses the spellings that have a grammar: typestr and PEP 3118 format.

use super::table::{ACCEPTED, DType, LONG_IS_64, find};
use crate::error::{Error, Result, shortened};

impl DType {
    /// Parses an array interface `typestr` such as `<f8`.
    ///
    /// # Errors
    /// [`Error::Argument`] if the text is not a typestr; [`Error::Buffer`] for a type or a byte
    /// order that a storage cannot hold. `O` is among these: such a pointer could be forged.
    pub fn from_typestr(text: &str) -> Result<Self> {
        let (order, kind, size) = split_typestr(text).ok_or_else(|| {
            Error::Argument(format!(
                "typestr: expected an order, a kind and a size as in '<f8', got '{}'",
                shortened(text)
            ))
        })?;
        let body = text.get(order.len()..).unwrap_or_default();
        let dtype = find(|row| row.typestr == Some(body));
        let dtype = dtype.filter(|_| kind != "O").ok_or_else(|| unusable("typestr", text))?;
        check_order(text, is_foreign(order), size)?; // "|" is native, as NumPy reads it
        Ok(dtype)
    }

    /// Parses a PEP 3118 `format` for one item of `itemsize` bytes.
    ///
    /// # Errors
    /// [`Error::Buffer`] for a format that is not a single native number, or whose size differs
    /// from `itemsize`.
    pub fn from_format(format: &str, itemsize: usize) -> Result<Self> {
        let body = format.strip_prefix(['@', '=', '<', '>', '!', '^']).unwrap_or(format);
        let order = format.strip_suffix(body).unwrap_or_default();
        let native = matches!(order, "" | "@" | "^");
        let dtype = of_format(body, native).ok_or_else(|| unusable("buffer format", format))?;
        let size = dtype.itemsize();
        check_order(format, is_foreign(order), size)?;
        if size != itemsize {
            return Err(Error::Buffer(format!(
                "buffer format: expected items of {size} bytes as '{format}' says, got itemsize \
                 {itemsize}"
            )));
        }
        Ok(dtype)
    }
}

/// Order, kind and size of a typestr (NumPy's reference, "The array interface protocol").
fn split_typestr(text: &str) -> Option<(&str, &str, usize)> {
    let (order, body) = text.split_at_checked(1)?;
    let (kind, rest) = body.split_at_checked(1)?;
    let digits = rest.split('[').next()?; // drops a unit of time
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
    let way_out = match text.trim_start().starts_with("T{") {
        true => "pass a copy of one of its fields, such as x['name'].copy()",
        false => "convert with astype(...)",
    };
    Error::Buffer(format!("{what}: {ACCEPTED}, got '{}'; {way_out}", shortened(text)))
}

/// The type of a `struct` character. `l` and `L` shrink in standard sizes, which have no `n` and `N`.
fn of_format(body: &str, native: bool) -> Option<DType> {
    let (int, long) = ((DType::Int32, DType::UInt32), (DType::Int64, DType::UInt64));
    let c_long = if native && LONG_IS_64 { long } else { int };
    let c_size = if size_of::<usize>() == 8 { long } else { int };
    match body {
        "l" => Some(c_long.0),
        "L" => Some(c_long.1),
        "n" if native => Some(c_size.0),
        "N" if native => Some(c_size.1),
        "q" => Some(DType::Int64),
        "Q" => Some(DType::UInt64),
        "F" => Some(DType::Complex64),
        "D" => Some(DType::Complex128),
        _ => find(|row| row.format.is_some_and(|format| format.to_bytes() == body.as_bytes())),
    }
}

//! What a field says of itself in the metadata of its schema: JSON, by whomever.

use serde_json::{Map, Value, json};
use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::field::{Dim, Dims, Halo};
use crate::layout::Extents;

/// The parameters of `arrow.fixed_shape_tensor`: `shape` and `dim_names` in the order of memory, and where in
/// it each axis of the tensor is (Arrow columnar format, "Fixed shape tensor").
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tensor {
    pub(super) shape: Extents,
    pub(super) dims: Option<Dims>,
    pub(super) permutation: SmallVec<[usize; 4]>,
}

/// What dlfield says of a field as a whole, in the order of its own axes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) shape: Extents,
    /// The axis that the list runs along.
    pub(super) axis: usize,
    pub(super) dims: Option<Dims>,
    pub(super) halo: Option<Halo>,
    pub(super) origin: Option<Extents>,
}

impl Tensor {
    pub(super) fn to_json(&self) -> String {
        let mut object = Map::new();
        object.insert("shape".into(), json!(self.shape.as_slice()));
        if let Some(dims) = &self.dims {
            object.insert("dim_names".into(), names(dims));
        }
        if !self.permutation.iter().copied().eq(0..self.shape.len()) {
            object.insert("permutation".into(), json!(self.permutation.as_slice()));
        }
        Value::Object(object).to_string()
    }

    /// # Errors
    /// [`Error::Buffer`] for what is no such JSON.
    pub(super) fn from_json(text: &[u8]) -> Result<Self> {
        let object = Object::read("arrow.fixed_shape_tensor", text)?;
        let shape =
            object.numbers("shape")?.ok_or_else(|| object.wrong("shape", "a list of extents"))?;
        let dims = object.dims("dim_names")?;
        // Some writers of arrow-rs use the plural, which others then overlook.
        let order = match (object.numbers("permutation")?, object.numbers("permutations")?) {
            (Some(one), Some(other)) if one != other => {
                return Err(object.wrong("permutation", "one permutation"));
            }
            (one, other) => one.or(other),
        };
        let permutation = match order {
            None => (0..shape.len()).collect(),
            Some(order) => permutation(&order, shape.len())
                .ok_or_else(|| object.wrong("permutation", "each axis of the shape once"))?,
        };
        if shape.iter().any(|extent| *extent < 0) {
            return Err(object.wrong("shape", "extents of at least 0"));
        }
        if dims.as_ref().is_some_and(|dims| dims.len() != shape.len()) {
            return Err(object.wrong("dim_names", "a name for each axis of the shape"));
        }
        Ok(Self { shape, dims, permutation })
    }
}

impl Whole {
    pub(super) fn to_json(&self) -> String {
        let mut object = Map::new();
        object.insert("shape".into(), json!(self.shape.as_slice()));
        object.insert("axis".into(), json!(self.axis));
        if let Some(dims) = &self.dims {
            object.insert("dims".into(), names(dims));
        }
        if let Some(halo) = &self.halo {
            object.insert("halo".into(), json!(halo.as_slice()));
        }
        if let Some(origin) = &self.origin {
            object.insert("default_origin".into(), json!(origin.as_slice()));
        }
        Value::Object(object).to_string()
    }

    /// # Errors
    /// [`Error::Buffer`] for what is no such JSON.
    pub(super) fn from_json(text: &[u8]) -> Result<Self> {
        let object = Object::read("dlfield", text)?;
        let shape =
            object.numbers("shape")?.ok_or_else(|| object.wrong("shape", "a list of extents"))?;
        let axis =
            object.get("axis").and_then(Value::as_u64).and_then(|axis| usize::try_from(axis).ok());
        let axis = axis
            .filter(|axis| *axis < shape.len())
            .ok_or_else(|| object.wrong("axis", "an axis of the shape"))?;
        if shape.iter().any(|extent| *extent < 0) {
            return Err(object.wrong("shape", "extents of at least 0"));
        }
        let dims = object.dims("dims")?;
        let halo = match object.get("halo") {
            None => None,
            Some(value) => {
                Some(halo(value).ok_or_else(|| object.wrong("halo", "a list of pairs of widths"))?)
            }
        };
        Ok(Self { shape, axis, dims, halo, origin: object.numbers("default_origin")? })
    }
}

struct Object {
    about: &'static str,
    map: Map<String, Value>,
}

impl Object {
    fn read(about: &'static str, text: &[u8]) -> Result<Self> {
        match serde_json::from_slice(text) {
            Ok(Value::Object(map)) => Ok(Self { about, map }),
            _ => Err(Error::Buffer(format!(
                "metadata of {about}: expected a JSON object, got {:?}; remove the metadata",
                shortened(&String::from_utf8_lossy(text))
            ))),
        }
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    fn wrong(&self, key: &str, expected: &str) -> Error {
        let got = self.map.get(key).map_or_else(|| "nothing".into(), ToString::to_string);
        Error::Buffer(format!(
            "metadata of {}: expected {expected} for '{key}', got {}; remove the metadata",
            self.about,
            shortened(&got)
        ))
    }

    fn numbers(&self, key: &str) -> Result<Option<Extents>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        numbers(value).map(Some).ok_or_else(|| self.wrong(key, "a list of numbers"))
    }

    fn dims(&self, key: &str) -> Result<Option<Dims>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let names = value.as_array().into_iter().flatten().map(Value::as_str);
        let names: Option<Dims> = names.map(|name| name.map(Dim::from_name)).collect();
        let names = names.filter(|_| value.is_array());
        names.map(Some).ok_or_else(|| self.wrong(key, "a list of names"))
    }
}

fn names(dims: &[Dim]) -> Value {
    Value::Array(dims.iter().map(|dim| Value::String(dim.to_string())).collect())
}

fn numbers(value: &Value) -> Option<Extents> {
    value.as_array()?.iter().map(Value::as_i64).collect()
}

fn halo(value: &Value) -> Option<Halo> {
    let width = |pair: &Value| {
        let pair = numbers(pair)?;
        let [low, high] = pair.as_slice() else { return None };
        Some((*low, *high))
    };
    value.as_array()?.iter().map(width).collect()
}

fn permutation(order: &[i64], length: usize) -> Option<SmallVec<[usize; 4]>> {
    let order: Option<SmallVec<[usize; 4]>> =
        order.iter().map(|axis| usize::try_from(*axis).ok()).collect();
    let order = order.filter(|order| order.len() == length)?;
    (0..length).all(|axis| order.contains(&axis)).then_some(order)
}

/// As much of somebody's text as a message can bear.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    fn tensor(text: &str) -> Result<Tensor> {
        Tensor::from_json(text.as_bytes())
    }

    #[test]
    fn a_tensor_reads_what_it_writes() {
        let dims = Some(["J", "x y", "0"].map(Dim::from_name).into_iter().collect());
        let one = Tensor { shape: smallvec![5, 0, 7], dims, permutation: smallvec![2, 0, 1] };
        assert_eq!(tensor(&one.to_json()), Ok(one));
    }

    #[test]
    fn a_field_reads_what_it_writes() {
        let one = Whole {
            shape: smallvec![5, 6],
            axis: 1,
            dims: None,
            halo: Some(smallvec![(1, 2), (0, 0)]),
            origin: Some(smallvec![3, 4]),
        };
        assert_eq!(Whole::from_json(one.to_json().as_bytes()), Ok(one));
    }

    #[test]
    fn the_order_of_memory_needs_no_permutation() {
        let one = Tensor { shape: smallvec![5, 6], dims: None, permutation: smallvec![0, 1] };
        assert_eq!(one.to_json(), r#"{"shape":[5,6]}"#);
    }

    #[test]
    fn the_plural_of_permutation_is_read_too() {
        let read = tensor(r#"{"shape": [5, 6], "permutations": [1, 0]}"#).unwrap();
        assert_eq!(read.permutation.as_slice(), [1, 0]);
        assert!(
            tensor(r#"{"shape": [5, 6], "permutation": [0, 1], "permutations": [1, 0]}"#).is_err()
        );
    }

    #[test]
    fn garbage_is_named_in_the_error() {
        for (text, named) in [
            ("", "a JSON object"),
            ("[3]", "a JSON object"),
            (r#"{"shape": 3}"#, "'shape'"),
            (r#"{"shape": [3.5]}"#, "'shape'"),
            (r#"{"shape": [-3]}"#, "'shape'"),
            (r#"{"shape": [3], "dim_names": ["x", "y"]}"#, "'dim_names'"),
            (r#"{"shape": [3], "dim_names": [3]}"#, "'dim_names'"),
            (r#"{"shape": [3, 4], "permutation": [1, 1]}"#, "'permutation'"),
            (r#"{"shape": [3, 4], "permutation": [0]}"#, "'permutation'"),
        ] {
            let error = tensor(text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
        let whole = |text: &str| Whole::from_json(text.as_bytes()).unwrap_err().to_string();
        assert!(whole(r#"{"shape": [3], "axis": 1}"#).contains("'axis'"));
        assert!(whole(r#"{"shape": [3], "axis": 0, "halo": [[1]]}"#).contains("'halo'"));
    }
}

//! Metadata of a field in its schema, as JSON. Any producer may write it.

use serde_json::{Map, Value, json};
use smallvec::SmallVec;

use crate::error::{Error, Result, quoted, shortened};
use crate::field::{Dim, Dims, Halo};
use crate::layout::Extents;

/// Parameters of `arrow.fixed_shape_tensor`: `shape` and `dim_names` in the order of memory, and
/// the position there of each axis of the tensor (Arrow columnar format, "Fixed shape tensor").
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tensor {
    pub(super) shape: Extents,
    pub(super) dims: Option<Dims>,
    pub(super) permutation: SmallVec<[usize; 4]>,
}

/// dlfield's own metadata: the whole field, in the order of its axes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FieldMetadata {
    pub(super) shape: Extents,
    /// Axis of the list.
    pub(super) axis: usize,
    pub(super) dims: Option<Dims>,
    pub(super) halo: Option<Halo>,
    pub(super) origin: Option<Extents>,
}

impl Tensor {
    pub(super) fn to_json(&self) -> String {
        let in_order = self.permutation.iter().copied().eq(0..self.shape.len());
        to_json([
            ("shape", Some(json!(self.shape.as_slice()))),
            ("dim_names", self.dims.as_ref().map(names)),
            ("permutation", (!in_order).then(|| json!(self.permutation.as_slice()))),
        ])
    }

    /// Parses untrusted JSON.
    pub(super) fn from_json(text: &[u8]) -> Result<Self> {
        let object = Object::read("arrow.fixed_shape_tensor", text)?;
        let shape = object.shape()?;
        let dims = object.dims("dim_names")?;
        // Some writers of arrow-rs use the plural, which other readers overlook.
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
        if dims.as_ref().is_some_and(|dims| dims.len() != shape.len()) {
            return Err(object.wrong("dim_names", "a name for each axis of the shape"));
        }
        Ok(Self { shape, dims, permutation })
    }
}

impl FieldMetadata {
    pub(super) fn to_json(&self) -> String {
        to_json([
            ("shape", Some(json!(self.shape.as_slice()))),
            ("axis", Some(json!(self.axis))),
            ("dims", self.dims.as_ref().map(names)),
            ("halo", self.halo.as_ref().map(|halo| json!(halo.as_slice()))),
            ("default_origin", self.origin.as_ref().map(|origin| json!(origin.as_slice()))),
        ])
    }

    /// Parses untrusted JSON.
    pub(super) fn from_json(text: &[u8]) -> Result<Self> {
        let object = Object::read("dlfield", text)?;
        let shape = object.shape()?;
        let axis = object.get("axis").and_then(Value::as_u64);
        let axis = axis.and_then(|axis| usize::try_from(axis).ok());
        let axis = axis
            .filter(|axis| *axis < shape.len())
            .ok_or_else(|| object.wrong("axis", "an axis of the shape"))?;
        let dims = object.dims("dims")?;
        let halo = object.entry("halo", "a list of pairs of widths", halo)?;
        Ok(Self { shape, axis, dims, halo, origin: object.numbers("default_origin")? })
    }
}

/// A JSON object of the entries that have a value.
fn to_json<const N: usize>(entries: [(&str, Option<Value>); N]) -> String {
    let entries = entries.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(entries.collect()).to_string()
}

/// A JSON object, and its name for messages.
struct Object {
    about: &'static str,
    map: Map<String, Value>,
}

impl Object {
    fn read(about: &'static str, text: &[u8]) -> Result<Self> {
        match serde_json::from_slice(text) {
            Ok(Value::Object(map)) => Ok(Self { about, map }),
            _ => Err(Error::Buffer(format!(
                "metadata of {about}: expected a JSON object, got {}; remove the metadata",
                quoted(&String::from_utf8_lossy(text))
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

    fn entry<T>(
        &self,
        key: &str,
        expected: &str,
        read: fn(&Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let value = self.get(key);
        value.map(|value| read(value).ok_or_else(|| self.wrong(key, expected))).transpose()
    }

    fn numbers(&self, key: &str) -> Result<Option<Extents>> {
        self.entry(key, "a list of numbers", numbers)
    }

    fn shape(&self) -> Result<Extents> {
        let shape = self.numbers("shape")?;
        let shape = shape.filter(|shape| shape.iter().all(|extent| *extent >= 0));
        shape.ok_or_else(|| self.wrong("shape", "a list of extents of at least 0"))
    }

    fn dims(&self, key: &str) -> Result<Option<Dims>> {
        self.entry(key, "a list of names", |value| {
            value.as_array()?.iter().map(|name| name.as_str().map(Dim::from_name)).collect()
        })
    }
}

fn names(dims: &Dims) -> Value {
    dims.iter().map(Dim::to_string).collect()
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
        let one = FieldMetadata {
            shape: smallvec![5, 6],
            axis: 1,
            dims: None,
            halo: Some(smallvec![(1, 2), (0, 0)]),
            origin: Some(smallvec![3, 4]),
        };
        assert_eq!(FieldMetadata::from_json(one.to_json().as_bytes()), Ok(one));
    }

    #[test]
    fn the_order_of_memory_is_written_without_a_permutation() {
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
    fn an_error_names_the_invalid_entry() {
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
        let whole = |text: &str| FieldMetadata::from_json(text.as_bytes()).unwrap_err().to_string();
        assert!(whole(r#"{"shape": [3], "axis": 1}"#).contains("'axis'"));
        assert!(whole(r#"{"shape": [3], "axis": 0, "halo": [[1]]}"#).contains("'halo'"));
    }
}

//! Describing a fresh storage, one request after the other.

use super::{ManagedBy, Order, Residence, Spec, Storage};
use crate::alloc::Fill;
use crate::device::Target;
use crate::dtype::DType;
use crate::element::{Element, bytes_of};
use crate::error::{Error, Result};
use crate::field::{Dim, Field};
use crate::layout::Extents;
use crate::managed::Managed;
use crate::preset::Preset;

/// Requests for a fresh storage, from [`Storage::builder`]. The call that allocates refuses
/// requests that cannot be met.
///
/// # Example
///
/// ```
/// use dlfield::Storage;
///
/// let field = Storage::builder([70, 70, 40])
///     .dims(["I", "J", "K"])
///     .halo([(3, 3), (3, 3), (0, 0)])
///     .backend("gt:cpu_ifirst")
///     .zeros::<f64>()?;
/// assert_eq!(field.managed().layout().strides(), [1, 70, 4900]); // in elements: I is contiguous
/// assert_eq!(field.domain_view()?.shape(), [64, 64, 40]);
///
/// let error = Storage::builder([4]).dims(["I", "J"]).zeros::<f64>().unwrap_err();
/// assert!(error.to_string().starts_with("dims: expected one entry for each of the 1 dimensions"));
/// # Ok::<(), dlfield::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is allocated before zeros, ones, full or like them"]
pub struct Builder(Result<(Extents, Spec)>);

impl Storage {
    /// Starts the description of a fresh storage; the shape is in elements. By default it is in C
    /// order, without names and halo, in host memory whose first element lies on a boundary of 64
    /// bytes.
    pub fn builder<N: TryInto<i64>>(shape: impl IntoIterator<Item = N>) -> Builder {
        Builder(numbers("shape", shape).map(|shape| (shape, Spec::default())))
    }

    /// As [`Storage::builder`], with the shape, names, halo and order in memory of this storage.
    pub fn like(&self) -> Builder {
        Builder::like(self.managed(), &self.field())
    }
}

impl Builder {
    /// Describes a field like another.
    pub(crate) fn like(memory: &Managed, field: &Field) -> Self {
        let ranks = memory.layout().ranks(field.order.as_deref().unwrap_or_default());
        let (dims, halo, origin) = (field.dims.clone(), field.halo.clone(), field.origin.clone());
        let labels = Field { dims, halo, origin, ..Field::default() };
        let spec = Spec { layout: Order::Ranks(ranks), ..Spec::like(labels, Residence::default()) };
        Self(Ok((memory.layout().shape().into(), spec)))
    }

    /// Records a value, or the first error.
    fn with<V>(self, value: Result<V>, put: impl FnOnce(&mut Spec, V)) -> Self {
        Self(self.0.and_then(|(shape, mut spec)| {
            put(&mut spec, value?);
            Ok((shape, spec))
        }))
    }

    /// Names of the dimensions, in the order of the shape.
    pub fn dims<D: Into<Dim>>(self, names: impl IntoIterator<Item = D>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        self.with(Ok(names), |spec, names| spec.field.dims = Some(names))
    }

    /// Points at the lower and upper end of each dimension that lie outside the domain.
    pub fn halo<N: TryInto<i64>>(self, widths: impl IntoIterator<Item = (N, N)>) -> Self {
        let width = |(low, high)| Ok((number("halo", low)?, number("halo", high)?));
        self.with(widths.into_iter().map(width).collect(), |spec, halo| {
            spec.unknown_halo = false;
            spec.field.halo = Some(halo);
        })
    }

    /// Rank of each dimension in memory, 0 = the largest stride.
    pub fn layout<N: TryInto<i64>>(self, ranks: impl IntoIterator<Item = N>) -> Self {
        self.with(numbers("layout", ranks), |spec, ranks| spec.layout = Order::Ranks(ranks))
    }

    /// Boundary in bytes for the aligned element of every row; rows are padded for it.
    pub fn alignment(self, bytes: usize) -> Self {
        self.with(Ok(bytes), |spec, bytes| spec.alignment = Some(bytes))
    }

    /// Index of the element that rows are aligned at, instead of the first one inside the halo.
    pub fn aligned_index<N: TryInto<i64>>(self, index: impl IntoIterator<Item = N>) -> Self {
        let index = numbers("aligned_index", index);
        self.with(index, |spec, index| spec.field.aligned_index = Some(index))
    }

    /// Layout, alignment and device that suit a backend of GT4Py. Other requests override them.
    pub fn backend(self, name: &str) -> Self {
        self.with(Preset::from_name(name), |spec, preset| spec.preset = Some(preset))
    }

    /// Default origin of stencils, in the order I, J, K, data dimensions.
    pub fn default_origin<N: TryInto<i64>>(self, origin: impl IntoIterator<Item = N>) -> Self {
        let origin = numbers("default_origin", origin);
        self.with(origin, |spec, origin| spec.field.origin = Some(origin))
    }

    /// Device of the storage, whatever the backend computes on.
    pub fn device(self, device: Target) -> Self {
        self.with(Ok(device), |spec, device| spec.device = Some(device))
    }

    /// What keeps host and device in step, for a storage on a GPU; by default dlfield.
    pub fn managed_by(self, by: ManagedBy) -> Self {
        self.with(Ok(by), |spec, by| spec.managed = Some(by))
    }

    /// Allocates it full of zeros. They are written only if the system hands out other memory.
    ///
    /// # Errors
    /// [`Error::Argument`] for requests that contradict each other or the shape,
    /// [`Error::OutOfMemory`], [`Error::Device`] for a device that is not there.
    pub fn zeros<T: Element>(self) -> Result<Storage> {
        self.filled(T::DTYPE, Fill::Zeros)
    }

    /// Allocates it with `value` in every element.
    ///
    /// # Errors
    /// As [`Builder::zeros`].
    pub fn full<T: Element>(self, value: T) -> Result<Storage> {
        self.filled(T::DTYPE, Fill::Item(bytes_of(&value)))
    }

    /// Allocates it for elements of a type that is known only at run time.
    ///
    /// # Errors
    /// As [`Builder::zeros`]; [`Error::Argument`] for an item of another size.
    pub fn filled(self, dtype: DType, fill: Fill<'_>) -> Result<Storage> {
        let (shape, spec) = self.0?;
        Storage::allocate(&shape, dtype, &spec, fill)
    }
}

fn numbers<N: TryInto<i64>>(what: &str, values: impl IntoIterator<Item = N>) -> Result<Extents> {
    values.into_iter().map(|value| number(what, value)).collect()
}

fn number<N: TryInto<i64>>(what: &str, value: N) -> Result<i64> {
    value.try_into().map_err(|_| {
        Error::Argument(format!("{what}: expected numbers of at most {}, got more", i64::MAX))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_reaches_the_storage() {
        let field = Storage::builder([6, 5, 4])
            .dims(["I", "J", "K"])
            .halo([(2, 1), (0, 0), (1, 1)])
            .layout([2, 0, 1])
            .alignment(64)
            .default_origin([2, 0, 1])
            .full(2.5_f32)
            .unwrap();
        assert_eq!(field.ranks().as_slice(), [2, 0, 1]);
        assert_eq!(field.managed().layout().strides(), [1, 64, 16]);
        assert_eq!((field.managed().address() + 2 * 4) % 64, 0, "the first inside the halo");
        assert_eq!(field.field().origin.as_deref(), Some(&[2, 0, 1][..]));
    }

    #[test]
    fn the_first_request_that_cannot_be_met_is_the_error() {
        let error = Storage::builder([4]).backend("gt:cpu").dims(["I", "J"]).zeros::<f64>();
        assert!(error.unwrap_err().to_string().contains("gt:cpu"));
        let error = Storage::builder([4]).halo([(3, 3)]).zeros::<f64>().unwrap_err();
        assert!(error.to_string().starts_with("halo: expected"), "{error}");
        let error = Storage::builder([usize::MAX]).zeros::<f64>().unwrap_err();
        assert!(error.to_string().starts_with("shape: expected"), "{error}");
    }
}

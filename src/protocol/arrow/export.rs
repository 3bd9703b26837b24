//! Producer: makes an array of arrow-rs over a [`Managed`], and the column that describes it.
//! `crate_api`, `capsules` and `device` hand them to consumers.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Field as Column};

use super::metadata::{FieldMetadata, Tensor};
use super::names::{
    BOOL8, DLFIELD, EXTENSION_METADATA, EXTENSION_NAME, FIXED_SHAPE_TENSOR, data_type, placeholder,
};
use super::rows::Rows;
use crate::cuda::Timeline;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::field::{Dims, Field};
use crate::layout::Extents;
use crate::managed::Managed;

/// Memory as Arrow sees it, with the axis of the list and the type of the elements.
pub(super) struct Exported<'a> {
    managed: &'a Managed,
    field: &'a Field,
    rows: Rows,
    values: DataType,
}

impl<'a> Exported<'a> {
    /// Checks that Arrow can express the memory without a copy.
    ///
    /// # Errors
    /// [`Error::Buffer`] if it cannot.
    pub(super) fn new(managed: &'a Managed, field: &'a Field) -> Result<Self> {
        let rows = Rows::new(managed.layout(), field.order.as_deref().unwrap_or_default())?;
        let dtype = managed.dtype();
        let boolean = dtype == DType::Bool && rows.inner.is_empty();
        let values = if boolean { Some(DataType::Int8) } else { data_type(dtype) };
        let values = values.ok_or_else(|| inexpressible(dtype))?;
        if !managed.is_aligned() {
            return Err(Error::Buffer(format!(
                "Arrow export: expected elements on boundaries of {} bytes, got address {:#x}; \
                 copy them first: copy(), in Python to_arrow(copy=True)",
                dtype.alignment(),
                managed.position()
            )));
        }
        Ok(Self { managed, field, rows, values })
    }

    /// Work in flight on the memory. `None` without elements: there is no such work then, and no
    /// buffer that could keep its event alive.
    pub(super) fn timeline(&self) -> Option<&Arc<Timeline>> {
        self.managed.timeline().filter(|_| self.managed.layout().size() > 0)
    }

    fn extent(&self, axis: usize) -> i64 {
        self.managed.layout().shape().get(axis).copied().unwrap_or(0)
    }

    fn inner_shape(&self) -> Extents {
        self.rows.inner.iter().map(|&axis| self.extent(axis)).collect()
    }

    fn dims_inside(&self) -> Option<Dims> {
        let name = |&axis: &usize| match &self.field.dims {
            Some(dims) => dims.get(axis).cloned(),
            // Numbers the inner axes: else a reader would mistake the list's axis for the first one.
            None if self.rows.axis != 0 => Some(placeholder(axis)),
            None => None,
        };
        self.rows.inner.iter().map(name).collect()
    }

    /// Number of elements of each tensor of the list.
    fn size_inside(&self) -> Result<i32> {
        let size =
            self.inner_shape().iter().try_fold(1_i64, |size, extent| size.checked_mul(*extent));
        size.and_then(|size| i32::try_from(size).ok()).ok_or_else(|| {
            Error::Buffer(format!(
                "Arrow export: expected at most {} elements in each tensor of the list, got shape \
                 {:?}; export parts of the storage",
                i32::MAX,
                self.managed.layout().shape()
            ))
        })
    }

    fn data_type(&self) -> Result<DataType> {
        if self.rows.inner.is_empty() {
            return Ok(self.values.clone());
        }
        let item = Column::new_list_field(self.values.clone(), true);
        Ok(DataType::FixedSizeList(Arc::new(item), self.size_inside()?))
    }

    /// Makes the column `name`, which describes this array.
    ///
    /// # Errors
    /// [`Error::Buffer`] for tensors that are too large for Arrow's lists.
    pub(super) fn column(&self, name: &str) -> Result<Column> {
        let (inner, shape) = (&self.rows.inner, self.managed.layout().shape().into());
        let Field { dims, halo, origin, .. } = self.field.clone();
        let field = FieldMetadata { shape, axis: self.rows.axis, dims, halo, origin };
        let mut metadata = HashMap::from([(DLFIELD.to_owned(), field.to_json())]);
        let extension = if inner.is_empty() {
            (self.managed.dtype() == DType::Bool).then(|| (BOOL8, String::new()))
        } else {
            let (shape, dims) = (self.inner_shape(), self.dims_inside());
            let tensor = Tensor { shape, dims, permutation: self.rows.permutation() };
            Some((FIXED_SHAPE_TENSOR, tensor.to_json()))
        };
        if let Some((name, parameters)) = extension {
            metadata.insert(EXTENSION_NAME.to_owned(), name.to_owned());
            metadata.insert(EXTENSION_METADATA.to_owned(), parameters);
        }
        // Nullable, as other libraries expect of a column, although no element is null.
        Ok(Column::new(name, self.data_type()?, true).with_metadata(metadata))
    }

    /// Makes the array over the same memory. Its buffer owns the result of `owner`, which holds a
    /// reference to the memory. Device memory is allowed: nothing is read.
    pub(super) fn data<T: Send + Sync + 'static>(
        &self,
        owner: impl FnOnce(Managed) -> T,
    ) -> Result<ArrayData> {
        let values = ArrayData::builder(self.values.clone())
            .len(self.managed.layout().size())
            .add_buffer(self.buffer(owner));
        // SAFETY: the buffer has the elements of the layout (Exported::buffer), aligned
        // (Exported::new). Without nulls, there is no bitmap.
        let values = unsafe { values.build_unchecked() };
        if self.rows.inner.is_empty() {
            return Ok(values);
        }
        let length = usize::try_from(self.extent(self.rows.axis)).unwrap_or(0);
        let lists = ArrayData::builder(self.data_type()?).len(length).add_child_data(values);
        // SAFETY: all elements of the layout belong to the `length` tensors.
        Ok(unsafe { lists.build_unchecked() })
    }

    fn buffer<T: Send + Sync + 'static>(&self, owner: impl FnOnce(Managed) -> T) -> Buffer {
        let bytes = self.managed.layout().nbytes();
        let Some(start) = NonNull::new(self.managed.data()).filter(|_| bytes > 0) else {
            return Buffer::from_vec(Vec::<u128>::new()); // aligned for every type
        };
        let owner = Arc::new(AssertUnwindSafe(owner(self.managed.clone()))); // only dropped
        // SAFETY: without gaps (Rows::new), the elements are the `bytes` bytes from the first one
        // on. The memory lives until its last owner is dropped (Managed), and ours is one. An array
        // for Rust holds a Borrow, which excludes writers; in Python, the user excludes them.
        unsafe { Buffer::from_custom_allocation(start, bytes, owner) }
    }
}

fn inexpressible(dtype: DType) -> Error {
    let way_out = match dtype {
        DType::Bool => " in several dimensions; view it as uint8, or export one dimension",
        _ if dtype.is_complex() => "; export the real and the imaginary part",
        _ => "; convert them to float32",
    };
    Error::Buffer(format!(
        "Arrow export: expected int8..int64, uint8..uint64, float16..float64, or bool in one \
         dimension, got {dtype}{way_out}"
    ))
}

/// Converts an error of arrow-rs about a name with a NUL, which C cannot express.
#[expect(clippy::needless_pass_by_value, reason = "the signature of map_err")]
pub(super) fn invalid_name(error: ArrowError) -> Error {
    Error::Argument(format!("Arrow: {error}"))
}

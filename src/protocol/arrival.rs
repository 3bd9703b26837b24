//! The order of the doors, and what comes through them.

use std::cell::Cell;

use pyo3::exceptions::PyRecursionError;
use pyo3::prelude::*;
use pyo3::types::PyType;

#[cfg(feature = "arrow")]
use super::arrow;
use super::dlpack::exchange;
use super::gt4py::{Hooks, Offer, Side};
use super::producer::{Producer, Recognised};
use super::{ImportRequest, array_interface, buffer, cuda_array_interface, dlpack, gt4py, xarray};
use crate::cuda::device_count;
use crate::device::Target;
use crate::error::{Error, Failure};
use crate::field::{Dims, Said};
use crate::managed::{Imported, Managed};

/// A foreign array, checked, with what the object says about its dimensions.
pub(crate) struct Arrival {
    pub(crate) managed: Managed,
    pub(crate) said: Said,
    /// What it wants called around a computation.
    pub(crate) hooks: Hooks,
    /// Name of the door it came through; `None` for memory that dlfield allocated.
    pub(crate) door: Option<&'static str>,
    /// What to call it in messages where it is read-only.
    pub(crate) kind: &'static str,
    /// What a DataArray holds, where nobody has put another word in.
    pub(crate) inside: Option<Py<PyAny>>,
}

/// Where the memory is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Where it is.
    Share,
    /// On the host, shared: memory that both sides reach.
    OnHost,
    /// On the host, at the price of a copy.
    CopyToHost,
    /// On a GPU, if the object has it there; shared.
    OnGpu,
    /// Where a computation reaches it, if the object has it there.
    For(Target),
}

impl Wish {
    /// The buffer of an object with several that is looked for first.
    fn side(self) -> Side {
        match self {
            Self::Share => Side::HostFirst,
            Self::CopyToHost if device_count().is_ok() => Side::HostFirst,
            Self::OnGpu => Side::GpuFirst(None),
            Self::For(Target::Gpu(number)) => Side::GpuFirst(number),
            Self::OnHost | Self::CopyToHost | Self::For(Target::Host) => Side::Host,
        }
    }

    /// Whether memory is wanted for a computation on a GPU, which may be of another make than CUDA's.
    fn believes(self) -> bool {
        matches!(self, Self::For(Target::Gpu(_)))
    }
}

type Door = for<'py> fn(&Bound<'py, PyAny>, ImportRequest) -> Result<Option<Imported>, Failure>;

/// The plain doors, cheapest first. They share memory, unless a copy to the host is wished for.
const DOORS: [(&str, Door); 5] = [
    ("dlpack_c_exchange_api", exchange::import),
    ("buffer", buffer::import),
    ("dlpack", dlpack::import),
    ("array_interface", array_interface::import),
    ("cuda_array_interface", cuda_array_interface::import),
];

/// Of arrays of exactly NumPy's class, in which nobody can put a table. Those that have no buffer, of bfloat16, go on.
const NUMPY_DOORS: [(&str, Door); 4] = {
    let [_, buffer, dlpack, array_interface, cuda_array_interface] = DOORS;
    [buffer, dlpack, array_interface, cuda_array_interface]
};

/// The same for somebody who computes on a device: an object with memory on both sides shows that of
/// the device first. DLPack counts more than the CUDA array interface, which need not name a stream.
const DEVICE_DOORS: [(&str, Door); 6] = [
    ("dlpack_c_exchange_api", exchange::import),
    ("dlpack", dlpack::import_of_cuda),
    ("cuda_array_interface", cuda_array_interface::import),
    ("buffer", buffer::import),
    ("dlpack", dlpack::import),
    ("array_interface", array_interface::import),
];

/// Takes an array from any object that speaks one of the protocols. Copies nothing; the producer
/// keeps its memory until the last view of it is dropped.
///
/// # Errors
/// `TypeError` where the object speaks none of them, `BufferError` or `ValueError` where what it
/// says cannot be used, and whatever the producer itself raises.
pub(crate) fn arrive(obj: &Bound<'_, PyAny>) -> Result<Arrival, Failure> {
    arrive_as(obj, Wish::Share)
}

/// As `arrive`, for memory that may have to be brought to the host.
///
/// # Errors
/// As `arrive`.
pub(crate) fn arrive_as(obj: &Bound<'_, PyAny>, wish: Wish) -> Result<Arrival, Failure> {
    let _nested = Nested::enter()?;
    Traveller { wish, depth: 0 }.arrive(obj)
}

/// As `arrive`, for an object of exactly one of the classes that say nothing but where their memory is;
/// also the name of its door. `None` for other objects.
///
/// # Errors
/// As `arrive`.
pub(crate) fn arrive_plain(
    obj: &Bound<'_, PyAny>,
) -> Result<Option<(Managed, &'static str)>, Failure> {
    match Recognised::met(obj) {
        None | Some(Producer::Xarray) => Ok(None),
        Some(producer) => {
            let known = Recognised { producer, exactly: true };
            producer.refuse_first(obj)?;
            let found = Traveller { wish: Wish::Share, depth: 0 }.first_door(obj, known)?;
            found.map(Some).ok_or_else(|| no_protocol(obj).into())
        }
    }
}

/// An import that runs inside others, of producers that import.
struct Nested;

thread_local! {
    static NESTED: Cell<usize> = const { Cell::new(0) };
}

impl Nested {
    /// How deep it may go: the stack ends before Python's own limit.
    const MOST: usize = 100;

    fn enter() -> PyResult<Self> {
        let depth = NESTED.get();
        if depth >= Self::MOST {
            return Err(PyRecursionError::new_err(
                "expected an array, got one that asks for itself without an end",
            ));
        }
        NESTED.set(depth + 1);
        Ok(Self)
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        NESTED.set(NESTED.get().saturating_sub(1));
    }
}

/// A wrapper may hold an array that is one again, but not for ever.
const MAX_DEPTH: usize = 8;

#[derive(Clone, Copy)]
struct Traveller {
    wish: Wish,
    depth: usize,
}

impl Traveller {
    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    fn arrive(self, obj: &Bound<'_, PyAny>) -> Result<Arrival, Failure> {
        if self.depth > MAX_DEPTH {
            return Err(Error::Type(
                "expected an array, got wrappers (.ndarray, .data) without an end".into(),
            )
            .into());
        }
        let known = Recognised::of(obj)?;
        match known.producer {
            Producer::Xarray => self.data_array(obj),
            _ if known.exactly => self.through_doors(obj, known),
            _ => self.unknown(obj, known),
        }
    }

    fn data_array(self, obj: &Bound<'_, PyAny>) -> Result<Arrival, Failure> {
        let held = xarray::unwrap(obj, self.wish.side())?;
        let named = held.offer.as_ref().is_some_and(|offer| offer.said.dims.is_some());
        let inside = held.offer.is_none().then(|| held.data.clone().unbind());
        let arrival = match (self.deeper().arrive(&held.data), held.offer) {
            (Ok(arrival), Some(offer)) => self.agreed(arrival, offer)?,
            (Err(Failure::Ours(Error::Type(_))), Some(offer)) => {
                self.offered(offer, Producer::Xarray)?
            }
            (arrival, _) => arrival?,
        };
        if let Some(again) = held.again {
            let again = self.deeper().arrive(&again)?;
            if !again.managed.is_same_as(&arrival.managed) {
                return Err(xarray::not_loaded().into());
            }
        }
        let Said { dims, halo, origin } = arrival.said;
        if let Some(inner) = &dims {
            xarray::check_names(&held.dims, inner)?;
        }
        let dims = if named { dims } else { Some(held.dims) };
        let said = Said { dims, halo, origin: held.origin.or(origin) };
        Ok(Arrival { said, inside, ..arrival })
    }

    /// An object whose class may have any attribute.
    fn unknown(self, obj: &Bound<'_, PyAny>, known: Recognised) -> Result<Arrival, Failure> {
        if obj.is_instance_of::<PyType>() {
            return Err(no_protocol(obj).into()); // its attributes are for its instances
        }
        let (dims, origin) = (gt4py::dims(obj)?, gt4py::origin(obj)?);
        let arrival = if let Some(offer) = gt4py::import(obj, self.wish.side())? {
            self.offered(offer, known.producer)?
        } else if let Some(inner) = gt4py::ndarray(obj)? {
            Arrival { door: Some("ndarray"), ..self.deeper().arrive(&inner)? }
        } else {
            self.through_doors(obj, known)?
        };
        let inner = arrival.said;
        check_same_names(dims.as_ref(), inner.dims.as_ref())?;
        let (dims, origin) = (dims.or(inner.dims), origin.or(inner.origin));
        Ok(Arrival { said: Said { dims, halo: inner.halo, origin }, ..arrival })
    }

    fn through_doors(self, obj: &Bound<'_, PyAny>, known: Recognised) -> Result<Arrival, Failure> {
        let producer = known.producer;
        producer.refuse_first(obj)?;
        // Arrow's own arrays say more as what they are; of others DLPack and the interfaces know more devices.
        if producer == Producer::Arrow
            && let Some(arrival) = self.arrow(obj, producer)?
        {
            return Ok(arrival);
        }
        if let Some((managed, door)) = self.first_door(obj, known)? {
            return Ok(Arrival::plain(managed, door, producer));
        }
        match producer {
            Producer::Other => self.arrow(obj, producer)?.ok_or_else(|| no_protocol(obj).into()),
            _ => Err(no_protocol(obj).into()),
        }
    }

    /// As an Arrow array, with what its metadata says.
    #[cfg(feature = "arrow")]
    fn arrow(self, obj: &Bound<'_, PyAny>, producer: Producer) -> Result<Option<Arrival>, Failure> {
        let Some((mut imported, said)) = arrow::import(obj, self.request(producer))? else {
            return Ok(None);
        };
        imported.set_believed(self.wish.believes());
        let plain = Arrival::plain(imported.validate()?, "arrow", Producer::Arrow);
        Ok(Some(Arrival { said, ..plain }))
    }

    #[cfg(not(feature = "arrow"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with the door")]
    fn arrow(self, _: &Bound<'_, PyAny>, _: Producer) -> Result<Option<Arrival>, Failure> {
        Ok(None)
    }

    fn request(self, producer: Producer) -> ImportRequest {
        ImportRequest {
            immutable: producer.is_immutable(),
            explains: matches!(producer, Producer::Torch | Producer::Jax),
            to_host: matches!(self.wish, Wish::OnHost | Wish::CopyToHost),
            anywhere: self.wish.side() != Side::Host,
            believed: self.wish.believes(),
            may_copy: self.wish == Wish::CopyToHost,
        }
    }

    fn doors(self, known: Recognised) -> &'static [(&'static str, Door)] {
        match known {
            _ if matches!(self.wish.side(), Side::GpuFirst(_)) => &DEVICE_DOORS,
            Recognised { producer: Producer::Numpy, exactly: true } => &NUMPY_DOORS,
            _ => &DOORS,
        }
    }

    /// The first door that lets the object through, and its name; `None` where there is none.
    fn first_door(
        self,
        obj: &Bound<'_, PyAny>,
        known: Recognised,
    ) -> Result<Option<(Managed, &'static str)>, Failure> {
        let producer = known.producer;
        let request = self.request(producer);
        for &(door, import) in self.doors(known) {
            if let Some(mut imported) = import(obj, request)? {
                imported.set_immutable(request.immutable);
                imported.set_believed(request.believed);
                let managed = imported.validate()?;
                producer.refuse_lazy(obj, &managed)?;
                return Ok(Some((managed, door)));
            }
        }
        Ok(None)
    }

    /// What an object offers through GT4Py's data interface, once its claims hold.
    fn offered(self, offer: Offer, producer: Producer) -> Result<Arrival, Failure> {
        let Offer { mut imported, said, hooks } = offer;
        imported.set_immutable(producer.is_immutable());
        imported.set_believed(self.wish.believes());
        let managed = imported.validate()?;
        let fits = said.check(managed.layout().shape());
        fits.map_err(|error| error.about("__gt_data_interface__"))?;
        Ok(Arrival { said, hooks, ..Arrival::plain(managed, "gt_data_interface", producer) })
    }

    /// A registered accessor may be older than the data of its DataArray: its word counts for names,
    /// halo and functions, and must be about the memory that is there now.
    fn agreed(self, arrival: Arrival, offer: Offer) -> Result<Arrival, Failure> {
        let offer = self.offered(offer, Producer::Xarray)?;
        if !arrival.managed.is_same_as(&offer.managed) {
            return Err(xarray::stale().into());
        }
        let readonly = offer.managed.readonly();
        let managed = if readonly { arrival.managed.into_readonly() } else { arrival.managed };
        let (first, then) = (offer.said, arrival.said);
        let (dims, halo) = (first.dims.or(then.dims), first.halo.or(then.halo));
        let said = Said { dims, halo, origin: first.origin };
        let hooks = offer.hooks.or(arrival.hooks);
        Ok(Arrival { managed, said, hooks, ..offer })
    }
}

impl Arrival {
    fn plain(managed: Managed, door: &'static str, producer: Producer) -> Self {
        let (kind, hooks) = (producer.readonly_kind(), Hooks::default());
        Self { managed, said: Said::default(), hooks, door: Some(door), kind, inside: None }
    }
}

/// Two words of one object about its axes.
fn check_same_names(attribute: Option<&Dims>, interface: Option<&Dims>) -> Result<(), Error> {
    match (attribute, interface) {
        (Some(attribute), Some(interface)) if attribute != interface => {
            Err(Error::Argument(format!(
                "dims: expected one answer, got {} from __gt_dims__ and {} from the memory it holds",
                crate::field::show_dims(attribute),
                crate::field::show_dims(interface)
            )))
        }
        _ => Ok(()),
    }
}

fn no_protocol(obj: &Bound<'_, PyAny>) -> Error {
    let (what, name) = match obj.cast::<PyType>() {
        Ok(class) => ("the class", class.name()),
        Err(_) => ("an object of type", obj.get_type().name()),
    };
    Error::Type(format!(
        "expected an array that speaks the buffer protocol, __dlpack__, \
         __array_interface__, __cuda_array_interface__, __gt_data_interface__ or __arrow_c_array__, got {what} \
         '{}'; make an array of it first, for example with np.asarray(...) or .compute()",
        name.map_or_else(|_| "?".into(), |name| name.to_string())
    ))
}

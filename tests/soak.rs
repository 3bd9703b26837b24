//! Random allocations, exports, imports, views, copies and drops on several threads end with as much
//! memory as they began with, on the heap and outside of it.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use dlfield::{DType, Field, Fill, Halo, Managed, Spec, Storage, Untrusted, live_allocations};
use dlpark::ffi::{DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensor};
use dlpark::metadata::Dynamic;

const OPERATIONS: usize = 50_000; // of each thread, twice
const THREADS: usize = 4;
const HELD: usize = 64;

/// The heap, and how many blocks of it are in use.
struct Counting;

static BLOCKS: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static HEAP: Counting = Counting;

// SAFETY: the system's allocator does the work, and is asked for exactly what was asked for here.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BLOCKS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        BLOCKS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        BLOCKS.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(end).unwrap()).unwrap()
    }

    fn extent(&mut self) -> i64 {
        i64::try_from(self.below(6)).unwrap()
    }
}

/// Now and then a field that is mapped: more than 4 MiB, which are never touched.
fn allocated(random: &mut Random) -> Storage {
    let large = random.below(200) == 0;
    let shape = [random.extent(), random.extent(), if large { 600_000 } else { random.extent() }];
    let halo: Halo = shape.iter().map(|extent| (extent / 2, 0)).collect();
    let spec = Spec { field: Field { halo: Some(halo), ..Field::default() }, ..Spec::default() };
    Storage::allocate(&shape, DType::Float64, &spec, Fill::Zeros).unwrap()
}

fn wrapped(managed: Managed) -> Storage {
    Storage::wrap(managed, &Spec::default()).unwrap()
}

/// Hands the memory over as a DLPack tensor and takes it back as a stranger would.
fn through_versioned(storage: &Storage) -> Storage {
    let tensor = NonNull::new(storage.to_dlpack().unwrap().into_raw()).unwrap();
    // SAFETY: into_raw gave this function the only reference to the tensor.
    unsafe { Storage::from_dlpack(tensor) }.unwrap()
}

/// A tensor of another library, which keeps the storage.
fn legacy(storage: &Storage) -> dlpark::Managed<DLManagedTensor> {
    let managed = storage.managed();
    let shape = Dynamic::new(managed.layout().shape(), managed.layout().strides());
    let prepared = shape.prepare_as::<DLManagedTensor>().unwrap();
    let mut tensor = prepared.initialize(Box::new(storage.clone()));
    tensor.set_data(managed.data().cast());
    tensor.set_device(DLDevice { device_type: DLDeviceType(1), device_id: 0 });
    tensor.set_dtype(DLDataType { code: DLDataTypeCode(2), bits: 64, lanes: 1 });
    // SAFETY: data, shape and strides are those of the storage, which the tensor keeps.
    unsafe { tensor.finish() }
}

fn through_legacy(storage: &Storage) -> Storage {
    let tensor = NonNull::new(legacy(storage).into_raw()).unwrap();
    // SAFETY: as above.
    wrapped(unsafe { Untrusted::from_legacy(tensor) }.validate().unwrap())
}

/// Tensors that are not taken, released by dlpark or by an import that is dropped.
fn not_taken(storage: &Storage) -> Storage {
    drop(legacy(storage));
    let tensor = NonNull::new(storage.to_dlpack().unwrap().into_raw()).unwrap();
    // SAFETY: as above.
    drop(unsafe { Untrusted::from_versioned(tensor) });
    storage.clone()
}

/// A copy of what is small. A large field would be touched.
fn copied(storage: &Storage) -> Storage {
    if storage.managed().layout().size() > 1000 {
        return storage.clone();
    }
    // SAFETY: nobody writes in this test.
    unsafe { Storage::copy_of(storage.managed(), &Spec::default()) }.unwrap()
}

fn made_of(storage: &Storage, random: &mut Random) -> Storage {
    match random.below(6) {
        0 => storage.domain_view().unwrap(),
        1 => wrapped(storage.managed().permute(&[2, 0, 1]).unwrap()),
        2 => through_versioned(storage),
        3 => through_legacy(storage),
        4 => not_taken(storage),
        _ => copied(storage),
    }
}

fn work(seed: u64, next: &Sender<Storage>, before: &Receiver<Storage>) {
    let (mut random, mut held) = (Random(seed), Vec::new());
    for _ in 0..OPERATIONS {
        let at = random.below(held.len().max(1));
        match random.below(8) {
            _ if held.is_empty() => held.push(allocated(&mut random)),
            0 | 1 => held.push(allocated(&mut random)),
            2..=4 => held.push(made_of(&held[at], &mut random)),
            5 => _ = next.send(held.swap_remove(at)), // the next thread may have ended
            6 => held.extend(before.try_recv()),
            _ => drop(held.swap_remove(at)),
        }
        if held.len() > HELD {
            held.truncate(random.below(HELD));
        }
    }
}

/// Every thread sends to the next, the last to the first.
fn work_in_a_ring() {
    let (mut senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel()).unzip();
    senders.rotate_left(1);
    let ends = senders.into_iter().zip(receivers);
    let threads: Vec<_> = (1..)
        .zip(ends)
        .map(|(seed, (next, before))| thread::spawn(move || work(seed, &next, &before)))
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn random_operations_on_several_threads_end_with_what_they_began_with() {
    work_in_a_ring(); // what the standard library keeps for ever is there after this
    let (blocks, live) = (BLOCKS.load(Ordering::Relaxed), live_allocations());
    work_in_a_ring();
    assert_eq!((BLOCKS.load(Ordering::Relaxed), live_allocations()), (blocks, live));
    assert_eq!(live, 0);
}

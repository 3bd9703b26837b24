//! Time to copy into each order of the dimensions, including the allocation.
#![allow(clippy::unwrap_used, reason = "a bench that cannot continue")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dlfield::{DType, Fill, Order, Spec, Storage};

/// 42 MB, more than any cache.
const SHAPE: [i64; 3] = [256, 256, 80];
const BYTES: u64 = 256 * 256 * 80 * 8;

/// Orders of the dimensions in memory, slowest first, with the rank of each dimension.
const ORDERS: [(&str, [i64; 3]); 6] = [
    ("IJK", [0, 1, 2]),
    ("IKJ", [0, 2, 1]),
    ("JIK", [1, 0, 2]),
    ("JKI", [2, 0, 1]),
    ("KIJ", [1, 2, 0]),
    ("KJI", [2, 1, 0]),
];

fn ordered(ranks: [i64; 3]) -> Spec {
    Spec { layout: Order::Ranks(ranks.into_iter().collect()), ..Spec::default() }
}

fn copies(criterion: &mut Criterion) {
    let ones = Fill::Item(&1_f64.to_ne_bytes());
    let source = Storage::allocate(&SHAPE, DType::Float64, &Spec::default(), ones).unwrap();
    let mut group = criterion.benchmark_group("copy IJK");
    group.throughput(Throughput::Bytes(BYTES)).sample_size(20);
    for (name, ranks) in ORDERS {
        let spec = ordered(ranks);
        group.bench_function(format!("to {name}"), |bencher| {
            // SAFETY: nothing writes the source.
            bencher.iter(|| unsafe { Storage::copy_of(black_box(source.managed()), &spec) });
        });
    }
    group.finish();
}

criterion_group!(benches, copies);
criterion_main!(benches);

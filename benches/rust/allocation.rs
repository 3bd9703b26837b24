//! Time to allocate fresh memory: unspecified, zeros, and one value in every element.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use dlfield::{DType, Fill, Spec, Storage};

/// Sizes from the heap, and from the system.
const SHAPES: [(&str, [i64; 3]); 3] =
    [("4 KB", [8, 8, 8]), ("1 MB", [64, 64, 32]), ("42 MB", [256, 256, 80])];

fn allocation(criterion: &mut Criterion) {
    let one = 1_f64.to_ne_bytes();
    let fills = [("empty", Fill::Nothing), ("zeros", Fill::Zeros), ("full", Fill::Item(&one))];
    for (name, fill) in fills {
        let mut group = criterion.benchmark_group(name);
        group.sample_size(20);
        for (size, shape) in SHAPES {
            let allocate =
                || Storage::allocate(black_box(&shape), DType::Float64, &Spec::default(), fill);
            group.bench_function(size, |bencher| bencher.iter(allocate));
        }
        group.finish();
    }
}

criterion_group!(benches, allocation);
criterion_main!(benches);

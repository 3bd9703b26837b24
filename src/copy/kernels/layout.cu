// Copies, transpositions and fills on the device, for layouts that no memcpy or memset of the driver
// can express. `compile.py` makes layout.ptx of this file, and that is what a process loads.
//
// A kernel owns no memory and frees none. It runs in the stream of its launch; whoever launches it
// keeps both sides alive until then, and has seen to it that the sides do not overlap and that
// addresses and steps are multiples of the word. A word has as many bytes as the kernel's name says,
// whatever element it is a part of.
//
// The grid is (any number, 1, 1) and does the whole work whatever the number. The block is
// (THREADS, 1, 1), and (WARP, WARPS, 1) for a transposition. Functions without a mark run on the
// device: `compile.py` says so to the compiler.

using Index = unsigned long long;

enum { MOST_WALKS = 8, THREADS = 256, WARP = 32, WARPS = THREADS / WARP, NEIGHBOURS = 2 };

// One loop over elements: how often, and how many bytes each side moves, which may be backwards.
struct Walk {
    long long count, source, target;
};

// The one parameter, of which tests/fake_cuda has a copy.
struct Arguments {
    // The first element of each side; a fill has no source.
    const void *source;
    void *target;
    // A fill writes as many bytes of it as a word has.
    Index value[2];
    // Walks in use, outermost first.
    long long dims;
    Walk walks[MOST_WALKS];
};
static_assert(sizeof(Arguments) == 232, "callers pass 232 bytes");

struct alignas(16) Pair {
    Index low, high;
};

// A walk as the threads of a block share it, in words. Nearly all layouts have few enough words to be
// counted in 32 bits. A division is dozens of instructions, more than an element can afford: here a
// block makes one for each walk, and its threads multiply.
struct Narrow {
    using Number = unsigned;
    using Step = int;

    Number count;
    // 2^(32 + shift) / count, rounded up. It does not fit for a count of 1, which needs none.
    unsigned reciprocal, shift;
    Step source, target;

    void set(Index count, long long source, long long target) {
        const int bits = 64 - __clzll(count - 1);
        const unsigned reciprocal = unsigned(((Index(1) << (31 + bits)) + count - 1) / count);
        *this = {Number(count), reciprocal, unsigned(bits - 1), Step(source), Step(target)};
    }

    // What rounding adds is less than number / 2^31 / count, so it never reaches the next whole
    // number as long as numbers are below 2^31.
    Number quotient(Number number) const {
        return __umulhi(number, reciprocal) >> shift;
    }
};

struct Wide {
    using Number = Index;
    using Step = long long;

    Number count;
    Step source, target;

    void set(Index count, long long source, long long target) {
        *this = {count, source, target};
    }

    Number quotient(Number number) const {
        return number / count;
    }
};

// What the walks come to: elements, and how far from the first one each side goes at most.
struct Extent {
    Index elements, source, target;
};

Extent extent(const Arguments &arguments) {
    Extent all = {1, 0, 0};
#pragma unroll 1
    for (int i = 0; i < arguments.dims; i++) {
        const Walk &walk = arguments.walks[i];
        all.elements *= walk.count;
        all.source += (walk.count - 1) * (walk.source < 0 ? -walk.source : walk.source);
        all.target += (walk.count - 1) * (walk.target < 0 ? -walk.target : walk.target);
    }
    return all;
}

// Runs `act` on the offsets of elements, in words, for `some` elements of a thread at a time. Those
// past the end are not `valid`, and their offsets mean nothing.
template <class Word, class Loop, int some, class Act>
void for_elements(const Arguments &arguments, Loop *loops, Index elements, Act act) {
    using Step = typename Loop::Step;
    using Number = typename Loop::Number;
    if (threadIdx.x < arguments.dims) {
        constexpr long long word = sizeof(Word);
        const Walk &walk = arguments.walks[threadIdx.x];
        loops[threadIdx.x].set(walk.count, walk.source / word, walk.target / word);
    }
    __syncthreads();
    constexpr Index at_once = some * THREADS;
    Index first = blockIdx.x * at_once + threadIdx.x;
    for (; first < elements; first += gridDim.x * at_once) {
        Number numbers[some];
        Step source[some] = {}, target[some] = {};
        bool valid[some];
#pragma unroll
        for (int k = 0; k < some; k++) {
            numbers[k] = Number(first) + k * THREADS;
            valid[k] = Index(k * THREADS) < elements - first;
        }
#pragma unroll 1
        for (int i = int(arguments.dims) - 1; i >= 0; i--) {
            const Loop loop = loops[i];
            if (loop.count == 1) {
                continue;
            }
#pragma unroll
            for (int k = 0; k < some; k++) {
                const Number outer = loop.quotient(numbers[k]);
                const Number index = numbers[k] - outer * loop.count;
                numbers[k] = outer;
                source[k] += index * loop.source;
                target[k] += index * loop.target;
            }
        }
        act(source, target, valid);
    }
}

template <class Word, class Act>
void for_all_elements(const Arguments &arguments, Act act) {
    __shared__ Narrow narrow[MOST_WALKS];
    __shared__ Wide wide[MOST_WALKS];
    const Extent all = extent(arguments);
    if (all.elements == 0) {
        return;
    }
    const Index words = Index(1) << 31, bytes = words * sizeof(Word);
    // Elements that a thread has on their way at once: enough bytes to keep the memory busy.
    constexpr int some = sizeof(Word) < 8 ? 4 : sizeof(Word) < 16 ? 2 : 1;
    if (all.elements < words && all.source < bytes && all.target < bytes) {
        for_elements<Word, Narrow, some>(arguments, narrow, all.elements, act);
    } else {
        for_elements<Word, Wide, 1>(arguments, wide, all.elements, act);
    }
}

template <class Word>
void copy(const Arguments &arguments) {
    auto from = static_cast<const Word *>(arguments.source);
    auto to = static_cast<Word *>(arguments.target);
    for_all_elements<Word>(arguments, [=](auto &source, auto &target, auto &valid) {
        constexpr int some = sizeof(valid);
        Word held[some];
        // Every load before the first store: memory is far, and the way is paid for once.
#pragma unroll
        for (int k = 0; k < some; k++) {
            if (valid[k]) {
                held[k] = from[source[k]];
            }
        }
#pragma unroll
        for (int k = 0; k < some; k++) {
            if (valid[k]) {
                to[target[k]] = held[k];
            }
        }
    });
}

template <class Word>
Word first_bytes(const Index *value) {
    return Word(value[0]);
}

template <>
Pair first_bytes(const Index *value) {
    return {value[0], value[1]};
}

template <class Word>
void fill(const Arguments &arguments) {
    const Word word = first_bytes<Word>(arguments.value);
    auto to = static_cast<Word *>(arguments.target);
    for_all_elements<Word>(arguments, [=](auto &, auto &target, auto &valid) {
#pragma unroll
        for (int k = 0; k < int(sizeof(valid)); k++) {
            if (valid[k]) {
                to[target[k]] = word;
            }
        }
    });
}

// A tile has so many elements along the last walk, in which a warp writes, and so many along the one
// before it, in which a warp reads. Rows of 512 bytes are long enough for the memory, also where they
// begin between its lines; more than 128 words of them would take too much shared memory.
template <class Word>
struct Tile {
    enum { WIDTH = sizeof(Word) < 4 ? 128 : 512 / sizeof(Word), HEIGHT = sizeof(Word) < 4 ? 64 : 32 };
};

// Where a tile begins on each side, in bytes from the first element, and how many elements it has
// along the last walk and along the one before it: those of a tile, or what is left of them.
struct Place {
    long long source, target;
    int width, height;
};

Index tiles_along(const Walk &walk, int side) {
    return (Index(walk.count) + side - 1) / side;
}

template <class Number>
void go(Place &place, Number index, const Walk &walk) {
    place.source += Index(index) * walk.source;
    place.target += Index(index) * walk.target;
}

// Takes the tile along one walk off a flat number, and gives how many elements it has there.
template <class Number>
int enter(Place &place, Number &number, const Walk &walk, int side) {
    const Number tiles = Number(tiles_along(walk, side));
    const Index first = Index(number % tiles) * side;
    number /= tiles;
    go(place, first, walk);
    return int(min(walk.count - first, Index(side)));
}

// Numbers count along the last walk fastest: what one tile leaves of a line of the target, the next
// block writes soon, while the line is still in the cache. Then they count NEIGHBOURS steps of the
// third walk from the end, most often from row to row of the target, which lie one after another,
// and only then the tiles of the walk along which the source lies without gaps.
template <class Tile, class Number>
Place place_of(Number number, const Arguments &arguments) {
    const int last = int(arguments.dims) - 1;
    const Walk &high = arguments.walks[last - 1];
    Place place = {};
    place.width = enter(place, number, arguments.walks[last], Tile::WIDTH);
    Number tile = number;
    if (last >= 2) {
        const Walk &walk = arguments.walks[last - 2];
        const Number tiles = Number(tiles_along(high, Tile::HEIGHT));
        Number within = number % (tiles * Number(walk.count));
        number /= tiles * Number(walk.count);
        const Number first = within / (tiles * NEIGHBOURS) * NEIGHBOURS;
        const Number together = min(Number(NEIGHBOURS), Number(walk.count) - first);
        within -= first * tiles;
        go(place, first + within % together, walk);
        tile = within / together;
    }
    place.height = enter(place, tile, high, Tile::HEIGHT);
#pragma unroll 1
    for (int i = last - 3; i >= 0; i--) {
        const Walk &walk = arguments.walks[i];
        go(place, number % Number(walk.count), walk);
        number /= Number(walk.count);
    }
    return place;
}

// The last walk moves the target by words, the one before it the source: tiles of both go through
// shared memory, so that a warp reads neighbours and writes neighbours.
template <class Word>
void transpose(const Arguments &arguments) {
    constexpr int word = sizeof(Word), WIDTH = Tile<Word>::WIDTH, HEIGHT = Tile<Word>::HEIGHT;
    // A column more than needed: without it a column would lie in one bank.
    __shared__ Word tile[WIDTH][HEIGHT + 1];
    __shared__ Place shared;
    const int last = int(arguments.dims) - 1;
    const Walk &width = arguments.walks[last], &height = arguments.walks[last - 1];
    Index tiles = tiles_along(width, WIDTH) * tiles_along(height, HEIGHT);
#pragma unroll 1
    for (int i = 0; i < last - 1; i++) {
        tiles *= arguments.walks[i].count;
    }
    const int x = threadIdx.x, y = threadIdx.y;
    const char *from = static_cast<const char *>(arguments.source) + x * word + y * width.source;
    char *to = static_cast<char *>(arguments.target) + x * word + y * height.target;
    for (Index number = blockIdx.x; number < tiles; number += gridDim.x) {
        // One thread divides for all, and does so while the others write the tile before.
        if (x == 0 && y == 0) {
            shared = tiles >> 32 ? place_of<Tile<Word>>(number, arguments)
                                 : place_of<Tile<Word>>(unsigned(number), arguments);
        }
        __syncthreads();
        const Place here = shared;
        // Every load before the first word is put down: memory is far, and the way is paid for once.
        // So words past the end are put down as well, where nobody reads them.
        Word held[WIDTH / WARPS][HEIGHT / WARP] = {};
        const char *source = from + here.source;
#pragma unroll
        for (int i = 0; i < WIDTH / WARPS; i++) {
#pragma unroll
            for (int j = 0; j < HEIGHT / WARP; j++) {
                if (y + i * WARPS < here.width && x + j * WARP < here.height) {
                    held[i][j] = reinterpret_cast<const Word *>(source)[j * WARP];
                }
            }
            source += WARPS * width.source;
        }
#pragma unroll
        for (int i = 0; i < WIDTH / WARPS; i++) {
#pragma unroll
            for (int j = 0; j < HEIGHT / WARP; j++) {
                tile[y + i * WARPS][x + j * WARP] = held[i][j];
            }
        }
        __syncthreads();
        char *target = to + here.target;
#pragma unroll
        for (int j = 0; j < HEIGHT / WARPS; j++) {
#pragma unroll
            for (int i = 0; i < WIDTH / WARP; i++) {
                if (y + j * WARPS < here.height && x + i * WARP < here.width) {
                    reinterpret_cast<Word *>(target)[i * WARP] = tile[x + i * WARP][y + j * WARPS];
                }
            }
            target += WARPS * height.target;
        }
    }
}

#define KERNEL(what, size, Word)                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS) dlfield_##what##_##size(             \
        const __grid_constant__ Arguments arguments) {                                         \
        what<Word>(arguments);                                                                 \
    }

#define KERNELS(size, Word)                                                                    \
    KERNEL(copy, size, Word)                                                                   \
    KERNEL(transpose, size, Word)                                                              \
    KERNEL(fill, size, Word)

KERNELS(1, unsigned char)
KERNELS(2, unsigned short)
KERNELS(4, unsigned)
KERNELS(8, Index)
KERNELS(16, Pair)

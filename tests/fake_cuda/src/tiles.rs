//! Transpositions, by tiles in shared memory. Names and arithmetic follow
//! `src/copy/kernels/layout.cu`, for reading both side by side.

use std::collections::HashMap;

use crate::words::{Run, Walk, Word, times};

pub(crate) const BLOCK: [u32; 3] = [32, 8, 1];
const WARP: usize = 32;
const WARPS: usize = 8;
const NEIGHBOURS: u64 = 2;

/// Words of a tile along the last walk, and along the one before it.
fn tile(word: u64) -> [u64; 2] {
    if word < 4 { [128, 64] } else { [512 / word, 32] }
}

/// Start of a tile on each side, and its number of elements along the last two walks.
#[derive(Clone, Copy, Default, Debug)]
struct Place {
    source: i64,
    target: i64,
    width: u64,
    height: u64,
}

/// The walks of a transposition: those along which tiles are counted, and the two of a tile with its
/// words along them.
#[derive(Debug)]
struct Walks {
    outer: Vec<Walk>,
    height: Walk,
    width: Walk,
    tile: [u64; 2],
}

impl Walks {
    fn new(walks: &[Walk], word: u64) -> Result<Self, String> {
        let [outer @ .., height, width] = walks else {
            return Err(format!("expected two walks at least, got {}", walks.len()));
        };
        Ok(Self { outer: outer.to_vec(), height: *height, width: *width, tile: tile(word) })
    }

    fn tiles(&self) -> u64 {
        let outer: u64 = self.outer.iter().map(|walk| walk.count).product();
        let [width, height] = self.tile;
        self.width.count.div_ceil(width) * self.height.count.div_ceil(height) * outer
    }

    fn place_of(&self, mut number: u64) -> Result<Place, String> {
        let (mut place, [width, height]) = (Place::default(), self.tile);
        place.width = enter(&mut place, &mut number, self.width, width)?;
        let (mut tile, mut outer) = (number, self.outer.as_slice());
        if let [further @ .., walk] = outer {
            let tiles = self.height.count.div_ceil(height);
            let mut within = number % (tiles * walk.count);
            number /= tiles * walk.count;
            let first = within / (tiles * NEIGHBOURS) * NEIGHBOURS;
            let together = NEIGHBOURS.min(walk.count - first);
            within -= first * tiles;
            go(&mut place, first + within % together, *walk)?;
            tile = within / together;
            outer = further;
        }
        place.height = enter(&mut place, &mut tile, self.height, height)?;
        for walk in outer.iter().rev() {
            go(&mut place, number % walk.count, *walk)?;
            number /= walk.count;
        }
        Ok(place)
    }
}

fn go(place: &mut Place, index: u64, walk: Walk) -> Result<(), String> {
    place.source += times(index, walk.source)?;
    place.target += times(index, walk.target)?;
    Ok(())
}

fn enter(place: &mut Place, number: &mut u64, walk: Walk, side: u64) -> Result<u64, String> {
    let tiles = walk.count.div_ceil(side);
    let first = *number % tiles * side;
    *number /= tiles;
    go(place, first, walk)?;
    Ok((walk.count - first).min(side))
}

/// The words of a tile with so many columns and rows that the threads of a block take, in turn: lanes
/// along the columns, warps along the rows.
fn words([columns, rows]: [u64; 2]) -> impl Iterator<Item = (u64, u64)> {
    let threads = (0..WARPS as u64).flat_map(|y| (0..WARP as u64).map(move |x| (x, y)));
    threads.flat_map(move |(x, y)| {
        let rows = (y..rows).step_by(WARPS);
        rows.flat_map(move |row| (x..columns).step_by(WARP).map(move |column| (column, row)))
    })
}

impl Run<'_> {
    pub(crate) fn transpose(&mut self) -> Result<(), String> {
        let walks = Walks::new(&self.arguments.walks, self.word)?;
        let tiles = walks.tiles();
        for block in 0..self.blocks.min(tiles) {
            let mut number = block;
            while number < tiles {
                self.transpose_tile(walks.place_of(number)?, &walks)?;
                number += self.blocks;
            }
        }
        Ok(())
    }

    /// The work of a block on a tile: two loops over its threads, because they wait for each other
    /// once.
    fn transpose_tile(&mut self, here: Place, walks: &Walks) -> Result<(), String> {
        let (mut tile, [width, height]) = (HashMap::<(u64, u64), Word>::new(), walks.tile);
        for (x, y) in words([height, width]) {
            if x < here.height && y < here.width {
                let offset = here.source + self.inside(x, y, walks.width.source)?;
                tile.insert((y, x), self.load(offset)?);
            }
        }
        for (x, y) in words([width, height]) {
            if x < here.width && y < here.height {
                let offset = here.target + self.inside(x, y, walks.height.target)?;
                let word = tile.get(&(x, y)).copied();
                self.store(offset, word.ok_or("expected a word in the tile, got none")?)?;
            }
        }
        Ok(())
    }

    /// Offset of an element from the first one of its tile, on the side where `x` moves by words.
    fn inside(&self, x: u64, row: u64, step: i64) -> Result<i64, String> {
        Ok(times(x, self.word.cast_signed())? + times(row, step)?)
    }
}

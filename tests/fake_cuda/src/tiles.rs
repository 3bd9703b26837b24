//! Transpositions, by tiles in shared memory. Names and arithmetic follow
//! `src/copy/kernels/layout.cu`, for reading both side by side.

use crate::words::{Run, Walk, Word, times};

pub(crate) const BLOCK: [u32; 3] = [32, 8, 1];
const TILE: u8 = 32;
const TILE_ROWS: u8 = 8;

/// Start of a tile on each side, and its number of elements along the last two walks.
#[derive(Clone, Copy, Default, Debug)]
struct Place {
    source: i64,
    target: i64,
    width: u64,
    height: u64,
}

fn tiles_along(walk: Walk) -> u64 {
    walk.count.div_ceil(TILE.into())
}

/// The walks of a transposition: those along which tiles are counted, and the two of a tile.
#[derive(Debug)]
struct Walks {
    outer: Vec<Walk>,
    height: Walk,
    width: Walk,
}

impl Walks {
    fn new(walks: &[Walk]) -> Result<Self, String> {
        let [outer @ .., height, width] = walks else {
            return Err(format!("expected two walks at least, got {}", walks.len()));
        };
        Ok(Self { outer: outer.to_vec(), height: *height, width: *width })
    }

    fn tiles(&self) -> u64 {
        let outer: u64 = self.outer.iter().map(|walk| walk.count).product();
        tiles_along(self.width) * tiles_along(self.height) * outer
    }

    fn place_of(&self, mut number: u64) -> Result<Place, String> {
        let mut place = Place::default();
        place.width = enter(&mut place, &mut number, self.width)?;
        place.height = enter(&mut place, &mut number, self.height)?;
        for walk in self.outer.iter().rev() {
            let index = number % walk.count;
            number /= walk.count;
            place.source += times(index, walk.source)?;
            place.target += times(index, walk.target)?;
        }
        Ok(place)
    }
}

fn enter(place: &mut Place, number: &mut u64, walk: Walk) -> Result<u64, String> {
    let first = *number % tiles_along(walk) * u64::from(TILE);
    *number /= tiles_along(walk);
    place.source += times(first, walk.source)?;
    place.target += times(first, walk.target)?;
    Ok((walk.count - first).min(TILE.into()))
}

/// The threads of a block, each with its rows of a tile.
fn threads() -> impl Iterator<Item = (u8, u8)> {
    let rows = |y: u8| (y..TILE).step_by(TILE_ROWS.into());
    let threads = (0..TILE_ROWS).flat_map(|y| (0..TILE).map(move |x| (x, y)));
    threads.flat_map(move |(x, y)| rows(y).map(move |row| (x, row)))
}

impl Run<'_> {
    pub(crate) fn transpose(&mut self) -> Result<(), String> {
        let walks = Walks::new(&self.arguments.walks)?;
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
        let mut tile: [[Option<Word>; 33]; 32] = [[None; 33]; 32];
        for (x, row) in threads() {
            if u64::from(x) < here.height && u64::from(row) < here.width {
                let offset = here.source + self.inside(x, row, walks.width.source)?;
                tile[usize::from(row)][usize::from(x)] = Some(self.load(offset)?);
            }
        }
        for (x, row) in threads() {
            if u64::from(x) < here.width && u64::from(row) < here.height {
                let offset = here.target + self.inside(x, row, walks.height.target)?;
                let word = tile[usize::from(x)][usize::from(row)];
                self.store(offset, word.ok_or("expected a word in the tile, got none")?)?;
            }
        }
        Ok(())
    }

    /// Offset of an element from the first one of its tile, on the side where `x` moves by words.
    fn inside(&self, x: u8, row: u8, step: i64) -> Result<i64, String> {
        Ok(times(x.into(), self.word.cast_signed())? + times(row.into(), step)?)
    }
}

//! The kernels of `src/copy/kernels/layout.cu`, run on the host thread by thread.
//!
//! Mistakes that a GPU does not notice are errors here: blocks of an unsupported shape, and
//! elements of the target that are written twice or not at all.

use crate::elements::{self, Origin};
use crate::memory::Memory;
use crate::tiles;
use crate::words::{Arguments, Run};

#[derive(Clone, Copy, Debug)]
enum Work {
    Elements(Origin),
    Tiles,
}

impl Work {
    fn block(self) -> [u32; 3] {
        match self {
            Self::Elements(_) => elements::BLOCK,
            Self::Tiles => tiles::BLOCK,
        }
    }
}

/// A kernel of `layout.cu`.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    name: String,
    work: Work,
    word: u64,
}

impl Known {
    pub(crate) fn named(name: &str) -> Option<Self> {
        let (work, word) = name.strip_prefix("dlfield_")?.split_once('_')?;
        let work = match work {
            "copy" => Work::Elements(Origin::Source),
            "fill" => Work::Elements(Origin::Value),
            "transpose" => Work::Tiles,
            _ => return None,
        };
        let word = word.parse().ok().filter(|word| [1, 2, 4, 8, 16].contains(word))?;
        Some(Self { name: name.to_owned(), work, word })
    }

    /// Runs the whole grid now. The error names the fault of the launch or of the kernel.
    pub(crate) fn perform(
        &self,
        memory: &Memory,
        (grid, block): ([u32; 3], [u32; 3]),
        argument: &[u128],
    ) -> Result<(), String> {
        let [blocks, rows, planes] = grid;
        let expected = self.work.block();
        let done = if block == expected && rows == 1 && planes == 1 {
            Arguments::read(argument).and_then(|arguments| {
                self.run(Run::new(memory, arguments, self.word, u64::from(blocks)))
            })
        } else {
            Err(format!("expected a row of blocks of {expected:?}, got {grid:?} of {block:?}"))
        };
        done.map_err(|why| format!("kernel {}: {why}", self.name))
    }

    fn run(&self, mut run: Run<'_>) -> Result<(), String> {
        match self.work {
            Work::Elements(origin) => run.for_all_elements(origin)?,
            Work::Tiles => run.transpose()?,
        }
        run.check_written()
    }
}

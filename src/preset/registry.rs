//! Presets by name: those of the table and those that users register.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::table::{Code, PRESETS, Preset, PresetOrder, default_dims, preset};
use crate::error::{Error, Result, did_you_mean};
use crate::field::{Dim, Dims, show_dims};
use crate::layout::Extents;

/// Presets of users. They live as long as the process, and of equal ones there is one.
struct Custom {
    made: Vec<&'static Preset>,
    registered: Vec<&'static Preset>,
}

fn custom() -> MutexGuard<'static, Custom> {
    static CUSTOM: Mutex<Custom> = Mutex::new(Custom { made: Vec::new(), registered: Vec::new() });
    CUSTOM.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Preset {
    /// Looks a preset up by name.
    ///
    /// # Errors
    /// [`Error::Argument`] that lists the known names.
    pub fn from_name(name: &str) -> Result<&'static Self> {
        Self::find(name).ok_or_else(|| Self::unknown("preset", name))
    }

    /// Looks a preset up by name; `None` for an unknown one.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        let own = PRESETS.iter().find(|preset| preset.name == name);
        own.or_else(|| custom().registered.iter().copied().find(|preset| preset.name == name))
    }

    /// The refusal of an unknown name of the option `what`: the known names, and those that begin
    /// with it, or that which is written most alike, whatever the case.
    pub(crate) fn unknown(what: &str, name: &str) -> Error {
        let registered = custom().registered.clone();
        let known: Vec<&str> = PRESETS.iter().chain(registered).map(|one| one.name).collect();
        let beginning = name.to_lowercase();
        let near = known.iter().filter(|known| known.to_lowercase().starts_with(&beginning));
        let near: Vec<String> = near.map(|near| format!("'{near}'")).collect();
        let name: String = name.chars().take(80).collect();
        let asked = || did_you_mean(&name, known.iter().copied());
        let way_out = match near.as_slice() {
            [one] => format!("did you mean {one}?"),
            [_, ..] if near.len() < 4 => format!("use {}", near.join(" or ")),
            _ => asked().unwrap_or_else(|| "add one with register_preset".into()),
        };
        let known = known.join(", ");
        Error::Argument(format!("{what}: expected one of {known}, got '{name}'; {way_out}"))
    }

    /// A user's preset: the ranks of I, J and K, an alignment in elements, and whether it is for a
    /// GPU. It is not registered.
    ///
    /// # Errors
    /// [`Error::Argument`] for anything but a permutation.
    pub(crate) fn of_ranks(
        name: &str,
        ranks: &[i64],
        items: usize,
        gpu: bool,
    ) -> Result<&'static Self> {
        let rank = |own: i64| u8::try_from(own).ok().filter(|_| (0..3).contains(&own));
        let order = match ranks {
            &[i, j, k] if i != j && j != k && i != k => {
                rank(i).zip(rank(j)).zip(rank(k)).map(|((i, j), k)| PresetOrder::Ijk(i, j, k))
            }
            _ => None,
        };
        let order = order.ok_or_else(|| {
            Error::Argument(format!(
                "layout: expected ranks of I, J and K, each of 0, 1 and 2 once, got {ranks:?}; 0 \
                 is the largest stride"
            ))
        })?;
        Ok(kept(name, order, items, gpu))
    }

    /// As [`Preset::of_ranks`], with the ranks that a function gives to dimensions.
    ///
    /// # Errors
    /// Those of the function; [`Error::Argument`] for ranks that no order of I, J and K gives, with
    /// data dimensions outermost or innermost.
    pub(crate) fn of_function<E: From<Error>>(
        name: &str,
        ranks_of: impl Fn(&Dims) -> std::result::Result<Extents, E>,
        items: usize,
        gpu: bool,
    ) -> std::result::Result<&'static Self, E> {
        let order = order_of(&ranks_of(&default_dims(5))?);
        for dims in probes() {
            let ranks = ranks_of(&dims)?;
            let by = |order| preset("", order, 1, Code::Host).layout(dims.len(), Some(&dims));
            if order.map(by).as_ref() != Some(&ranks) {
                return Err(E::from(Error::Argument(format!(
                    "layout: expected a function that orders dimensions by their names, with data \
                     dimensions outermost or innermost, got {:?} for {}",
                    ranks.as_slice(),
                    show_dims(&dims)
                ))));
            }
        }
        Ok(kept(name, order.unwrap_or(PresetOrder::C), items, gpu))
    }

    /// Makes a user's preset known by its name, in place of another one of that name.
    ///
    /// # Errors
    /// As [`Preset::unregister`].
    pub(crate) fn register(&'static self) -> Result<()> {
        Self::unregister(self.name)?;
        custom().registered.push(self);
        Ok(())
    }

    /// Forgets a name.
    ///
    /// # Errors
    /// [`Error::Argument`] for the name of a preset of the table.
    pub(crate) fn unregister(name: &str) -> Result<()> {
        if PRESETS.iter().any(|preset| preset.name == name) {
            return Err(Error::Argument(format!(
                "name: expected a new one, got '{name}', which dlfield defines; choose another"
            )));
        }
        custom().registered.retain(|preset| preset.name != name);
        Ok(())
    }
}

/// The preset with these properties, which is made once.
fn kept(name: &str, order: PresetOrder, items: usize, gpu: bool) -> &'static Preset {
    let code = if gpu { Code::Gpu } else { Code::Host };
    let mut custom = custom();
    let same = |made: &&&'static Preset| {
        made.name == name && ***made == preset(made.name, order, items, code)
    };
    if let Some(made) = custom.made.iter().find(same) {
        return made;
    }
    let made = Box::leak(Box::new(preset(name.to_owned().leak(), order, items, code)));
    custom.made.push(made);
    made
}

/// The order behind the ranks of I, J, K and two data dimensions.
fn order_of(ranks: &[i64]) -> Option<PresetOrder> {
    let &[i, j, k, zero, _] = ranks else { return None };
    let among = |own| u8::try_from([i, j, k].iter().filter(|rank| **rank < own).count()).ok();
    let make = if zero < i { PresetOrder::Ijk } else { PresetOrder::IjkThenData };
    Some(make(among(i)?, among(j)?, among(k)?))
}

/// I, J and K, each there or not, with up to two data dimensions.
fn probes() -> impl Iterator<Item = Dims> {
    let grid = |mask: u8| {
        let all = [(Dim::I, 1), (Dim::J, 2), (Dim::K, 4)].into_iter();
        all.filter_map(move |(dim, bit)| (mask & bit != 0).then_some(dim))
    };
    (1..8).flat_map(move |mask| {
        (0..3).map(move |data| grid(mask).chain((0..data).map(Dim::Data)).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = Preset::from_name("gt:cpu").unwrap_err().to_string();
        assert!(error.contains("gt:cpu_kfirst") && error.contains("got 'gt:cpu'; use"), "{error}");
        let error = Preset::from_name("nonsense").unwrap_err().to_string();
        assert!(error.ends_with("got 'nonsense'; add one with register_preset"), "{error}");
    }

    #[test]
    fn equal_presets_are_made_once() {
        let make = |items| Preset::of_ranks("own", &[2, 0, 1], items, false).unwrap();
        assert!(std::ptr::eq(make(2), make(2)) && !std::ptr::eq(make(2), make(3)));
    }

    #[test]
    fn a_function_gives_the_ranks_of_any_preset_of_the_table() {
        for known in PRESETS.iter().filter(|known| !matches!(known.name, "C" | "F")) {
            let ranks_of = |dims: &Dims| Ok::<_, Error>(known.layout(dims.len(), Some(dims)));
            let own = Preset::of_function("like", ranks_of, 1, false).unwrap();
            let dims: Dims = ["K", "1", "I", "0"].map(Dim::from_name).into_iter().collect();
            assert_eq!(own.layout(4, Some(&dims)), known.layout(4, Some(&dims)), "{}", known.name);
        }
    }
}

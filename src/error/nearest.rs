//! Finds the known name that resembles an unknown one.

/// Asks for the known name that is written most alike, as a way out of an error; `None` if none is.
///
/// Up to a third of the letters may differ, or one letter of two. Case does not count: `i` finds `I`,
/// and `x` does not.
pub(crate) fn did_you_mean<'a>(
    given: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let limit = match given.chars().count() {
        2 => 1,
        letters => letters / 3,
    };
    let given = given.to_lowercase();
    let distance = |name: &str| strsim::osa_distance(&given, &name.to_lowercase());
    let near = known.into_iter().map(|name| (distance(name), name));
    let (_, nearest) = near.filter(|(far, _)| *far <= limit).min_by_key(|(far, _)| *far)?;
    Some(format!("did you mean '{nearest}'?"))
}

#[cfg(test)]
mod tests {
    use super::did_you_mean;

    const BACKENDS: [&str; 4] = ["numpy", "gt:cpu_kfirst", "gt:cpu_ifirst", "dace:cpu"];

    #[test]
    fn the_name_that_is_written_most_alike_is_asked_for() {
        let asked = |given| did_you_mean(given, BACKENDS);
        assert_eq!(asked("gt:cpu_Ifirst").as_deref(), Some("did you mean 'gt:cpu_ifirst'?"));
        assert_eq!(asked("gt:cpu_kfrist").as_deref(), Some("did you mean 'gt:cpu_kfirst'?"));
        assert_eq!(asked("DACECPU").as_deref(), Some("did you mean 'dace:cpu'?"));
        assert_eq!(asked("torch"), None);
    }

    #[test]
    fn a_single_letter_is_that_letter_in_any_case() {
        assert_eq!(did_you_mean("i", ["I", "J"]).as_deref(), Some("did you mean 'I'?"));
        assert_eq!(did_you_mean("x", ["I", "J"]), None);
        assert_eq!(did_you_mean("lo", ["lat", "lon"]).as_deref(), Some("did you mean 'lon'?"));
    }

    #[test]
    fn of_nothing_nothing_is_meant() {
        assert_eq!(did_you_mean("", ["I"]), None);
        assert_eq!(did_you_mean("I", []), None);
    }
}

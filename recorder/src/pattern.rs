//! Patterns of event names, by QEMU's rules.

/// Whether a text is a pattern, not a name: only if it has a `*`.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains('*')
}

/// Whether `name` matches `pattern`: `*` is any run of characters, `?` any one. Takes time linear in each of the two.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut in_name) = (0, 0);
    // Where to go on when the run that the last star stands for has to be longer.
    let mut star: Option<(usize, usize)> = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, in_name));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => match star {
                Some((behind, begins)) => {
                    star = Some((behind, begins + 1));
                    (at, in_name) = (behind, begins + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stars_are_any_run_and_question_marks_any_one_character() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "virtio_blk_req_complete", true),
            ("virtio_*", "virtio_blk_req_complete", true),
            ("virtio_*", "virtio_", true),
            ("virtio_*", "virtio", false),
            ("*_complete", "virtio_blk_req_complete", true),
            ("*_complete", "virtio_blk_req_complete_x", false),
            ("v*blk*te", "virtio_blk_req_complete", true),
            ("*a*a*", "aa", true),
            ("*a*a*", "a", false),
            ("bdrv_?o_*", "bdrv_co_preadv", true),
            ("bdrv_?o_*", "bdrv_o_preadv", false),
            ("*?", "", false),
            ("**", "x", true),
            ("[ab]*", "a", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} and {name}");
        }
        assert!(is_pattern("a*") && !is_pattern("a?") && !is_pattern("a"));
    }

    /// The definition, word for word.
    fn by_definition(pattern: &[u8], name: &[u8]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some((b'*', rest)) => (0..=name.len()).any(|run| by_definition(rest, &name[run..])),
            Some((byte, rest)) => name
                .split_first()
                .is_some_and(|(first, name)| (*byte == b'?' || byte == first) && by_definition(rest, name)),
        }
    }

    proptest! {
        #[test]
        fn matching_is_as_it_is_defined(pattern in "[ab*?]{0,8}", name in "[ab]{0,10}") {
            prop_assert_eq!(matches(&pattern, &name), by_definition(pattern.as_bytes(), name.as_bytes()));
        }
    }
}

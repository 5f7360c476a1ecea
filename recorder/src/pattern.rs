//! Patterns of event names, by QEMU's rules.

/// Whether a text is a pattern, not a name: only if it has a `*`.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains('*')
}

/// Whether a text stands for the event called `name`: as a pattern, or as a name.
pub(crate) fn stands_for(text: &str, name: &str) -> bool {
    if is_pattern(text) { matches(text, name) } else { text == name }
}

/// The rules in the text of an events file with their lines, in their order: one a line, as they are given on the command line.
///
/// A `#` in front makes a comment, and empty lines say nothing. Unlike QEMU's, the last line needs no newline, and a CR in front of a
/// newline is none of the rule; other blanks are, as there.
pub(crate) fn rules(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.split('\n').map(|line| line.trim_end_matches('\r'));
    (1..).zip(lines).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
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

    #[test]
    fn a_name_without_a_star_stands_for_itself_alone() {
        assert!(stands_for("net_rx", "net_rx"));
        assert!(!stands_for("net_r?", "net_rx"), "a name with a question mark");
        assert!(!stands_for("net_", "net_rx"));
        assert!(stands_for("net_r?*", "net_rx"));
    }

    #[test]
    fn an_events_file_has_a_rule_on_each_line_that_is_no_comment() {
        for (text, expected) in [
            ("", &[][..]),
            ("\n\r\n\n", &[]),
            ("disk_*\n-disk_flush\nnet_rx\n", &[(1, "disk_*"), (2, "-disk_flush"), (3, "net_rx")]),
            // QEMU would look for `net_r`.
            ("disk_*\nnet_rx", &[(1, "disk_*"), (2, "net_rx")]),
            ("disk_*\r\nnet_rx\r\n", &[(1, "disk_*"), (2, "net_rx")]),
            ("net_rx\r", &[(1, "net_rx")]),
            ("# all\n#\n\n#*\n*", &[(5, "*")]),
            // A comment begins in the first column, and blanks belong to the name.
            (" # x\nnet_rx # y\n net_rx \n", &[(1, " # x"), (2, "net_rx # y"), (3, " net_rx ")]),
        ] {
            assert_eq!(rules(text).collect::<Vec<_>>(), expected, "{text:?}");
        }
        let long = "a".repeat(5_000);
        assert_eq!(rules(&long).collect::<Vec<_>>(), [(1, long.as_str())], "in one piece");
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

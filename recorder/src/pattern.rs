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

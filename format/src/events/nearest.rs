//! Suggestions: which known word was meant.

/// Words longer than this are never suggested for: nobody mistypes them, and the table below stays small.
const LONGEST: usize = 80;

/// Returns the candidate that takes the fewest edits to make from `word`, if few enough; of several, the first by
/// the alphabet, as candidates of a hash table come in any order.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(LONGEST + 1).collect();
    if word.len() > LONGEST {
        return None;
    }
    // A third of the word: one edit for `int`, two for `uint32_t`, more for a long event name.
    let mut most = (word.len() / 3).max(1);
    let mut found = None;
    let mut other = Vec::with_capacity(LONGEST);
    for candidate in candidates {
        // Bytes are at least as many as characters; the exact test follows in `distance`.
        if candidate.len() > 4 * LONGEST {
            continue;
        }
        other.clear();
        other.extend(candidate.chars());
        if other.len().abs_diff(word.len()) <= most
            && let Some(edits) = distance(&word, &other, most)
            && found.is_none_or(|found| (edits, candidate) < found)
        {
            most = edits;
            found = Some((edits, candidate));
            if edits == 0 {
                break;
            }
        }
    }
    found.map(|(_, candidate)| candidate)
}

/// Returns the number of insertions, deletions, replacements and swaps of neighbours between two words, if at most `limit`.
fn distance(left: &[char], right: &[char], limit: usize) -> Option<usize> {
    let columns = right.len() + 1;
    let mut before_last = vec![0; columns];
    let mut last: Vec<usize> = (0..columns).collect();
    let mut current = vec![0; columns];
    for (row, &from) in left.iter().enumerate() {
        current[0] = row + 1;
        for (column, &to) in right.iter().enumerate() {
            let mut edits = (last[column] + usize::from(from != to)).min(last[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && from == right[column - 1] && left[row - 1] == to {
                edits = edits.min(before_last[column - 1] + 1);
            }
            current[column + 1] = edits;
        }
        if current.iter().all(|edits| *edits > limit) && last.iter().all(|edits| *edits > limit) {
            return None;
        }
        std::mem::swap(&mut before_last, &mut last);
        std::mem::swap(&mut last, &mut current);
    }
    Some(last[columns - 1]).filter(|edits| *edits <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted_and_a_swap_is_one() {
        let edits = |left: &str, right: &str| {
            distance(&left.chars().collect::<Vec<_>>(), &right.chars().collect::<Vec<_>>(), 99)
        };
        assert_eq!(edits("", ""), Some(0));
        assert_eq!(edits("uint32_t", "uint32_t"), Some(0));
        assert_eq!(edits("unit32_t", "uint32_t"), Some(1));
        assert_eq!(edits("kitten", "sitting"), Some(3));
        assert_eq!(edits("", "abc"), Some(3));
    }

    #[test]
    fn the_nearest_word_is_suggested_only_when_it_is_near() {
        let words = ["int", "uint32_t", "uint64_t", "size_t"];
        assert_eq!(nearest("unit64_t", words), Some("uint64_t"));
        assert_eq!(nearest("itn", words), Some("int"));
        assert_eq!(nearest("hwaddr", words), None);
        assert_eq!(nearest(&"x".repeat(1000), words), None);
        for words in [["read", "ready"], ["ready", "read"]] {
            assert_eq!(nearest("reads", words), Some("read"));
        }
    }
}

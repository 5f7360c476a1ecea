//! A reader of RFC 4180, as strict as can be: a quote within a bare cell, or text behind a quoted one, is a fault.

/// Splits a file into rows of cells. Rows may end in LF or CRLF.
pub(crate) fn rows(text: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (cell, behind) = rest.strip_prefix('"').map_or_else(|| bare(rest), quoted);
        row.push(cell);
        if let Some(next) = behind.strip_prefix(',') {
            assert!(!next.is_empty(), "the file ends behind a comma");
            rest = next;
            continue;
        }
        rest = behind
            .strip_prefix("\r\n")
            .or_else(|| behind.strip_prefix('\n'))
            .unwrap_or_else(|| panic!("no end of line: {:?}", behind.lines().next()));
        rows.push(std::mem::take(&mut row));
    }
    rows
}

fn bare(text: &str) -> (String, &str) {
    let end = text.find([',', '\r', '\n']).unwrap_or(text.len());
    let (cell, rest) = text.split_at(end);
    assert!(!cell.contains('"'), "a quote in a bare cell: {cell}");
    (cell.to_owned(), rest)
}

fn quoted(mut text: &str) -> (String, &str) {
    let mut cell = String::new();
    loop {
        let (part, rest) = text.split_once('"').expect("a closing quote");
        cell.push_str(part);
        match rest.strip_prefix('"') {
            Some(more) => {
                cell.push('"');
                text = more;
            }
            None => return (cell, rest),
        }
    }
}

//! Ids that are places among the declarations: the rules of each era, and how the rule of a file is told.

mod support;

use simpletrace_format::events::{EventIndex, EventSet, InferredNumbering, Mode, Numbering, NumberingReason, SeenIds};
use simpletrace_format::{EventId, Record, SliceReader, Version};
use support::bytes::Bytes;

/// The same declarations in both forms.
fn declared(files: &[&str]) -> (EventSet, EventIndex) {
    let mut set = EventSet::new();
    let mut index = EventIndex::new();
    for source in files {
        let _ = set.add("trace-events", source.as_bytes(), Mode::Lenient);
        index.add("trace-events", source.as_bytes().to_vec());
    }
    (set, index)
}

/// The names by id, "?" for an id whose line is of no use, once both forms have given the same.
#[track_caller]
fn names(files: &[&str], numbering: Numbering) -> Vec<String> {
    let (set, index) = declared(files);
    let (by_id, lookup) = (set.by_id(numbering), index.by_id(numbering));
    assert_eq!(by_id.len(), lookup.len());
    assert_eq!(by_id.is_empty(), lookup.is_empty());
    let ids = || (0..by_id.len() as u64).map(EventId);
    let (of_set, of_index) = (by_id.names(), lookup.names());
    let name = |id| {
        let event = by_id.get(id);
        // An index does not number its files.
        let event_of_index = lookup.get(id).and_then(|found| found.event);
        let mut event_of_set = event.cloned();
        event_of_set.iter_mut().for_each(|event| event.file = 0);
        assert_eq!(event_of_index, event_of_set);
        let name = event.map(|event| event.name.as_str());
        assert_eq!(of_set.slot(id).map(|slot| of_set.name(slot)), name);
        if name.is_some() {
            assert_eq!(lookup.name(id), name);
            assert_eq!(of_index.slot(id).map(|slot| of_index.name(slot)), name);
        }
        name.unwrap_or("?").to_owned()
    };
    assert!(by_id.get(EventId(by_id.len() as u64)).is_none() && lookup.get(EventId(u64::MAX)).is_none());
    ids().map(name).collect()
}

const LINES: &str = "# events\na(void)\n\ndisable b(int x)\n c(int x)\ntcg d(TCGv t) \"\", \"\"\nvcpu e(int n)\n";

#[test]
fn all_lines_count_and_tcg_lines_count_twice() {
    assert_eq!(names(&[LINES], Numbering::All), ["a", "b", "c", "d_trans", "d_exec", "e"]);
    let (set, _) = declared(&[LINES]);
    let by_id = set.by_id(Numbering::All);
    assert_eq!(by_id.get(EventId(5)).unwrap().args[0].name, "__cpu");
}

#[test]
fn disabled_lines_do_not_count_where_only_enabled_ones_do() {
    assert_eq!(names(&[LINES], Numbering::Enabled), ["a", "c", "d_trans", "d_exec", "e"]);
}

#[test]
fn several_files_are_numbered_one_behind_the_other() {
    let files = ["a(int x)\ndisable b(void)\n", "disable a(char *s)\nc(void)\n"];
    assert_eq!(names(&files, Numbering::All), ["a", "b", "a", "c"]);
    assert_eq!(names(&files, Numbering::Enabled), ["a", "c"]);
    // Of one name, each id has its own declaration.
    let (set, index) = declared(&files);
    for (id, c_type) in [(0, "int"), (2, "char *")] {
        let event = set.by_id(Numbering::All).get(EventId(id)).unwrap();
        assert_eq!(event.args[0].c_type, c_type);
        let by_id = index.by_id(Numbering::All);
        assert_eq!(by_id.get(EventId(id)).unwrap().event.unwrap().args, event.args);
    }
}

#[test]
fn a_line_that_cannot_be_understood_has_its_numbers_all_the_same() {
    let files = ["a(int\nb(void)\ndisable odd(int x,)\nno parenthesis\ntcg t(,)\n", "disable line\nc(void)\n(int x)\n"];
    assert_eq!(names(&files, Numbering::All), ["?", "b", "?", "?", "?", "?", "?", "c", "?"]);
    assert_eq!(names(&files, Numbering::Enabled), ["?", "b", "?", "?", "?", "c", "?"]);
}

#[test]
fn nothing_declared_gives_no_ids() {
    assert_eq!(names(&[], Numbering::All), Vec::<String>::new());
    assert_eq!(names(&["# a\n\n"], Numbering::Enabled), Vec::<String>::new());
}

#[test]
fn every_version_but_0_has_one_rule() {
    assert_eq!(
        Version::ALL.map(Numbering::of),
        [None, Some(Numbering::Enabled), Some(Numbering::All), Some(Numbering::All)]
    );
}

/// The rule that is inferred from records of (id, words), once both forms have given the same; and how it is said.
#[track_caller]
fn infer(source: &str, records: &[(u64, &[u64])]) -> (InferredNumbering, String) {
    let start = Bytes::big().header_of_version(0);
    let file = records.iter().fold(start, |file, (id, words)| file.event_of_words(*id, 1, words)).build();
    let mut seen = SeenIds::default();
    for record in SliceReader::new(&file).unwrap() {
        if let Record::Event(event) = record.unwrap() {
            seen.add(&event);
        }
    }
    let (set, index) = declared(&[source]);
    let inferred = set.infer_numbering(&seen);
    assert_eq!(index.infer_numbering(&seen), inferred);
    let text = inferred.to_string();
    (inferred, text)
}

const SOURCE: &str = "a(int x)\ndisable b(int x)\nc(int x, int y)\nd(void)\n";

#[test]
fn an_id_beyond_the_enabled_events_means_that_all_count() {
    let (inferred, text) = infer(SOURCE, &[(0, &[1]), (3, &[])]);
    assert_eq!(inferred.numbering, Numbering::All);
    assert!(matches!(inferred.reason, NumberingReason::OtherMisfits(_)));
    assert_eq!(
        text,
        "ids count all declarations, since the declarations without 'disable' do not fit: event 3 is beyond the 3 events"
    );
}

#[test]
fn an_event_with_more_words_than_all_lines_give_it_means_that_enabled_ones_count() {
    let (inferred, text) = infer(SOURCE, &[(1, &[1, 2]), (1, &[0, 0]), (2, &[])]);
    assert_eq!(inferred.numbering, Numbering::Enabled);
    assert_eq!(
        text,
        "ids count the declarations without 'disable', since all declarations do not fit: event 1 has 2 arguments, b has 1"
    );
}

#[test]
fn where_both_rules_fit_the_default_is_taken_and_said_so() {
    let (inferred, text) = infer(SOURCE, &[(0, &[1]), (1, &[1])]);
    assert_eq!((inferred.numbering, inferred.reason), (Numbering::VERSION_0_DEFAULT, NumberingReason::BothFit));
    assert_eq!(text, "ids count the declarations without 'disable', by default: all declarations would fit as well");
}

#[test]
fn where_the_rules_do_not_differ_that_is_said() {
    for records in [&[][..], &[(0, &[1][..])]] {
        let (inferred, text) = infer(SOURCE, records);
        assert_eq!(
            (inferred.numbering, inferred.reason),
            (Numbering::VERSION_0_DEFAULT, NumberingReason::NoDifference)
        );
        assert_eq!(
            text,
            "ids count the declarations without 'disable'; for the ids in this file it makes no difference"
        );
    }
}

#[test]
fn where_neither_rule_fits_the_one_with_fewer_misfits_is_taken() {
    let (inferred, text) = infer(SOURCE, &[(0, &[1, 2]), (3, &[]), (9, &[])]);
    assert_eq!(inferred.numbering, Numbering::All);
    assert!(matches!(inferred.reason, NumberingReason::NeitherFits(_)));
    assert_eq!(
        text,
        "ids count all declarations, but these are hardly the right declarations: event 0 has 2 arguments, a has 1, and 1 more id"
    );
    let (inferred, text) = infer(SOURCE, &[(0, &[1, 2]), (8, &[]), (9, &[])]);
    assert_eq!(inferred.numbering, Numbering::VERSION_0_DEFAULT);
    assert!(text.ends_with("event 0 has 2 arguments, a has 1, and 2 more ids"), "{text}");
}

#[test]
fn a_line_that_cannot_be_understood_speaks_against_no_rule() {
    let (inferred, _) = infer("a(int\n", &[(0, &[1, 2, 3])]);
    assert_eq!(inferred.reason, NumberingReason::BothFit);
}

#[test]
fn reserved_ids_have_no_say() {
    let (inferred, _) = infer(SOURCE, &[(1 << 63, &[1])]);
    assert_eq!(inferred.reason, NumberingReason::NoDifference);
}

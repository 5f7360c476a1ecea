//! `recover`: finishes the trace of a durable recording that was killed.

use anyhow::Result;

use super::args::RecoverArgs;
use crate::findings::Outcome;

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &RecoverArgs) -> Result<Outcome> {
    anyhow::bail!("recover works where recordings can be durable: on Linux")
}

#[cfg(target_os = "linux")]
pub(crate) use linux::run;

#[cfg(target_os = "linux")]
mod linux {
    use anyhow::bail;
    use serde::Serialize;
    use simpletrace_format::durable::{Replayed, ReplayedLosses};

    use super::{Outcome, RecoverArgs, Result};
    use crate::cli::args::ReportFormat;
    use crate::findings::count;
    use crate::output::Output;
    use crate::recover::{self, Entry, Listed, Owner, Recovered};
    use crate::render::printable;
    use crate::say;

    pub(crate) fn run(args: &RecoverArgs) -> Result<Outcome> {
        if args.list {
            return list(args);
        }
        if args.remove {
            return remove(args);
        }
        let [path] = &args.files[..] else {
            bail!("recover takes one trace at a time");
        };
        let recovered = recover::recover(path, &args.segments)?;
        let name = printable(&path.display().to_string());
        let report = Report::new(name, &recovered);
        print(args.format, &report, |output| report.print(output))?;
        say_of(&recovered.replayed);
        if recovered.rings_elsewhere > 0 {
            let rings = count(recovered.rings_elsewhere, "ring");
            say::warning(&format!("{rings} had no room in the segment: what was in there died with the process"));
        }
        Ok(outcome(&recovered.replayed))
    }

    fn list(args: &RecoverArgs) -> Result<Outcome> {
        let listed = recover::list(&args.segments)?;
        let lines: Vec<_> = listed.iter().map(Line::new).collect();
        print(args.format, &ListReport { schema: "simpletrace-rs.segments/1", segments: &lines }, |output| {
            for line in &lines {
                output.block.put(line.text());
            }
        })?;
        if listed.is_empty() {
            say::note(&format!("no segments in {}", args.segments.display()));
        }
        Ok(Outcome::Good)
    }

    fn remove(args: &RecoverArgs) -> Result<Outcome> {
        let mut outcome = Outcome::Good;
        for path in &args.files {
            match recover::remove(path, &args.segments) {
                Ok((path, lost)) => {
                    let with_it = match lost {
                        None => "nobody can tell what was in it".to_owned(),
                        Some(Replayed { records, lost, .. }) => {
                            let told = if lost.sum() == 0 {
                                String::new()
                            } else {
                                format!(", and the knowledge of {} that were lost before", count(lost.sum(), "event"))
                            };
                            format!("{} lost with it{told}", count(records, "record"))
                        }
                    };
                    say::note(&format!("{} removed: {with_it}", path.display()));
                }
                Err(error) => {
                    say::error(&format!("{error:#}"));
                    outcome = Outcome::Failed;
                }
            }
        }
        Ok(outcome)
    }

    fn print(format: ReportFormat, report: &impl Serialize, as_text: impl FnOnce(&mut Output)) -> Result<()> {
        let mut output = Output::create(None, [])?;
        match format {
            ReportFormat::Text => as_text(&mut output),
            ReportFormat::Json => {
                output.block.put(serde_json::to_string_pretty(report)?);
                output.block.byte(b'\n');
            }
        }
        output.finish()
    }

    /// Says what was not as it should be.
    fn say_of(replayed: &Replayed) {
        for text in damaged_rings(replayed) {
            say::error(&format!("{text}: what is behind that is marked as a gap of unknown size"));
        }
        if replayed.unnamed > 0 {
            let records = count(replayed.unnamed, "record");
            say::warning(&format!("{records} of unknown event: the segment had no room for the name, or lost it"));
        }
    }

    fn outcome(replayed: &Replayed) -> Outcome {
        if replayed.faults.is_empty() && replayed.unnamed == 0 { Outcome::Good } else { Outcome::Faulty }
    }

    fn damaged_rings(replayed: &Replayed) -> impl Iterator<Item = String> + '_ {
        replayed.faults.iter().map(|(index, fault)| format!("ring {index} is damaged: {fault}"))
    }

    /// The report, as `-F json` prints it; docs/RECOVERY.md says what each field means.
    #[derive(Debug, Serialize)]
    struct Report {
        schema: &'static str,
        file: String,
        pid: u32,
        from_bytes: u64,
        to_bytes: u64,
        records: u64,
        first_ns: Option<u64>,
        last_ns: Option<u64>,
        lost: Lost,
        unnamed: u64,
        rings_elsewhere: u64,
        damaged_rings: Vec<String>,
    }

    #[derive(Debug, Serialize)]
    struct Lost {
        refused: u64,
        nested: u64,
        no_ring: u64,
        not_written: u64,
        off: u64,
    }

    impl Lost {
        const fn new(lost: ReplayedLosses) -> Self {
            let ReplayedLosses { refused, nested, no_ring, not_written, off } = lost;
            Self { refused, nested, no_ring, not_written, off }
        }

        fn text(&self) -> String {
            let Self { refused, nested, no_ring, not_written, off } = *self;
            let parts: Vec<_> = [
                (refused, "refused by a ring"),
                (nested, "nested in another"),
                (no_ring, "of threads without a ring"),
                (not_written, "not written before"),
                (off, "from while recording was off"),
            ]
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{number} {what}"))
            .collect();
            if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
        }
    }

    impl Report {
        fn new(file: String, recovered: &Recovered) -> Self {
            let Recovered { pid, rings_elsewhere, from_bytes, to_bytes, ref replayed } = *recovered;
            let Replayed { records, first_ns, last_ns, lost, unnamed, .. } = *replayed;
            Self {
                schema: "simpletrace-rs.recover/1",
                file,
                pid,
                from_bytes,
                to_bytes,
                records,
                first_ns,
                last_ns,
                lost: Lost::new(lost),
                unnamed,
                rings_elsewhere,
                damaged_rings: damaged_rings(replayed).collect(),
            }
        }

        fn print(&self, output: &mut Output) {
            let mut line = |name: &str, text: String| output.block.put(format!("{name:<9} {text}\n"));
            line("file", format!("{}: {} bytes, now {}", self.file, self.from_bytes, self.to_bytes));
            line("pid", self.pid.to_string());
            line("added", count(self.records, "event"));
            line("lost", self.lost.text());
        }
    }

    #[derive(Debug, Serialize)]
    struct ListReport<'a> {
        schema: &'static str,
        segments: &'a [Line],
    }

    /// A segment, as `--list` shows it.
    #[derive(Debug, Default, Serialize)]
    struct Line {
        segment: String,
        error: Option<String>,
        trace: Option<String>,
        is_there: Option<bool>,
        pid: Option<u32>,
        owner: Option<&'static str>,
        waiting_bytes: Option<u64>,
        records: Option<u64>,
        lost: Option<u64>,
        rings_elsewhere: Option<u64>,
    }

    impl Line {
        fn new(listed: &Listed) -> Self {
            let segment = printable(&listed.path.display().to_string());
            match &listed.entry {
                Err(error) => Self { segment, error: Some(printable(&format!("{error:#}"))), ..Self::default() },
                Ok(Entry { trace, is_there, pid, owner, rings_elsewhere, waiting_bytes, replayed }) => Self {
                    segment,
                    error: None,
                    trace: Some(printable(&trace.display().to_string())),
                    is_there: Some(*is_there),
                    pid: Some(*pid),
                    owner: Some(match owner {
                        Some(Owner::Alive) => "alive",
                        Some(Owner::Dead) => "dead",
                        Some(Owner::OtherBoot) => "other boot",
                        None => "in use",
                    }),
                    waiting_bytes: Some(*waiting_bytes),
                    records: replayed.as_ref().map(|replayed| replayed.records),
                    lost: replayed.as_ref().map(|replayed| replayed.lost.sum()),
                    rings_elsewhere: Some(*rings_elsewhere),
                },
            }
        }

        fn text(&self) -> String {
            let segment = &self.segment;
            let (Some(trace), Some(pid), Some(owner)) = (&self.trace, self.pid, self.owner) else {
                return format!("{segment}: {}\n", self.error.as_deref().unwrap_or_default());
            };
            let gone = if self.is_there == Some(true) { "" } else { " (moved or removed)" };
            let waiting = match (self.records, self.waiting_bytes) {
                (Some(records), bytes) => format!(
                    "{} and {} waiting, {} lost",
                    count(records, "record"),
                    count(bytes.unwrap_or(0), "byte"),
                    count(self.lost.unwrap_or(0), "event")
                ),
                (None, bytes) => format!("{} waiting", count(bytes.unwrap_or(0), "byte")),
            };
            format!("{segment}: {trace}{gone}, process {pid} ({owner}), {waiting}\n")
        }
    }
}

//! The slowest operations, and what went on around them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anyhow::Result;

use super::super::args::Colour;
use crate::groups::GroupId;
use crate::pairing::{Drops, KeyValue, Out, Picks, Question, key_values};
use crate::render::{Block, PerKind, Render as _, Text};
use crate::trace::{Event, Item, Trace};

/// The slowest operations.
pub(crate) struct Top {
    most: usize,
    drops: Drops,
    /// The least slow of them first.
    slowest: BinaryHeap<Reverse<Slow>>,
    /// Those of them that would not count if it turned out that events are missing.
    pending: BinaryHeap<Reverse<Slow>>,
}

/// A slow operation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slow {
    pub(crate) latency_ns: u64,
    /// Of equals the earlier one is the slower.
    pub(crate) begin_ns: Reverse<u64>,
    pub(crate) hops_ns: Box<[u64]>,
    pub(crate) group: GroupId,
    pub(crate) key: Box<[KeyValue]>,
    pub(crate) straddles: bool,
}

impl Slow {
    pub(crate) fn end_ns(&self) -> u64 {
        self.begin_ns.0 + self.latency_ns
    }
}

impl Top {
    /// The most that can be asked for.
    pub(crate) const MAX: usize = 100_000;

    pub(crate) fn new(most: usize, drops: Drops) -> Self {
        Self { most, drops, slowest: BinaryHeap::new(), pending: BinaryHeap::new() }
    }

    #[inline]
    pub(crate) fn take(&mut self, out: &Out<'_>) {
        match out {
            _ if self.most == 0 => {}
            Out::Pair(pair) if pair.straddles && self.drops == Drops::Exclude => {}
            Out::Pair(pair) => {
                let latency_ns = pair.end_ns - pair.begin_ns;
                let heap = if self.drops == Drops::Exclude { &mut self.pending } else { &mut self.slowest };
                if heap.len() < self.most
                    || heap.peek().is_some_and(|Reverse(least)| {
                        (least.latency_ns, least.begin_ns) < (latency_ns, Reverse(pair.begin_ns))
                    })
                {
                    let slow = Slow {
                        latency_ns,
                        begin_ns: Reverse(pair.begin_ns),
                        hops_ns: pair.hops_ns.into(),
                        group: pair.group,
                        key: pair.key().into(),
                        straddles: pair.straddles,
                    };
                    add(heap, slow, self.most);
                }
            }
            Out::Suspect => self.pending.clear(),
            Out::Depth { .. } => {}
        }
    }

    /// All of them, the slowest first.
    pub(crate) fn finish(mut self) -> Slowest {
        for Reverse(slow) in self.pending.drain() {
            add(&mut self.slowest, slow, self.most);
        }
        Slowest(self.slowest.into_sorted_vec().into_iter().map(|Reverse(slow)| slow).collect())
    }
}

fn add(heap: &mut BinaryHeap<Reverse<Slow>>, slow: Slow, most: usize) {
    heap.push(Reverse(slow));
    if heap.len() > most {
        heap.pop();
    }
}

/// What events are in an operation: the stage, and how to take the key out of a record.
struct Roles<'a> {
    question: &'a Question,
    of_kinds: PerKind<Vec<(usize, Picks)>>,
}

impl Roles<'_> {
    /// Whether a record is one of an operation: of one of its times, with its key.
    fn is_of(&mut self, slow: &Slow, event: &Event<'_>) -> bool {
        let Question { chain, on, .. } = self.question;
        let time_ns = event.record.timestamp_ns;
        let roles = self.of_kinds.get(event.kind, |kind| {
            let picks = |stage| Picks::new(kind, on.iter().map(|part| part.arg(&kind.name, stage)), &[], stage);
            let places = chain.places(&kind.name).into_iter();
            places.filter_map(|place| Some((place.stage, picks(place.stage)?))).collect()
        });
        roles.iter().any(|(stage, picks)| {
            let own_ns = match stage.checked_sub(1) {
                None => slow.begin_ns.0,
                Some(hop) => slow.hops_ns.get(hop).copied().unwrap_or(slow.end_ns()),
            };
            let key = || Some(key_values(&picks.take(&event.record, &event.kind.name)?.key[..on.len()]));
            own_ns == time_ns && key().is_some_and(|key| key.iter().eq(slow.key.iter().take(on.len())))
        })
    }
}

/// The slowest operations, the slowest first.
pub(crate) struct Slowest(pub(crate) Vec<Slow>);

impl Slowest {
    /// The most around which events are shown.
    pub(crate) const MAX_CONTEXTS: usize = 100;
    /// Events around one that are shown.
    const MAX_EVENTS: usize = 1_000;

    /// All events from so long before each began to so long after it ended, its own marked.
    pub(crate) fn context(
        &self,
        trace: &mut Trace,
        question: &Question,
        context_ns: u64,
        is_raw: bool,
    ) -> Result<String> {
        let mut roles = Roles { question, of_kinds: PerKind::default() };
        let mut text = Text::new(Colour::on_stdout(), None, is_raw);
        let mut around: Vec<(Block, usize)> = self.0.iter().map(|_| (Block::with_capacity(0), 0)).collect();
        let around_ns =
            |slow: &Slow| (slow.begin_ns.0.saturating_sub(context_ns), slow.end_ns().saturating_add(context_ns));
        let (mut first_ns, mut last_ns) = (u64::MAX, 0);
        for (from_ns, to_ns) in self.0.iter().map(around_ns) {
            (first_ns, last_ns) = (first_ns.min(from_ns), last_ns.max(to_ns));
        }
        trace.for_each(|item| {
            let time_ns = match &item {
                Item::Event(event) => event.record.timestamp_ns,
                Item::Gap(gap) => gap.record.timestamp_ns,
                _ => return Ok(()),
            };
            if time_ns < first_ns || time_ns > last_ns {
                return Ok(());
            }
            for (slow, (block, events)) in self.0.iter().zip(&mut around) {
                let (from_ns, to_ns) = around_ns(slow);
                if time_ns < from_ns || time_ns > to_ns {
                    continue;
                }
                *events += 1;
                if *events > Self::MAX_EVENTS {
                    continue;
                }
                match &item {
                    Item::Event(event) => {
                        block.put(if roles.is_of(slow, event) { "> " } else { "  " });
                        text.event(event, block);
                    }
                    Item::Gap(gap) => {
                        block.put("  ");
                        text.gap(gap, block);
                    }
                    _ => {}
                }
            }
            Ok(())
        })?;
        let mut all = String::new();
        for (rank, (block, events)) in (1..).zip(&around) {
            all += &format!("\n#{rank}\n{}", String::from_utf8_lossy(block.as_bytes()));
            if let Some(more @ 1..) = events.checked_sub(Self::MAX_EVENTS) {
                all += &format!("  ... and {more} events more\n");
            }
        }
        Ok(all)
    }
}

//! Presets for which there is no real trace, on records as QEMU 8.2 declares them: several operations at once, which end in another order, an end
//! without a beginning, a beginning without an end, addresses that the next operation uses again. What is expected was worked out by hand, from when
//! QEMU's code records what.

mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value as Json;
use simpletrace_format::events::{ArgType, EventSet, Mode};
use simpletrace_format::{ByteOrder, EventId, TraceWriter, Value};
use support::{Dir, shared};

/// A preset, and what it makes of records.
#[derive(Clone, Copy)]
struct Case {
    preset: &'static str,
    /// A line for each: the time in ns, the event, and arguments; those that are not there are 0 or empty.
    records: &'static str,
    /// Of all that is counted what is not 0.
    counts: &'static str,
    /// From when to when, and the values that are grouped by, as JSON has them.
    pairs: &'static [(u64, u64, &'static str)],
}

const CASES: &[Case] = &[
    // Three at once: 0xa1 ends last, 0xa2 is used again, 0xa9 began before the trace did, 0xa4 is under way at its end.
    Case {
        preset: "virtio-blk",
        records: "
            100 virtio_blk_handle_read vdev=0x1 req=0xa1 sector=8 nsectors=8
            110 virtio_blk_handle_write vdev=0x1 req=0xa2 sector=16 nsectors=8
            120 virtio_blk_handle_read vdev=0x2 req=0xa1 sector=8 nsectors=8
            130 virtio_blk_rw_complete vdev=0x1 req=0xa2 ret=0
            131 virtio_blk_req_complete vdev=0x1 req=0xa2 status=0
            135 virtio_blk_req_complete vdev=0x1 req=0xa9 status=0
            140 virtio_blk_handle_read vdev=0x1 req=0xa2 sector=24 nsectors=8
            150 virtio_blk_req_complete vdev=0x2 req=0xa1 status=0
            155 virtio_blk_handle_write vdev=0x1 req=0xa4 sector=32 nsectors=8
            160 virtio_blk_req_complete vdev=0x1 req=0xa2 status=1
            190 virtio_blk_req_complete vdev=0x1 req=0xa1 status=0",
        counts: "begins=5 open=1 orphans=1 pairs=4",
        pairs: &[
            (110, 131, "virtio_blk_handle_write"),
            (120, 150, "virtio_blk_handle_read"),
            (140, 160, "virtio_blk_handle_read"),
            (100, 190, "virtio_blk_handle_read"),
        ],
    },
    // 0xa3 fails, the guest is stopped, and when it goes on the request is taken anew.
    Case {
        preset: "virtio-blk-hops",
        records: "
            100 virtio_blk_handle_read vdev=0x1 req=0xa1
            105 virtio_blk_handle_write vdev=0x1 req=0xa2
            108 virtio_blk_handle_write vdev=0x1 req=0xa3
            110 virtio_blk_rw_complete vdev=0x1 req=0xa2
            115 virtio_blk_rw_complete vdev=0x1 req=0xa3 ret=-28
            120 virtio_blk_rw_complete vdev=0x1 req=0xa1
            125 virtio_blk_req_complete vdev=0x1 req=0xa1
            126 virtio_blk_req_complete vdev=0x1 req=0xa2
            200 virtio_blk_handle_write vdev=0x1 req=0xa3
            210 virtio_blk_rw_complete vdev=0x1 req=0xa3
            211 virtio_blk_req_complete vdev=0x1 req=0xa3
            220 virtio_blk_req_complete vdev=0x1 req=0xa5",
        counts: "begins=4 orphans=1 pairs=3 replaced=1",
        pairs: &[
            (100, 125, "virtio_blk_handle_read"),
            (105, 126, "virtio_blk_handle_write"),
            (200, 211, "virtio_blk_handle_write"),
        ],
    },
    // The element 0xe2 is given back to the guest's ring without having been used, and its memory is that of the next.
    Case {
        preset: "virtqueue-elem",
        records: "
            100 virtqueue_pop vq=0x11 elem=0xe1 in_num=1
            101 virtqueue_pop vq=0x11 elem=0xe2 in_num=1
            102 virtqueue_pop vq=0x12 elem=0xe3 in_num=1
            103 virtqueue_fill vq=0x12 elem=0xe9
            110 virtqueue_pop vq=0x11 elem=0xe2 in_num=1
            120 virtqueue_fill vq=0x11 elem=0xe2
            121 virtqueue_fill vq=0x12 elem=0xe3
            122 virtqueue_pop vq=0x12 elem=0xe3
            130 virtqueue_fill vq=0x11 elem=0xe1",
        counts: "begins=5 open=1 orphans=1 pairs=3 replaced=1",
        pairs: &[(110, 120, "17"), (102, 121, "18"), (100, 130, "17")],
    },
    // Two kicks are answered by one notification, and one by the other way of notifying.
    Case {
        preset: "virtqueue-kick",
        records: "
            90 virtio_notify vdev=0x1 vq=0x11
            100 virtio_queue_notify vdev=0x1 n=0 vq=0x11
            105 virtio_queue_notify vdev=0x1 n=1 vq=0x12
            110 virtio_queue_notify vdev=0x1 n=0 vq=0x11
            130 virtio_notify_irqfd vdev=0x1 vq=0x12
            150 virtio_notify vdev=0x1 vq=0x11
            160 virtio_queue_notify vdev=0x1 n=0 vq=0x11",
        counts: "begins=4 ignored=1 open=1 orphans=1 pairs=2",
        pairs: &[(105, 130, "18"), (100, 150, "17")],
    },
    Case {
        preset: "virtio-scsi",
        records: "
            100 virtio_scsi_cmd_req lun=0 tag=0x10 cmd=0x28
            101 virtio_scsi_cmd_req lun=0 tag=0x11 cmd=0x2a
            102 virtio_scsi_cmd_req lun=1 tag=0x10 cmd=0x28
            110 virtio_scsi_cmd_resp lun=1 tag=0x10 response=0 status=0
            115 virtio_scsi_cmd_resp lun=0 tag=0x99 response=9 status=0
            120 virtio_scsi_cmd_resp lun=0 tag=0x11 response=0 status=2
            121 virtio_scsi_cmd_req lun=0 tag=0x11 cmd=0x2a
            130 virtio_scsi_cmd_resp lun=0 tag=0x10 response=0 status=0",
        counts: "begins=4 open=1 orphans=1 pairs=3",
        pairs: &[(102, 110, "40"), (101, 120, "42"), (100, 130, "40")],
    },
    // What is cancelled completes all the same.
    Case {
        preset: "thread-pool",
        records: "
            100 thread_pool_submit pool=0x1 req=0xb1 opaque=0x7
            101 thread_pool_submit pool=0x1 req=0xb2 opaque=0x8
            102 thread_pool_cancel req=0xb1 opaque=0x7
            110 thread_pool_complete pool=0x1 req=0xb2 opaque=0x8 ret=0
            111 thread_pool_submit pool=0x1 req=0xb2 opaque=0x9
            112 thread_pool_complete pool=0x1 req=0xb9 opaque=0x9 ret=0
            120 thread_pool_complete pool=0x1 req=0xb1 opaque=0x7 ret=-125
            140 thread_pool_complete pool=0x1 req=0xb2 opaque=0x9 ret=0
            150 thread_pool_submit pool=0x1 req=0xb1 opaque=0x7",
        counts: "begins=4 open=1 orphans=1 pairs=3",
        pairs: &[(101, 110, ""), (100, 120, ""), (111, 140, "")],
    },
    // 0xc1 comes back with EAGAIN and EINTR before it ends; of 0xc3 the first part comes back, as a short read, and then the rest.
    Case {
        preset: "io_uring",
        records: "
            100 luring_co_submit bs=0x1 s=0x2 luringcb=0xc1 fd=9 type=2
            101 luring_co_submit bs=0x1 s=0x2 luringcb=0xc2 fd=9 type=1
            102 luring_co_submit bs=0x1 s=0x2 luringcb=0xc3 fd=9 nbytes=8192 type=1
            103 luring_process_completion s=0x2 aiocb=0xc1 ret=-11
            104 luring_process_completion s=0x2 aiocb=0xc1 ret=-4
            110 luring_process_completion s=0x2 aiocb=0xc2 ret=4096
            112 luring_process_completion s=0x2 aiocb=0xc3 ret=4096
            112 luring_resubmit_short_read s=0x2 luringcb=0xc3 nread=4096
            115 luring_process_completion s=0x2 aiocb=0xc1 ret=4096
            120 luring_process_completion s=0x2 aiocb=0xc3 ret=4096
            125 luring_co_submit bs=0x1 s=0x2 luringcb=0xc2 fd=9 type=1
            128 luring_co_submit bs=0x1 s=0x2 luringcb=0xc1 fd=9 type=1
            130 luring_process_completion s=0x2 aiocb=0xc2 ret=-5",
        counts: "begins=5 open=1 orphans=1 pairs=4",
        pairs: &[(101, 110, "1"), (102, 112, "1"), (100, 115, "2"), (125, 130, "1")],
    },
    // A copied range has an end only.
    Case {
        preset: "qcow2",
        records: "
            100 qcow2_writev_start_req co=0xd1 offset=0 bytes=4096
            101 qcow2_writev_start_req co=0xd2 offset=4096 bytes=4096
            105 qcow2_writev_start_part co=0xd1
            110 qcow2_writev_done_req co=0xd2 ret=0
            111 qcow2_writev_start_req co=0xd2 offset=8192 bytes=4096
            112 qcow2_writev_done_req co=0xd3 ret=0
            120 qcow2_writev_done_part co=0xd1 cur_bytes=4096
            121 qcow2_writev_done_req co=0xd1 ret=0
            130 qcow2_writev_done_req co=0xd2 ret=-28
            131 qcow2_writev_start_req co=0xd1 offset=0 bytes=4096",
        counts: "begins=4 open=1 orphans=1 pairs=3",
        pairs: &[(101, 110, ""), (100, 121, ""), (111, 130, "")],
    },
    // 0xdb3 is cancelled while it waits for memory, which nothing records, and its memory is used again.
    Case {
        preset: "dma",
        records: "
            100 dma_blk_io dbs=0xdb1 bs=0x1 offset=0 to_dev=true
            101 dma_blk_io dbs=0xdb2 bs=0x1 offset=512 to_dev=false
            102 dma_blk_io dbs=0xdb3 bs=0x1 offset=1024 to_dev=false
            103 dma_map_wait dbs=0xdb3
            104 dma_aio_cancel dbs=0xdb3
            110 dma_blk_cb dbs=0xdb2 ret=0
            110 dma_complete dbs=0xdb2 ret=0 cb=0x9
            111 dma_blk_io dbs=0xdb3 bs=0x1 offset=2048 to_dev=true
            112 dma_complete dbs=0xdb9 ret=0 cb=0x9
            120 dma_complete dbs=0xdb1 ret=0 cb=0x9
            125 dma_complete dbs=0xdb3 ret=-5 cb=0x9
            130 dma_blk_io dbs=0xdb1 bs=0x1 offset=0 to_dev=true",
        counts: "begins=5 open=1 orphans=1 pairs=3 replaced=1",
        pairs: &[(101, 110, "false"), (100, 120, "true"), (111, 125, "true")],
    },
    // The same number of a command in two queues, and of two disks.
    Case {
        preset: "nvme",
        records: "
            100 nvme_submit_command s=0x1 q_index=1 cid=5
            101 nvme_submit_command s=0x1 q_index=0 cid=5
            102 nvme_submit_command s=0x2 q_index=1 cid=5
            103 nvme_submit_command_raw c0=1
            110 nvme_complete_command s=0x2 q_index=1 cid=5
            111 nvme_submit_command s=0x2 q_index=1 cid=5
            112 nvme_complete_command s=0x1 q_index=1 cid=7
            120 nvme_complete_command s=0x1 q_index=1 cid=5
            121 nvme_complete_command s=0x1 q_index=0 cid=5
            125 nvme_complete_command s=0x2 q_index=1 cid=5
            130 nvme_submit_command s=0x1 q_index=1 cid=6",
        counts: "begins=5 open=1 orphans=1 pairs=4",
        pairs: &[(102, 110, "1"), (100, 120, "1"), (101, 121, "0"), (111, 125, "1")],
    },
    // Walk, read and getattr at once; the getattr fails, the lock is cancelled by a flush. The clunk has no end, and an unlinkat with its tag fails.
    Case {
        preset: "9p",
        records: "
            100 v9fs_walk tag=1 id=110 fid=7 newfid=8 nwnames=1
            101 v9fs_read tag=2 id=116 fid=9 max_count=512
            102 v9fs_getattr tag=3 id=24 fid=9
            103 v9fs_lock tag=4 id=52 fid=9
            105 v9fs_flush tag=5 id=108 flush_tag=4
            110 v9fs_rerror tag=3 id=24 err=2
            111 v9fs_rcancel tag=4 id=52
            112 v9fs_getattr_return tag=6 id=24 mode=1
            115 v9fs_read_return tag=2 id=116 count=512 err=523
            116 v9fs_clunk tag=2 id=120 fid=9
            118 v9fs_rerror tag=2 id=76 err=2
            120 v9fs_walk_return tag=1 id=110 nwnames=1
            121 v9fs_mkdir tag=1 id=72 fid=7 name=x
            122 v9fs_mkdir_return tag=1 id=72
            130 v9fs_open tag=1 id=12 fid=8
            131 v9fs_open_return tag=1 id=12
            140 v9fs_read tag=1 id=116 fid=8",
        counts: "begins=7 open=1 orphans=1 pairs=6",
        pairs: &[
            (102, 110, "v9fs_getattr"),
            (103, 111, "v9fs_lock"),
            (101, 115, "v9fs_read"),
            (100, 120, "v9fs_walk"),
            (121, 122, "v9fs_mkdir"),
            (130, 131, "v9fs_open"),
        ],
    },
    // Two processors; an ioctl that is not KVM_RUN, a run that a signal ends, and KVM_RUN as POWER and MIPS have it.
    Case {
        preset: "guest-run",
        records: "
            90 kvm_run_exit cpu_index=1 reason=2
            95 kvm_vcpu_ioctl cpu_index=0 type=0x4090ae82
            100 kvm_vcpu_ioctl cpu_index=0 type=0xae80
            101 kvm_vcpu_ioctl cpu_index=1 type=0xae80
            110 kvm_run_exit cpu_index=1 reason=6
            112 kvm_vcpu_ioctl cpu_index=1 type=0x2000ae80
            115 kvm_vcpu_ioctl cpu_index=0 type=0xae80
            120 kvm_run_exit cpu_index=0 reason=2
            130 kvm_run_exit cpu_index=1 reason=2
            140 kvm_vcpu_ioctl cpu_index=0 type=0xae80",
        counts: "begins=5 open=1 orphans=1 pairs=3 replaced=1",
        pairs: &[(101, 110, "6"), (115, 120, "2"), (112, 130, "2")],
    },
    Case {
        preset: "kvm-exits",
        records: "
            95 kvm_vcpu_ioctl cpu_index=0 type=0xae80
            100 kvm_run_exit cpu_index=0 reason=2
            101 kvm_run_exit cpu_index=1 reason=6
            102 kvm_vcpu_ioctl cpu_index=0 type=0x4090ae82
            110 kvm_vcpu_ioctl cpu_index=1 type=0xae80
            120 kvm_vcpu_ioctl cpu_index=0 type=0xae80
            125 kvm_vcpu_ioctl cpu_index=0 type=0xae80
            130 kvm_run_exit cpu_index=1 reason=2",
        counts: "begins=3 open=1 orphans=2 pairs=2",
        pairs: &[(101, 110, "6"), (100, 120, "2")],
    },
    Case {
        preset: "aio-poll",
        records: "
            90 run_poll_handlers_end ctx=0x2 progress=true timeout=0
            100 run_poll_handlers_begin ctx=0x1 max_ns=4000 timeout=-1
            105 run_poll_handlers_begin ctx=0x2 max_ns=4000 timeout=-1
            110 run_poll_handlers_end ctx=0x1 progress=false timeout=-1
            111 run_poll_handlers_begin ctx=0x1 max_ns=4000 timeout=-1
            120 run_poll_handlers_end ctx=0x2 progress=true timeout=0
            121 run_poll_handlers_end ctx=0x1 progress=false timeout=-1
            130 run_poll_handlers_begin ctx=0x1 max_ns=4000 timeout=-1",
        counts: "begins=4 open=1 orphans=1 pairs=3",
        pairs: &[(100, 110, "false"), (105, 120, "true"), (111, 121, "false")],
    },
    // Two wait for one mutex and get it in the order in which they asked, which is not known: the newest is taken for the first. Of another one the
    // trace has no beginning, and one waits on.
    Case {
        preset: "locks",
        records: "
            90 qemu_mutex_locked mutex=0x2 file=b.c line=9
            95 qemu_mutex_unlock mutex=0x2 file=b.c line=10
            100 qemu_mutex_lock mutex=0x1 file=a.c line=1
            101 qemu_mutex_locked mutex=0x1 file=a.c line=1
            105 qemu_mutex_lock mutex=0x1 file=a.c line=2
            106 qemu_mutex_lock mutex=0x2 file=b.c line=9
            107 qemu_mutex_locked mutex=0x2 file=b.c line=9
            108 qemu_mutex_lock mutex=0x1 file=a.c line=3
            110 qemu_mutex_unlock mutex=0x1 file=a.c line=4
            111 qemu_mutex_locked mutex=0x1 file=a.c line=2
            115 qemu_mutex_unlock mutex=0x2 file=b.c line=10
            120 qemu_mutex_unlock mutex=0x1 file=a.c line=5
            121 qemu_mutex_locked mutex=0x1 file=a.c line=3
            140 qemu_mutex_unlock mutex=0x1 file=a.c line=6
            150 qemu_mutex_lock mutex=0x1 file=a.c line=1",
        counts: "begins=5 open=1 orphans=2 pairs=4",
        pairs: &[(100, 110, "a.c 1"), (106, 115, "b.c 9"), (108, 120, "a.c 3"), (105, 140, "a.c 2")],
    },
    // 0x52 is handed the mutex while it asks for it, which has no record of its end; later it waits for it again.
    Case {
        preset: "co-mutex",
        records: "
            100 qemu_co_mutex_lock_entry mutex=0x1 self=0x51
            101 qemu_co_mutex_lock_entry mutex=0x1 self=0x52
            102 qemu_co_mutex_lock_entry mutex=0x1 self=0x53
            103 qemu_co_mutex_lock_uncontended mutex=0x2 self=0x51
            110 qemu_co_mutex_lock_return mutex=0x1 self=0x53
            112 qemu_co_mutex_lock_return mutex=0x1 self=0x59
            120 qemu_co_mutex_lock_return mutex=0x1 self=0x51
            121 qemu_co_mutex_lock_entry mutex=0x1 self=0x52
            125 qemu_co_mutex_lock_entry mutex=0x2 self=0x51
            130 qemu_co_mutex_lock_return mutex=0x1 self=0x52",
        counts: "begins=5 open=1 orphans=1 pairs=3 replaced=1",
        pairs: &[(102, 110, "1"), (100, 120, "1"), (121, 130, "1")],
    },
    // The monitor 0x2 goes away with its request in the queue, whose memory is that of a request of 0x1.
    Case {
        preset: "qmp",
        records: "
            100 monitor_qmp_in_band_enqueue req=0x61 mon=0x1 len=0
            101 monitor_qmp_in_band_enqueue req=0x62 mon=0x1 len=1
            102 monitor_qmp_in_band_enqueue req=0x63 mon=0x2 len=0
            110 monitor_qmp_in_band_dequeue req=0x61 len=1
            111 monitor_qmp_in_band_enqueue req=0x63 mon=0x1 len=1
            112 monitor_qmp_in_band_dequeue req=0x69 len=1
            120 monitor_qmp_in_band_dequeue req=0x62 len=1
            130 monitor_qmp_in_band_dequeue req=0x63 len=0
            131 monitor_qmp_in_band_enqueue req=0x61 mon=0x1 len=0",
        counts: "begins=5 open=1 orphans=1 pairs=3 replaced=1",
        pairs: &[(100, 110, ""), (101, 120, ""), (111, 130, "")],
    },
];

/// A trace with these records, of the events that are in it.
fn trace(records: &str, declared: &EventSet, order: ByteOrder) -> Vec<u8> {
    let mut writer = TraceWriter::new(Vec::new(), order).unwrap();
    let lines: Vec<Vec<&str>> = records.trim().lines().map(|line| line.split_whitespace().collect()).collect();
    let id = |name: &str| {
        let place = declared.iter().position(|event| event.name == name);
        EventId(place.unwrap_or_else(|| panic!("{name} is not declared")) as u64)
    };
    let names: BTreeSet<&str> = lines.iter().map(|line| line[1]).collect();
    names.into_iter().for_each(|name| writer.mapping(id(name), name).unwrap());
    for line in &lines {
        let event = declared.get(line[1]).unwrap();
        let given: Vec<_> = line[2..].iter().map(|arg| arg.split_once('=').unwrap()).collect();
        for (name, _) in &given {
            assert!(event.args.iter().any(|arg| arg.name == *name), "{} has no {name}", line[1]);
        }
        let values = event.args.iter().map(|arg| {
            let text = given.iter().find(|(name, _)| *name == arg.name).map(|&(_, text)| text);
            value(arg.ty, text)
        });
        writer.event(id(line[1]), line[0].parse().unwrap(), 1, &values.collect::<Vec<_>>()).unwrap();
    }
    writer.into_inner()
}

fn value(ty: ArgType, text: Option<&str>) -> Value<'_> {
    if ty.is_string() {
        return Value::String(text.unwrap_or_default().as_bytes());
    }
    let text = text.unwrap_or("0");
    let word = match (text, text.strip_prefix("0x"), text.strip_prefix('-')) {
        ("true", ..) => 1,
        ("false", ..) => 0,
        (_, Some(digits), _) => u64::from_str_radix(digits, 16).unwrap(),
        (.., Some(digits)) => digits.parse::<u64>().unwrap().wrapping_neg(),
        _ => text.parse().unwrap(),
    };
    Value::from_word(word, ty)
}

#[test]
fn presets_pair_what_qemu_records_as_worked_out_by_hand() {
    let Some(folder) = shared::traces("presets_pair_what_qemu_records_as_worked_out_by_hand", "qemu-8.2") else {
        return;
    };
    let mut declared = EventSet::new();
    let text = folder.read("qemu-8.2/trace-events-all");
    declared.add("trace-events-all", &text, Mode::Lenient);
    let dir = Dir::with([("events", &text[..])]);
    let list = dir.run("latency --list -F ndjson").exits(0).ndjson();
    let known: BTreeSet<_> = list.iter().map(|preset| preset["preset"].as_str().unwrap()).collect();
    let tested: BTreeSet<_> = CASES.iter().map(|case| case.preset).chain(["emulator-disk"]).collect();
    assert_eq!(tested, known, "each preset has its case; that of the emulator is tested beside it");

    pair(CASES, &declared, &dir);
}

/// Where QEMU 10.2 records otherwise.
const CASES_10_2: &[Case] = &[
    Case {
        preset: "thread-pool",
        records: "
            100 thread_pool_submit_aio pool=0x1 req=0xb1 opaque=0x7
            101 thread_pool_submit_aio pool=0x1 req=0xb2 opaque=0x8
            102 thread_pool_cancel_aio req=0xb1 opaque=0x7
            110 thread_pool_complete_aio pool=0x1 req=0xb2 opaque=0x8 ret=0
            111 thread_pool_submit_aio pool=0x1 req=0xb2 opaque=0x9
            112 thread_pool_complete_aio pool=0x1 req=0xb9 opaque=0x9 ret=0
            120 thread_pool_complete_aio pool=0x1 req=0xb1 opaque=0x7 ret=-125
            140 thread_pool_complete_aio pool=0x1 req=0xb2 opaque=0x9 ret=0
            150 thread_pool_submit_aio pool=0x1 req=0xb1 opaque=0x7",
        counts: "begins=4 open=1 orphans=1 pairs=3",
        pairs: &[(101, 110, ""), (100, 120, ""), (111, 140, "")],
    },
    // As above: 0xc1 comes back with EAGAIN and EINTR, 0xc3 in two parts.
    Case {
        preset: "io_uring",
        records: "
            100 luring_co_submit bs=0x1 req=0xc1 fd=9 type=2
            101 luring_co_submit bs=0x1 req=0xc2 fd=9 type=1
            102 luring_co_submit bs=0x1 req=0xc3 fd=9 nbytes=8192 type=1
            103 luring_cqe_handler req=0xc1 ret=-11
            104 luring_cqe_handler req=0xc1 ret=-4
            110 luring_cqe_handler req=0xc2 ret=4096
            112 luring_cqe_handler req=0xc3 ret=4096
            112 luring_resubmit_short_read req=0xc3 nread=4096
            115 luring_cqe_handler req=0xc1 ret=4096
            120 luring_cqe_handler req=0xc3 ret=4096
            125 luring_co_submit bs=0x1 req=0xc2 fd=9 type=1
            128 luring_co_submit bs=0x1 req=0xc1 fd=9 type=1
            130 luring_cqe_handler req=0xc2 ret=-5",
        counts: "begins=5 open=1 orphans=1 pairs=4",
        pairs: &[(101, 110, "1"), (102, 112, "1"), (100, 115, "2"), (125, 130, "1")],
    },
];

#[test]
fn presets_pair_what_qemu_10_2_records_as_worked_out_by_hand() {
    let test = "presets_pair_what_qemu_10_2_records_as_worked_out_by_hand";
    let Some(folder) = shared::traces(test, "qemu-10.2") else { return };
    let mut declared = EventSet::new();
    let text = folder.read("qemu-10.2/trace-events-all");
    declared.add("trace-events-all", &text, Mode::Lenient);
    pair(CASES_10_2, &declared, &Dir::with([("events", &text[..])]));
    // Those that are recorded as before, as far as the tools that these declarations are of have their events.
    let same = ["qcow2", "nvme", "aio-poll", "locks", "co-mutex", "qmp"];
    let same: Vec<_> = CASES.iter().filter(|case| same.contains(&case.preset)).copied().collect();
    assert_eq!(same.len(), 6);
    pair(&same, &declared, &Dir::with([("events", &text[..])]));
}

/// Holds what the program makes of cases to what was worked out.
fn pair(cases: &[Case], declared: &EventSet, dir: &Dir) {
    for (number, case) in cases.iter().enumerate() {
        let order = support::sample::ORDERS[number % 2];
        dir.write("t", trace(case.records, declared, order));
        let run = dir.run(&format!("latency t events --preset {} --top 100 -F json", case.preset)).exits(0);
        let report = run.json();
        let mut counts = String::new();
        for name in ["backwards", "begins", "ignored", "incomplete", "late", "open", "orphans", "pairs", "replaced"] {
            match report[name].as_u64().unwrap() {
                0 => {}
                count => write!(counts, "{name}={count} ").unwrap(),
            }
        }
        assert_eq!(counts.trim_end(), case.counts, "{}", case.preset);
        assert_eq!(report["straddling"], 0, "{}", case.preset);
        let copied = dir.run("generate presets").exits(0).text().parse::<toml::Table>().unwrap();
        let by = copied[case.preset].get("by").and_then(|by| by.as_array()).cloned().unwrap_or_default();
        let group = |row: &Json| {
            let values = by.iter().map(|term| match &row[term.as_str().unwrap()] {
                Json::String(text) => text.clone(),
                value => value.to_string(),
            });
            values.collect::<Vec<_>>().join(" ")
        };
        let slowest = report["slowest"].as_array().unwrap().iter();
        let mut found: Vec<_> = slowest
            .map(|row| {
                let [begin, end, ns] = ["begin_ns", "end_ns", "latency_ns"].map(|name| row[name].as_u64().unwrap());
                assert_eq!(ns, end - begin);
                (begin, end, group(row))
            })
            .collect();
        found.sort_by_key(|&(begin, end, _)| (end, begin));
        let expected: Vec<_> = case.pairs.iter().map(|&(begin, end, group)| (begin, end, group.to_owned())).collect();
        assert_eq!(found, expected, "{}", case.preset);
        // The table of groups is of the same pairs.
        for row in report["groups"].as_array().unwrap().iter().filter(|row| row["hop"].is_null() || row["hop"] == "all")
        {
            let of_group = expected.iter().filter(|pair| pair.2 == group(row)).map(|pair| pair.1 - pair.0);
            let mut latencies: Vec<_> = of_group.collect();
            latencies.sort_unstable();
            let median = latencies[latencies.len().div_ceil(2) - 1];
            let expected = [latencies.len() as u64, latencies[0], median, *latencies.last().unwrap()];
            let found = ["pairs", "min_ns", "p50_ns", "max_ns"].map(|name| row[name].as_u64().unwrap());
            assert_eq!(found, expected, "{} {}", case.preset, group(row));
        }
    }
}

#[test]
fn hops_of_presets_are_as_worked_out_by_hand() {
    let Some(folder) = shared::traces("hops_of_presets_are_as_worked_out_by_hand", "qemu-8.2") else { return };
    let mut declared = EventSet::new();
    let text = folder.read("qemu-8.2/trace-events-all");
    declared.add("trace-events-all", &text, Mode::Lenient);
    let dir = Dir::with([("events", &text[..])]);
    for (preset, expected) in [
        // Least and most of each hop.
        ("virtio-blk-hops", [(5, 20), (1, 16), (11, 25)]),
        ("locks", [(1, 16), (8, 19), (9, 35)]),
    ] {
        let case = CASES.iter().find(|case| case.preset == preset).unwrap();
        dir.write("t", trace(case.records, &declared, ByteOrder::Little));
        let report = dir.run(&format!("latency t events --preset {preset} --by pid -F json")).exits(0).json();
        let rows = report["groups"].as_array().unwrap().iter();
        let found: Vec<_> =
            rows.map(|row| (row["min_ns"].as_u64().unwrap(), row["max_ns"].as_u64().unwrap())).collect();
        assert_eq!(found, expected, "{preset}");
    }
}

//! Names of numbers that arguments of QEMU's events have.
//!
//! Which argument has which, and what they are called, are facts of the kernel's interface, of the virtio specification and of QEMU's.

mod kvm_ioctls;

use std::borrow::Cow;

use simpletrace_format::Value;

pub(crate) use self::kvm_ioctls::Target;

/// What the numbers of an argument are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    KvmExit,
    KvmIoctl(Target),
    /// Below 0 an error, else none.
    NegativeErrno,
    Errno,
    VirtioStatus,
    VirtioBlkStatus,
    RunState,
}

/// The name of a number that an argument of an event has, if there is one.
#[cfg(test)]
pub(crate) fn name_of(event: &str, argument: &str, value: Value<'_>) -> Option<Cow<'static, str>> {
    Numbers::of(event, argument)?.name(value)
}

impl Numbers {
    /// What the numbers of an argument of an event are, if they have names.
    pub(crate) fn of(event: &str, argument: &str) -> Option<Self> {
        /// Events whose negative results are numbers of libraries (libusb, SASL, libssh) or of QEMU's own.
        const NOT_ERRNO: [&str; 3] = ["usb_", "vnc_auth_sasl_", "ssh_"];

        Some(match (event, argument) {
            ("kvm_run_exit", "reason") => Self::KvmExit,
            ("kvm_vcpu_ioctl", "type") => Self::KvmIoctl(Target::Vcpu),
            ("kvm_ioctl" | "kvm_vm_ioctl" | "kvm_device_ioctl", "type") => Self::KvmIoctl(Target::Vm),
            ("virtio_set_status", "val") => Self::VirtioStatus,
            ("virtio_blk_req_complete", "status") => Self::VirtioBlkStatus,
            ("runstate_set", "current_state" | "new_state") | ("vm_state_notify", "reason") => Self::RunState,
            ("v9fs_rerror" | "file_flush_fdatasync_failed", "err") => Self::Errno,
            (event, "err") if event.starts_with("uffd_") => Self::Errno,
            (event, "ret" | "err" | "error" | "rc" | "res")
                if !NOT_ERRNO.iter().any(|start| event.starts_with(start)) =>
            {
                Self::NegativeErrno
            }
            _ => return None,
        })
    }

    /// The name of a number.
    pub(crate) fn name(self, value: Value<'_>) -> Option<Cow<'static, str>> {
        let value = match value {
            Value::Signed(value) => value,
            Value::Unsigned(word) => i64::try_from(word).ok()?,
            Value::Bool(_) | Value::Pointer(_) | Value::String(_) => return None,
        };
        let of = |names: &[&'static str]| {
            let name = *names.get(usize::try_from(value).ok()?)?;
            (!name.is_empty()).then_some(Cow::Borrowed(name))
        };
        match self {
            Self::KvmExit => of(&KVM_EXITS),
            // An `int`, so that those that read are negative.
            Self::KvmIoctl(target) => {
                let number = u32::try_from(value).ok().or_else(|| i32::try_from(value).ok().map(i32::cast_unsigned))?;
                kvm_ioctls::name(number, target).map(Cow::Borrowed)
            }
            Self::NegativeErrno => Self::Errno.name(Value::Signed(value.checked_neg()?)).filter(|_| value < FAILED),
            Self::Errno => of(&ERRNOS),
            Self::VirtioStatus => virtio_status(value),
            Self::VirtioBlkStatus => of(&VIRTIO_BLK_STATUSES),
            Self::RunState => of(&RUN_STATES),
        }
    }
}

/// Many functions return this if they fail for whatever reason, and few mean EPERM.
const FAILED: i64 = -1;

/// `KVM_EXIT_...`: linux/kvm.h as of Linux 6.18.
#[rustfmt::skip]
const KVM_EXITS: [&str; 42] = [
    "UNKNOWN", "EXCEPTION", "IO", "HYPERCALL", "DEBUG", "HLT", "MMIO", "IRQ_WINDOW_OPEN", "SHUTDOWN", "FAIL_ENTRY",
    "INTR", "SET_TPR", "TPR_ACCESS", "S390_SIEIC", "S390_RESET", "DCR", "NMI", "INTERNAL_ERROR", "OSI", "PAPR_HCALL",
    "S390_UCONTROL", "WATCHDOG", "S390_TSCH", "EPR", "SYSTEM_EVENT", "S390_STSI", "IOAPIC_EOI", "HYPERV", "ARM_NISV",
    "X86_RDMSR", "X86_WRMSR", "DIRTY_RING_FULL", "AP_RESET_HOLD", "X86_BUS_LOCK", "XEN", "RISCV_SBI", "RISCV_CSR",
    "NOTIFY", "LOONGARCH_IOCSR", "MEMORY_FAULT", "TDX", "ARM_SEA",
];

/// asm-generic/errno.h: Linux on any machine but MIPS, SPARC, Alpha and PA-RISC, whose numbers from 35 on are others.
#[rustfmt::skip]
const ERRNOS: [&str; 134] = [
    "", "EPERM", "ENOENT", "ESRCH", "EINTR", "EIO", "ENXIO", "E2BIG", "ENOEXEC", "EBADF", "ECHILD", "EAGAIN",
    "ENOMEM", "EACCES", "EFAULT", "ENOTBLK", "EBUSY", "EEXIST", "EXDEV", "ENODEV", "ENOTDIR", "EISDIR", "EINVAL",
    "ENFILE", "EMFILE", "ENOTTY", "ETXTBSY", "EFBIG", "ENOSPC", "ESPIPE", "EROFS", "EMLINK", "EPIPE", "EDOM",
    "ERANGE", "EDEADLK", "ENAMETOOLONG", "ENOLCK", "ENOSYS", "ENOTEMPTY", "ELOOP", "", "ENOMSG", "EIDRM", "ECHRNG",
    "EL2NSYNC", "EL3HLT", "EL3RST", "ELNRNG", "EUNATCH", "ENOCSI", "EL2HLT", "EBADE", "EBADR", "EXFULL", "ENOANO",
    "EBADRQC", "EBADSLT", "", "EBFONT", "ENOSTR", "ENODATA", "ETIME", "ENOSR", "ENONET", "ENOPKG", "EREMOTE",
    "ENOLINK", "EADV", "ESRMNT", "ECOMM", "EPROTO", "EMULTIHOP", "EDOTDOT", "EBADMSG", "EOVERFLOW", "ENOTUNIQ",
    "EBADFD", "EREMCHG", "ELIBACC", "ELIBBAD", "ELIBSCN", "ELIBMAX", "ELIBEXEC", "EILSEQ", "ERESTART", "ESTRPIPE",
    "EUSERS", "ENOTSOCK", "EDESTADDRREQ", "EMSGSIZE", "EPROTOTYPE", "ENOPROTOOPT", "EPROTONOSUPPORT",
    "ESOCKTNOSUPPORT", "EOPNOTSUPP", "EPFNOSUPPORT", "EAFNOSUPPORT", "EADDRINUSE", "EADDRNOTAVAIL", "ENETDOWN",
    "ENETUNREACH", "ENETRESET", "ECONNABORTED", "ECONNRESET", "ENOBUFS", "EISCONN", "ENOTCONN", "ESHUTDOWN",
    "ETOOMANYREFS", "ETIMEDOUT", "ECONNREFUSED", "EHOSTDOWN", "EHOSTUNREACH", "EALREADY", "EINPROGRESS", "ESTALE",
    "EUCLEAN", "ENOTNAM", "ENAVAIL", "EISNAM", "EREMOTEIO", "EDQUOT", "ENOMEDIUM", "EMEDIUMTYPE", "ECANCELED",
    "ENOKEY", "EKEYEXPIRED", "EKEYREVOKED", "EKEYREJECTED", "EOWNERDEAD", "ENOTRECOVERABLE", "ERFKILL", "EHWPOISON",
];

/// `VIRTIO_BLK_S_...`: virtio 1.3, 5.2.6.
const VIRTIO_BLK_STATUSES: [&str; 7] =
    ["OK", "IOERR", "UNSUPP", "ZONE_INVALID_CMD", "ZONE_UNALIGNED_WP", "ZONE_OPEN_RESOURCE", "ZONE_ACTIVE_RESOURCE"];

/// `RunState` as of QEMU 8.2, in the order of its declaration in the schema of QMP.
#[rustfmt::skip]
const RUN_STATES: [&str; 16] = [
    "debug", "inmigrate", "internal-error", "io-error", "paused", "postmigrate", "prelaunch", "finish-migrate",
    "restore-vm", "running", "save-vm", "shutdown", "suspended", "watchdog", "guest-panicked", "colo",
];

/// The bits of a device's status: virtio 1.3, 2.1. Writing 0 resets the device.
fn virtio_status(value: i64) -> Option<Cow<'static, str>> {
    const BITS: [(i64, &str); 6] = [
        (1, "ACKNOWLEDGE"),
        (2, "DRIVER"),
        (8, "FEATURES_OK"),
        (4, "DRIVER_OK"),
        (0x40, "DEVICE_NEEDS_RESET"),
        (0x80, "FAILED"),
    ];

    if value == 0 {
        return Some("RESET".into());
    }
    let known: Vec<_> = BITS.iter().filter(|(bit, _)| value & bit != 0).map(|(_, name)| *name).collect();
    let all: i64 = BITS.iter().map(|(bit, _)| bit).sum();
    // Not if a part of it would go unsaid.
    (value & !all == 0).then(|| known.join("|").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(event: &str, argument: &str, names: &[(Value<'_>, Option<&str>)]) {
        for (value, name) in names {
            assert_eq!(name_of(event, argument, *value).as_deref(), *name, "{event} {argument} {value:?}");
        }
    }

    #[test]
    fn numbers_of_kvm() {
        use Value::{Signed, Unsigned};
        check(
            "kvm_run_exit",
            "reason",
            &[
                (Unsigned(0), Some("UNKNOWN")),
                (Unsigned(2), Some("IO")),
                (Unsigned(5), Some("HLT")),
                (Unsigned(6), Some("MMIO")),
                (Unsigned(17), Some("INTERNAL_ERROR")),
                (Unsigned(37), Some("NOTIFY")),
                (Unsigned(41), Some("ARM_SEA")),
                (Unsigned(42), None),
                (Unsigned(u64::MAX), None),
            ],
        );
        check(
            "kvm_vcpu_ioctl",
            "type",
            &[
                (Unsigned(0xae80), Some("KVM_RUN")),
                (Signed(0xae80), Some("KVM_RUN")),
                (Signed(0x4008_ae89), Some("KVM_SET_MSRS")),
                (Signed(0x5000_aea5), Some("KVM_SET_XSAVE")),
                (Signed(0x8090_ae81_u32 as i32 as i64), Some("KVM_GET_REGS")),
                (Signed(0x8040_ae9f_u32 as i32 as i64), Some("KVM_GET_VCPU_EVENTS")),
                (Unsigned(0x8040_ae9f), Some("KVM_GET_VCPU_EVENTS")),
                (Signed(0xae7f), None),
                (Signed(0xad80), None),
                (Signed(0x8000_ae80_u32 as i32 as i64), None),
                (Signed(i64::MIN), None),
            ],
        );
        check(
            "kvm_vm_ioctl",
            "type",
            &[
                (Signed(0x4020_ae46), Some("KVM_SET_USER_MEMORY_REGION")),
                (Signed(0xc008_ae67_u32 as i32 as i64), Some("KVM_IRQ_LINE_STATUS")),
                (Signed(0x4010_ae67), Some("KVM_REGISTER_COALESCED_MMIO")),
                (Signed(0x4040_ae79), Some("KVM_IOEVENTFD")),
                (Signed(0x8070_ae9f_u32 as i32 as i64), Some("KVM_GET_PIT2")),
                (Signed(0xae03), Some("KVM_CHECK_EXTENSION")),
                (Signed(0x4020_aeb2), None),
            ],
        );
        check(
            "kvm_ioctl",
            "type",
            &[(Signed(0xae01), Some("KVM_CREATE_VM")), (Signed(0xae00), Some("KVM_GET_API_VERSION"))],
        );
        check("kvm_device_ioctl", "type", &[(Signed(0x4018_aee1), Some("KVM_SET_DEVICE_ATTR"))]);
        check("kvm_ioctl", "arg", &[(Value::Pointer(0xae80), None)]);
    }

    #[test]
    fn errors_are_named_where_they_are_errors() {
        use Value::{Signed, Unsigned};
        check(
            "thread_pool_complete",
            "ret",
            &[
                (Signed(-5), Some("EIO")),
                (Signed(-2), Some("ENOENT")),
                (Signed(-28), Some("ENOSPC")),
                (Signed(-110), Some("ETIMEDOUT")),
                (Signed(-125), Some("ECANCELED")),
                (Signed(-133), Some("EHWPOISON")),
                (Signed(-134), None),
                (Signed(-41), None),
                (Signed(-58), None),
                (Signed(-1), None),
                (Signed(0), None),
                (Signed(5), None),
                (Signed(i64::MIN), None),
                (Unsigned(u64::MAX - 4), None),
                (Value::String(b"-5"), None),
            ],
        );
        check(
            "v9fs_rerror",
            "err",
            &[(Signed(2), Some("ENOENT")), (Signed(1), Some("EPERM")), (Signed(-2), None), (Signed(0), None)],
        );
        check("uffd_create_fd_nosys", "err", &[(Signed(38), Some("ENOSYS"))]);
        check("usb_set_config", "ret", &[(Signed(-3), None)]);
        check("thread_pool_complete", "count", &[(Signed(-5), None)]);
    }

    #[test]
    fn statuses_and_states() {
        use Value::{Signed, Unsigned};
        check(
            "virtio_set_status",
            "val",
            &[
                (Unsigned(0), Some("RESET")),
                (Unsigned(1), Some("ACKNOWLEDGE")),
                (Unsigned(3), Some("ACKNOWLEDGE|DRIVER")),
                (Unsigned(11), Some("ACKNOWLEDGE|DRIVER|FEATURES_OK")),
                (Unsigned(15), Some("ACKNOWLEDGE|DRIVER|FEATURES_OK|DRIVER_OK")),
                (Unsigned(0xcf), Some("ACKNOWLEDGE|DRIVER|FEATURES_OK|DRIVER_OK|DEVICE_NEEDS_RESET|FAILED")),
                (Unsigned(0x1f), None),
                (Unsigned(0x100), None),
            ],
        );
        check(
            "virtio_blk_req_complete",
            "status",
            &[
                (Signed(0), Some("OK")),
                (Signed(1), Some("IOERR")),
                (Signed(2), Some("UNSUPP")),
                (Signed(6), Some("ZONE_ACTIVE_RESOURCE")),
                (Signed(7), None),
                (Signed(-1), None),
            ],
        );
        check(
            "runstate_set",
            "new_state",
            &[(Signed(0), Some("debug")), (Signed(9), Some("running")), (Signed(15), Some("colo")), (Signed(16), None)],
        );
        check("vm_state_notify", "reason", &[(Signed(4), Some("paused"))]);
        check("vm_state_notify", "running", &[(Signed(1), None)]);
    }
}

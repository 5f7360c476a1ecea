//! The ioctls of KVM: linux/kvm.h as of Linux 6.15.
//!
//! Sizes of structures differ between machines, so an ioctl is known by its number and direction. Some of them mean one thing for a
//! virtual machine and another for a processor. Left out are those that even then mean two things: 0xa8, two tables of POWER, and 0xb2, x86's
//! PMU filter and s390's storage keys.

use Direction::{Io, IoR, IoW, IoWr};
use Target::{Any, Vcpu, Vm};

/// Which way data goes, as bits 30 and 31 of a number have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    Io,
    IoW,
    IoR,
    IoWr,
}

/// What an ioctl is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Any,
    Vm,
    Vcpu,
}

/// The name of an ioctl's number, used on the file descriptor of a target.
pub(super) fn name(number: u32, target: Target) -> Option<&'static str> {
    const MAGIC: u8 = 0xae;

    if (number >> 8) as u8 != MAGIC {
        return None;
    }
    let direction = [Io, IoW, IoR, IoWr][(number >> 30) as usize];
    let key = (number as u8, direction);
    let first = IOCTLS.partition_point(|&(number, direction, ..)| (number, direction) < key);
    let same = IOCTLS[first..].iter().take_while(|&&(number, direction, ..)| (number, direction) == key);
    same.filter(|&&(_, _, of, _)| of == Any || of == target).map(|&(.., name)| name).next()
}

/// In order.
const IOCTLS: [(u8, Direction, Target, &str); 154] = [
    (0x00, Io, Any, "KVM_GET_API_VERSION"),
    (0x01, Io, Any, "KVM_CREATE_VM"),
    (0x02, IoWr, Any, "KVM_GET_MSR_INDEX_LIST"),
    (0x03, Io, Any, "KVM_CHECK_EXTENSION"),
    (0x04, Io, Any, "KVM_GET_VCPU_MMAP_SIZE"),
    (0x05, IoWr, Any, "KVM_GET_SUPPORTED_CPUID"),
    (0x06, Io, Any, "KVM_S390_ENABLE_SIE"),
    (0x09, IoWr, Any, "KVM_GET_EMULATED_CPUID"),
    (0x0a, IoWr, Any, "KVM_GET_MSR_FEATURE_INDEX_LIST"),
    (0x40, IoW, Any, "KVM_SET_MEMORY_REGION"),
    (0x41, Io, Any, "KVM_CREATE_VCPU"),
    (0x42, IoW, Any, "KVM_GET_DIRTY_LOG"),
    (0x43, IoW, Any, "KVM_SET_MEMORY_ALIAS"),
    (0x44, Io, Any, "KVM_SET_NR_MMU_PAGES"),
    (0x45, Io, Any, "KVM_GET_NR_MMU_PAGES"),
    (0x46, IoW, Any, "KVM_SET_USER_MEMORY_REGION"),
    (0x47, Io, Any, "KVM_SET_TSS_ADDR"),
    (0x48, IoW, Any, "KVM_SET_IDENTITY_MAP_ADDR"),
    (0x49, IoW, Any, "KVM_SET_USER_MEMORY_REGION2"),
    (0x50, IoW, Any, "KVM_S390_UCAS_MAP"),
    (0x51, IoW, Any, "KVM_S390_UCAS_UNMAP"),
    (0x52, IoW, Any, "KVM_S390_VCPU_FAULT"),
    (0x60, Io, Any, "KVM_CREATE_IRQCHIP"),
    (0x61, IoW, Any, "KVM_IRQ_LINE"),
    (0x62, IoWr, Any, "KVM_GET_IRQCHIP"),
    (0x63, IoR, Any, "KVM_SET_IRQCHIP"),
    (0x64, Io, Any, "KVM_CREATE_PIT"),
    (0x65, IoWr, Any, "KVM_GET_PIT"),
    (0x66, IoR, Any, "KVM_SET_PIT"),
    (0x67, IoW, Any, "KVM_REGISTER_COALESCED_MMIO"),
    (0x67, IoWr, Any, "KVM_IRQ_LINE_STATUS"),
    (0x68, IoW, Any, "KVM_UNREGISTER_COALESCED_MMIO"),
    (0x69, IoR, Any, "KVM_ASSIGN_PCI_DEVICE"),
    (0x6a, IoW, Any, "KVM_SET_GSI_ROUTING"),
    (0x70, IoW, Any, "KVM_ASSIGN_DEV_IRQ"),
    (0x71, Io, Any, "KVM_REINJECT_CONTROL"),
    (0x72, IoW, Any, "KVM_DEASSIGN_PCI_DEVICE"),
    (0x73, IoW, Any, "KVM_ASSIGN_SET_MSIX_NR"),
    (0x74, IoW, Any, "KVM_ASSIGN_SET_MSIX_ENTRY"),
    (0x75, IoW, Any, "KVM_DEASSIGN_DEV_IRQ"),
    (0x76, IoW, Any, "KVM_IRQFD"),
    (0x77, IoW, Any, "KVM_CREATE_PIT2"),
    (0x78, Io, Any, "KVM_SET_BOOT_CPU_ID"),
    (0x79, IoW, Any, "KVM_IOEVENTFD"),
    (0x7a, IoW, Any, "KVM_XEN_HVM_CONFIG"),
    (0x7b, IoW, Any, "KVM_SET_CLOCK"),
    (0x7c, IoR, Any, "KVM_GET_CLOCK"),
    (0x80, Io, Any, "KVM_RUN"),
    (0x81, IoR, Any, "KVM_GET_REGS"),
    (0x82, IoW, Any, "KVM_SET_REGS"),
    (0x83, IoR, Any, "KVM_GET_SREGS"),
    (0x84, IoW, Any, "KVM_SET_SREGS"),
    (0x85, IoWr, Any, "KVM_TRANSLATE"),
    (0x86, IoW, Any, "KVM_INTERRUPT"),
    (0x88, IoWr, Any, "KVM_GET_MSRS"),
    (0x89, IoW, Any, "KVM_SET_MSRS"),
    (0x8a, IoW, Any, "KVM_SET_CPUID"),
    (0x8b, IoW, Any, "KVM_SET_SIGNAL_MASK"),
    (0x8c, IoR, Any, "KVM_GET_FPU"),
    (0x8d, IoW, Any, "KVM_SET_FPU"),
    (0x8e, IoR, Any, "KVM_GET_LAPIC"),
    (0x8f, IoW, Any, "KVM_SET_LAPIC"),
    (0x90, IoW, Any, "KVM_SET_CPUID2"),
    (0x91, IoWr, Any, "KVM_GET_CPUID2"),
    (0x92, IoWr, Any, "KVM_TPR_ACCESS_REPORTING"),
    (0x93, IoW, Any, "KVM_SET_VAPIC_ADDR"),
    (0x94, IoW, Any, "KVM_S390_INTERRUPT"),
    (0x95, IoW, Any, "KVM_S390_STORE_STATUS"),
    (0x96, IoW, Any, "KVM_S390_SET_INITIAL_PSW"),
    (0x97, Io, Any, "KVM_S390_INITIAL_RESET"),
    (0x98, IoR, Any, "KVM_GET_MP_STATE"),
    (0x99, IoW, Any, "KVM_SET_MP_STATE"),
    (0x9a, Io, Any, "KVM_NMI"),
    (0x9b, IoW, Any, "KVM_SET_GUEST_DEBUG"),
    (0x9c, IoW, Any, "KVM_X86_SETUP_MCE"),
    (0x9d, IoR, Any, "KVM_X86_GET_MCE_CAP_SUPPORTED"),
    (0x9e, IoW, Any, "KVM_X86_SET_MCE"),
    (0x9f, IoR, Vm, "KVM_GET_PIT2"),
    (0x9f, IoR, Vcpu, "KVM_GET_VCPU_EVENTS"),
    (0xa0, IoW, Vm, "KVM_SET_PIT2"),
    (0xa0, IoW, Vcpu, "KVM_SET_VCPU_EVENTS"),
    (0xa1, IoW, Any, "KVM_PPC_GET_PVINFO"),
    (0xa1, IoR, Any, "KVM_GET_DEBUGREGS"),
    (0xa2, Io, Any, "KVM_SET_TSC_KHZ"),
    (0xa2, IoW, Any, "KVM_SET_DEBUGREGS"),
    (0xa3, Io, Any, "KVM_GET_TSC_KHZ"),
    (0xa3, IoW, Any, "KVM_ENABLE_CAP"),
    (0xa4, IoW, Any, "KVM_ASSIGN_SET_INTX_MASK"),
    (0xa4, IoR, Any, "KVM_GET_XSAVE"),
    (0xa5, IoW, Vm, "KVM_SIGNAL_MSI"),
    (0xa5, IoW, Vcpu, "KVM_SET_XSAVE"),
    (0xa6, IoR, Vm, "KVM_PPC_GET_SMMU_INFO"),
    (0xa6, IoR, Vcpu, "KVM_GET_XCRS"),
    (0xa7, IoW, Any, "KVM_SET_XCRS"),
    (0xa7, IoWr, Any, "KVM_PPC_ALLOCATE_HTAB"),
    (0xa9, IoR, Any, "KVM_ALLOCATE_RMA"),
    (0xaa, IoW, Vm, "KVM_PPC_GET_HTAB_FD"),
    (0xaa, IoW, Vcpu, "KVM_DIRTY_TLB"),
    (0xab, IoW, Vm, "KVM_ARM_SET_DEVICE_ADDR"),
    (0xab, IoW, Vcpu, "KVM_GET_ONE_REG"),
    (0xac, IoW, Vm, "KVM_PPC_RTAS_DEFINE_TOKEN"),
    (0xac, IoW, Vcpu, "KVM_SET_ONE_REG"),
    (0xad, Io, Any, "KVM_KVMCLOCK_CTRL"),
    (0xad, IoR, Any, "KVM_PPC_RESIZE_HPT_PREPARE"),
    (0xae, IoW, Any, "KVM_ARM_VCPU_INIT"),
    (0xae, IoR, Any, "KVM_PPC_RESIZE_HPT_COMMIT"),
    (0xaf, IoW, Any, "KVM_PPC_CONFIGURE_V3_MMU"),
    (0xaf, IoR, Any, "KVM_ARM_PREFERRED_TARGET"),
    (0xb0, IoW, Any, "KVM_PPC_GET_RMMU_INFO"),
    (0xb0, IoWr, Any, "KVM_GET_REG_LIST"),
    (0xb1, IoW, Any, "KVM_S390_MEM_OP"),
    (0xb1, IoR, Any, "KVM_PPC_GET_CPU_CHAR"),
    (0xb3, Io, Any, "KVM_PPC_SVM_OFF"),
    (0xb3, IoW, Any, "KVM_S390_SET_SKEYS"),
    (0xb4, IoW, Any, "KVM_S390_IRQ"),
    (0xb4, IoR, Any, "KVM_ARM_MTE_COPY_TAGS"),
    (0xb5, IoW, Any, "KVM_S390_SET_IRQ_STATE"),
    (0xb6, IoW, Any, "KVM_S390_GET_IRQ_STATE"),
    (0xb6, IoR, Any, "KVM_ARM_GET_REG_WRITABLE_MASKS"),
    (0xb7, Io, Any, "KVM_SMI"),
    (0xb8, IoWr, Any, "KVM_S390_GET_CMMA_BITS"),
    (0xb9, IoW, Any, "KVM_S390_SET_CMMA_BITS"),
    (0xba, IoWr, Any, "KVM_MEMORY_ENCRYPT_OP"),
    (0xbb, IoR, Any, "KVM_MEMORY_ENCRYPT_REG_REGION"),
    (0xbc, IoR, Any, "KVM_MEMORY_ENCRYPT_UNREG_REGION"),
    (0xbd, IoW, Any, "KVM_HYPERV_EVENTFD"),
    (0xbe, IoWr, Any, "KVM_GET_NESTED_STATE"),
    (0xbf, IoW, Any, "KVM_SET_NESTED_STATE"),
    (0xc0, IoWr, Any, "KVM_CLEAR_DIRTY_LOG"),
    (0xc1, IoWr, Any, "KVM_GET_SUPPORTED_HV_CPUID"),
    (0xc2, IoW, Any, "KVM_ARM_VCPU_FINALIZE"),
    (0xc3, Io, Any, "KVM_S390_NORMAL_RESET"),
    (0xc4, Io, Any, "KVM_S390_CLEAR_RESET"),
    (0xc5, IoWr, Any, "KVM_S390_PV_COMMAND"),
    (0xc6, IoW, Any, "KVM_X86_SET_MSR_FILTER"),
    (0xc7, Io, Any, "KVM_RESET_DIRTY_RINGS"),
    (0xc8, IoWr, Any, "KVM_XEN_HVM_GET_ATTR"),
    (0xc9, IoW, Any, "KVM_XEN_HVM_SET_ATTR"),
    (0xca, IoWr, Any, "KVM_XEN_VCPU_GET_ATTR"),
    (0xcb, IoW, Any, "KVM_XEN_VCPU_SET_ATTR"),
    (0xcc, IoR, Any, "KVM_GET_SREGS2"),
    (0xcd, IoW, Any, "KVM_SET_SREGS2"),
    (0xce, Io, Any, "KVM_GET_STATS_FD"),
    (0xcf, IoR, Any, "KVM_GET_XSAVE2"),
    (0xd0, IoW, Any, "KVM_XEN_HVM_EVTCHN_SEND"),
    (0xd0, IoWr, Any, "KVM_S390_PV_CPU_COMMAND"),
    (0xd1, IoW, Any, "KVM_S390_ZPCI_OP"),
    (0xd2, IoW, Any, "KVM_SET_MEMORY_ATTRIBUTES"),
    (0xd4, IoWr, Any, "KVM_CREATE_GUEST_MEMFD"),
    (0xd5, IoWr, Any, "KVM_PRE_FAULT_MEMORY"),
    (0xe0, IoWr, Any, "KVM_CREATE_DEVICE"),
    (0xe1, IoW, Any, "KVM_SET_DEVICE_ATTR"),
    (0xe2, IoW, Any, "KVM_GET_DEVICE_ATTR"),
    (0xe3, IoW, Any, "KVM_HAS_DEVICE_ATTR"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_says_one_thing() {
        for pair in IOCTLS.windows(2) {
            let [(number, direction, target, name), (next, next_direction, next_target, next_name)] = pair else {
                unreachable!()
            };
            assert!((number, direction) <= (next, next_direction), "{name} {next_name}");
            if (number, direction) == (next, next_direction) {
                assert_eq!((target, next_target), (&Vm, &Vcpu), "{name} {next_name}");
            }
        }
    }

    /// What linux/kvm.h of this machine says, if it is there.
    #[test]
    fn the_table_is_that_of_the_kernel() {
        let Ok(header) = std::fs::read_to_string("/usr/include/linux/kvm.h") else {
            println!("SKIPPED: the_table_is_that_of_the_kernel: no /usr/include/linux/kvm.h (package linux-libc-dev)");
            return;
        };
        let header = header.replace("\\\n", " ").replace('\t', " ");
        let mut found = 0;
        for line in header.lines() {
            let mut words = line.split_whitespace();
            let (Some("#define"), Some(name), Some(rest)) = (words.next(), words.next(), line.split_once(" _IO"))
            else {
                continue;
            };
            let Some((direction, numbers)) = rest.1.split_once("(KVMIO,") else { continue };
            let Some(number) =
                numbers.trim().strip_prefix("0x").and_then(|hex| u8::from_str_radix(hex.get(..2)?, 16).ok())
            else {
                continue;
            };
            if !name.starts_with("KVM_") {
                continue;
            }
            let direction = match direction {
                "" => 0_u32,
                "W" => 1,
                "R" => 2,
                _ => 3,
            };
            let word = direction << 30 | 0xae00 | u32::from(number);
            let names = [super::name(word, Vm), super::name(word, Vcpu)];
            let is_left_out = matches!((number, direction), (0xa8 | 0xb2, 1));
            assert!(is_left_out || names.contains(&Some(name)), "{name} {names:?}");
            found += 1;
        }
        assert!(found > 100, "{found}");
    }
}

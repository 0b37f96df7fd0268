"""A seccomp filter that refuses system calls: sockets, other processes, mounts and the kernel itself.

A process keeps the filter for its lifetime, and so do all processes that it starts (seccomp(2)). The numbers are those
of the kernel's tables (asm/unistd_64.h, asm-generic/unistd.h).
"""

import ctypes
import errno
import platform
import struct

X86_64, AARCH64 = 0xC000003E, 0xC00000B7  # AUDIT_ARCH of linux/audit.h
X32 = 0x40000000  # calls of the x32 interface, which have other numbers

# Name: number on x86_64, number on aarch64. None: the call does not exist there.
REFUSED: dict[str, tuple[int | None, int | None]] = {
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "io_uring_setup": (425, 425),  # its operations pass no filter
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "kcmp": (312, 272),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "shmget": (29, 194),  # System V and POSIX queues and memory would outlive the process
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "memfd_create": (319, 279),  # memory that no process has mapped is not counted
    "memfd_secret": (447, 447),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "personality": (135, 92),
}
CLONE, CLONE3, FCNTL, PRLIMIT = (56, 220), (435, 435), (72, 25), (302, 261)
NEW_NAMESPACES = 0x7E020080  # CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET
MMAP = (9, 222)
MAP_SHARED, MAP_ANONYMOUS = 0x01, 0x20
SIGNAL_COMMANDS = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX: signals to any process, also on aarch64

LOAD, EQUAL, BITS, RETURN = 0x20, 0x15, 0x45, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JSET|K, BPF_RET|K
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000, 0x80000000
NUMBER, ARCH, FIRST, SECOND, FOURTH = 0, 4, 16, 24, 40  # offsets in struct seccomp_data; low halves of the arguments
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER_MODE = 38, 22, 2

Instruction = tuple[int, int, int, int]


def refuse_system_calls() -> None:
    """Install the filter in this process, and end the right to gain privileges. Raises OSError."""
    program = b"".join(struct.pack("HBBI", *each) for each in make_program(platform.machine()))
    code = ctypes.create_string_buffer(program, len(program))
    filter_program = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs cannot be set")
    if libc.prctl(PR_SET_SECCOMP, FILTER_MODE, filter_program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the kernel has no seccomp filters")


def make_program(machine: str) -> list[Instruction]:
    """Return the instructions of the filter. Raises OSError for another machine than x86_64 and aarch64."""
    if machine not in ("x86_64", "aarch64"):
        raise OSError(errno.ENOSYS, f"there is no filter for {machine}")
    column, arch = (0, X86_64) if machine == "x86_64" else (1, AARCH64)
    refuse, unknown = (RETURN, 0, 0, REFUSE | errno.EPERM), (RETURN, 0, 0, REFUSE | errno.ENOSYS)
    program: list[Instruction] = [
        (LOAD, 0, 0, ARCH),
        (EQUAL, 1, 0, arch),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
    ]
    if column == 0:
        program += [(BITS, 0, 1, X32), refuse]
    for numbers in REFUSED.values():
        number = numbers[column]
        if number is not None:
            program += [(EQUAL, 0, 1, number), refuse]
    # The C library falls back to clone, whose flags are in an argument and not in memory.
    program += [(EQUAL, 0, 1, CLONE3[column]), unknown]
    program += argument_check(CLONE[column], FIRST, [(BITS, 0, 1, NEW_NAMESPACES), refuse])
    program += argument_check(PRLIMIT[column], FIRST, [(EQUAL, 1, 0, 0), refuse])  # 0 is the process itself
    # Such a mapping can be unmapped in part, and keeps its memory. MAP_PRIVATE is 2, MAP_SHARED_VALIDATE 3.
    shared = [(BITS, 0, 2, MAP_ANONYMOUS), (BITS, 0, 1, MAP_SHARED), refuse]
    program += argument_check(MMAP[column], FOURTH, shared)
    commands = [step for command in SIGNAL_COMMANDS for step in ((EQUAL, 0, 1, command), refuse)]
    program += argument_check(FCNTL[column], SECOND, commands)
    return [*program, (RETURN, 0, 0, ALLOW)]


def argument_check(number: int, argument: int, steps: list[Instruction]) -> list[Instruction]:
    """Return the steps for an argument of one call. Without a refusal, the number of the call is loaded again."""
    inside: list[Instruction] = [(LOAD, 0, 0, argument), *steps, (LOAD, 0, 0, NUMBER)]
    return [(EQUAL, 0, len(inside), number), *inside]

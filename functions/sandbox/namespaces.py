"""A launcher for machines that are no virtual machine of their own: the code sees only Python and its own folder.

`python -E -s namespaces.py FOLDER SOCKET COMMAND...` runs a command in new user, mount, process, network and IPC
namespaces (namespaces(7)), as the user nobody, on a root of its own in memory. It needs no privileges where the kernel
allows user namespaces to everybody.

The root is a tmpfs of limited size, and FOLDER is a folder of it: nothing that the code writes reaches the machine's
disk. Before the command starts, the launcher sends a descriptor of the folder over SOCKET, the number of a descriptor,
and waits for a byte. The caller writes the files of the run through it, measures the tmpfs with it, and reads from it
after all processes of the run have ended, when no path leads there any more.
"""

import ctypes
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

NEW = 0x10000000 | 0x00020000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x04000000  # USER, NS, PID, NET, IPC, UTS
NOBODY = 65534
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
MNT_DETACH = 2
MOUNT_SETATTR, AT_RECURSIVE, AT_FDCWD = 442, 0x8000, -100
READ_ONLY = 0x1 | 0x2  # MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID
DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")  # shared mappings of /dev/zero are not counted
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime", "/opt/python")
PR_SET_PDEATHSIG = 1
DISK = "size=256m,nr_inodes=16384,mode=0755"

libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> None:
    """Call a function of the C library. Raises OSError."""
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def is_available() -> bool:
    """Return whether this machine lets its users make namespaces. A child process tries."""
    process = os.fork()
    if process == 0:
        os._exit(0 if libc.unshare(NEW) == 0 else 1)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


def map_ids(process: int) -> None:
    """Map the ids of a process in a new user namespace.

    A user maps their own id to nobody's. Root maps its own and nobody's, so that the code can run as nobody.
    """
    user, group = os.getuid(), os.getgid()
    folder = Path(f"/proc/{process}")
    (folder / "setgroups").write_text("deny")
    (folder / "uid_map").write_text(f"0 0 1\n{NOBODY} {NOBODY} 1" if user == 0 else f"{NOBODY} {user} 1")
    (folder / "gid_map").write_text(f"0 0 1\n{NOBODY} {NOBODY} 1" if user == 0 else f"{NOBODY} {group} 1")


def mount_root(folder: str, *, shared: bool) -> None:
    """Replace the root by one in memory, with the system and `folder`: an empty one, or the machine's if `shared`."""
    call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    root = f"{folder}.root"
    os.mkdir(root)
    call("mount", b"tmpfs", root.encode(), b"tmpfs", MS_NOSUID | MS_NODEV, DISK.encode())
    for path in dict.fromkeys((*SYSTEM, sys.prefix, sys.base_prefix, os.path.dirname(os.path.realpath(__file__)))):
        bind_mount(path, root, read_only=True)
    for device in DEVICES:
        bind_mount(device, root)
    os.makedirs(f"{root}/proc")
    call("mount", b"proc", f"{root}/proc".encode(), b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None)
    for name in ("tmp", "dev/shm"):
        os.makedirs(f"{root}/{name}", exist_ok=True)
    if shared:
        bind_mount(folder, root)
    else:
        os.makedirs(root + folder)
    os.chdir(root)
    call("syscall", 155 if os.uname().machine == "x86_64" else 41, b".", b".")  # pivot_root
    call("umount2", b".", MNT_DETACH)
    os.chdir("/")


def bind_mount(path: str, root: str, *, read_only: bool = False) -> None:
    """Mount a file or folder of the machine at the same path below the root. A missing one is left out."""
    if os.path.islink(path):
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        os.symlink(os.readlink(path), root + path)
        return
    if not os.path.exists(path) or os.path.ismount(root + path):
        return
    if os.path.isdir(path):
        os.makedirs(root + path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        Path(root + path).touch()
    call("mount", path.encode(), (root + path).encode(), None, MS_BIND | MS_REC, None)
    if read_only:
        attributes = (ctypes.c_uint64 * 4)(READ_ONLY, 0, 0, 0)
        arguments = ctypes.c_int(AT_FDCWD), (root + path).encode(), ctypes.c_uint(AT_RECURSIVE)
        call("syscall", MOUNT_SETATTR, *arguments, ctypes.byref(attributes), ctypes.c_size_t(32))


def drop_privileges() -> None:
    """Leave the id of root, if this process has it. The capabilities end with the next program."""
    if os.getuid() == 0:
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def hand_over(folder: str, caller: socket.socket) -> None:
    """Send a descriptor of the folder, which nobody owns, to the caller, and wait until it has written its files."""
    if os.getuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    socket.send_fds(caller, [b"."], [opened])
    os.close(opened)
    if not caller.recv(1):
        raise OSError("the caller has ended")
    caller.close()


def start(folder: str, command: Sequence[str], mapped: int, caller: socket.socket | None) -> int:
    """Run a command in new namespaces, once `mapped` can be read, and return its exit code."""
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.read(mapped, 1)
    process = os.fork()  # the first process of the new process namespace: all others end with it
    if process == 0:
        call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        mount_root(folder, shared=caller is None)
        if caller is not None:
            hand_over(folder, caller)
        drop_privileges()
        os.execv(command[0], list(command))  # noqa: S606 - the command of this file's caller
    return exit_code(process)


def exit_code(process: int) -> int:
    """Wait for a process, and return its exit code; 128 and the number for a signal."""
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return code if code >= 0 else 128 - code


def main(folder: str, command: Sequence[str], caller: socket.socket | None = None) -> int:
    """Run a command in new namespaces, and return its exit code. Without a caller, the folder is the machine's.

    Raises OSError.
    """
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    made, mapped = os.pipe(), os.pipe()
    process = os.fork()
    if process == 0:
        call("unshare", NEW)
        os.write(made[1], b".")
        os._exit(start(folder, command, mapped[0], caller))
    os.close(made[1])
    if os.read(made[0], 1):
        map_ids(process)
        os.write(mapped[1], b".")
    return exit_code(process)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[3:], socket.socket(fileno=int(sys.argv[2]))))

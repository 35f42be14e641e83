"""Start a program that cannot outlive its parent; run as a separate script.

    python -I -S launch.py PARENT-PID UID GID NAME=VALUE... -- PROGRAM ARGUMENT...

With PARENT-PID 0 it may outlive its parent.

Between fork and exec of a multi-threaded process only system calls are safe, and the kernel clears
the death signal when the uid changes. So it is set here, after the change and before exec, in a
process that does nothing else.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Mapping, Sequence

PR_SET_PDEATHSIG = 1


def command(
    program: Sequence[str], *, uid: int, gid: int, env: Mapping[str, str] | None, bound: bool = True
) -> tuple[str, ...]:
    """Return the command that runs the program with this uid, gid and environment.

    It gets a session of its own and, unless `bound`, may outlive us. The environment is an argument
    because it may suit only the program, such as a library to preload. None: it inherits ours.
    """
    parent = str(os.getpid()) if bound else "0"
    settings = (f"{name}={value}" for name, value in (env or {}).items())
    who = (str(uid), str(gid))
    return (sys.executable, "-I", "-S", __file__, parent, *who, *settings, "--", *program)


def main() -> None:
    """Become the program."""
    parent, uid, gid = (int(text) for text in sys.argv[1:4])
    end = sys.argv.index("--")
    env = dict(setting.split("=", 1) for setting in sys.argv[4:end]) or os.environ
    program = sys.argv[end + 1 :]
    os.setsid()
    if os.getuid() != uid:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if parent:
        _die_with(parent)
    os.umask(0o022)
    try:
        os.execve(program[0], program, env)  # noqa: S606  # no shell: that is the point
    except OSError as error:
        sys.exit(f"uid {uid} cannot run {program[0]}: {error.strerror}")


def _die_with(parent: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    # SIGKILL, as a stopped process never sees SIGTERM and etcd's clients wait for etcd (and vice
    # versa).
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        sys.exit("the parent died before its death could be noticed")


if __name__ == "__main__":
    main()

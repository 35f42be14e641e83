"""Run a sandbox's parts: start them in the order of their needs, serve the control socket, stop them in order.

Single-threaded and in the main thread, because a child dies with the thread that started it; if the
supervisor is killed, the kernel kills every part (`sandbox.launch`).
"""

import os
import selectors
import signal
import time
from collections.abc import Callable, Iterable, Sequence

from sandbox import control
from sandbox.control import PartStatus, Reply, Request
from sandbox.errors import PartFailedError, SandboxError
from sandbox.instance import Instance
from sandbox.part import Part
from sandbox.process import Process, State, resident_mib

_POLL_S = 0.02
_WATCH_S = 0.5
_LONGEST_BACKOFF_S = 30.0


class Supervisor:
    """The processes of one sandbox."""

    def __init__(
        self, instance: Instance, parts: Sequence[Part], report: Callable[[str], None]
    ) -> None:
        self._instance = instance
        self._processes = {part.name: Process(part, instance.log(part.name)) for part in parts}
        self._report = report
        self._restart_at: dict[str, float] = {}
        self._exits: dict[str, int] = {}
        self._leaving = False

    def start(self) -> None:
        """Bring every part up.

        Raises:
            PartFailedError: the first part that does not come up.
        """
        self._bring_up(self._processes.values())

    def serve(self) -> None:
        """Serve the control socket and watch the parts until a request to go down."""
        with (
            control.listen(self._instance.control) as listener,
            selectors.DefaultSelector() as selector,
        ):
            selector.register(listener, selectors.EVENT_READ)
            while not self._leaving:
                if selector.select(_WATCH_S):
                    control.answer(listener, self._handle)
                self._watch_parts()

    def stop(self) -> None:
        """Stop every part, dependents first, each gone before the next."""
        for process in reversed(self._in_order(self._processes.values())):
            process.stop(process.part.leaves_by)

    def _bring_up(self, processes: Iterable[Process]) -> None:
        """Start processes, each as soon as those it needs answer; return when all do."""
        began_s = time.monotonic()
        ordered = self._in_order(processes)
        awaited = {process.part.name for process in ordered}
        while awaited:
            for process in ordered:
                name = process.part.name
                if process.pid is not None or name not in awaited:
                    process.check()
                elif awaited.isdisjoint(process.part.needs):
                    process.start()
                if process.state is State.UP and name in awaited:
                    awaited.remove(name)
                    self._came_up(process, time.monotonic() - began_s)
            time.sleep(_POLL_S)

    def _came_up(self, process: Process, seconds: float) -> None:
        if not process.seen_up:
            process.part.once_up()
            process.seen_up = True
        self._exits.pop(process.part.name, None)
        self._report(f"{process.part.name} is up after {seconds:.1f} s")

    def _in_order(self, processes: Iterable[Process]) -> list[Process]:
        wanted = {process.part.name: process for process in processes}
        ordered: dict[str, Process] = {}

        def visit(name: str) -> None:
            for need in self._processes[name].part.needs:
                visit(need)
            if name in wanted:
                ordered.setdefault(name, wanted[name])

        for name in wanted:
            visit(name)
        return list(ordered.values())

    def _watch_parts(self) -> None:
        """Report parts that exited by themselves; restart those that a cluster would restart."""
        now_s = time.monotonic()
        for name, process in self._processes.items():
            try:
                process.check()
            except PartFailedError as error:
                self._report(str(error))
                if process.part.restarts and process.pid is None:
                    exits = self._exits[name] = self._exits.get(name, 0) + 1
                    self._restart_at[name] = now_s + min(2 ** (exits - 1), _LONGEST_BACKOFF_S)
            if process.state is State.UP:
                self._exits.pop(name, None)
        for name in [name for name, when_s in self._restart_at.items() if when_s <= now_s]:
            del self._restart_at[name]
            self._processes[name].start()

    def _handle(self, request: Request) -> Reply:
        match request.verb:
            case "status":
                pass
            case "down":
                self._leaving = True
            case "start" | "stop" | "restart" | "pause" | "resume":
                self._change(self._process(request.part), request)
            case _:
                raise SandboxError(f"unknown verb {request.verb!r}")
        return Reply(pid=os.getpid(), parts=self._status())

    def _change(self, process: Process, request: Request) -> None:
        match request.verb:
            case "pause":
                process.pause()
            case "resume":
                process.resume()
            case _:
                self._restart_at.pop(process.part.name, None)
                if request.verb != "start":
                    process.stop(_signal(request.signal))
                if request.wipe:
                    self._wipe(process)
                if request.verb != "stop":
                    self._start(process, wait=request.wait)
        self._report(f"{process.part.name}: {request.verb}, now {process.state}")

    def _start(self, process: Process, *, wait: bool) -> None:
        if wait:
            self._bring_up([process])
        else:
            process.start()

    def _wipe(self, process: Process) -> None:
        if not process.part.data:
            keepers = ", ".join(p.part.name for p in self._processes.values() if p.part.data)
            raise SandboxError(f"{process.part.name} has no data; these parts do: {keepers}")
        if process.pid is not None:
            raise SandboxError(
                f"{process.part.name} is running: stop it first, or restart it with --wipe"
            )
        process.wipe()

    def _process(self, name: str) -> Process:
        try:
            return self._processes[name]
        except KeyError:
            known = ", ".join(self._processes)
            raise SandboxError(f"no part {name!r} in this sandbox: expected {known}") from None

    def _status(self) -> tuple[PartStatus, ...]:
        return tuple(
            PartStatus(
                name=name,
                state=process.state,
                pid=process.pid,
                port=process.part.port,
                memory_mib=round(resident_mib(process.pid), 1) if process.pid else 0.0,
            )
            for name, process in self._processes.items()
        )


def _signal(name: str) -> signal.Signals:
    try:
        return signal.Signals[f"SIG{name.upper().removeprefix('SIG')}"]
    except KeyError:
        raise SandboxError(f"unknown signal {name!r}: use TERM, KILL, INT …") from None

"""Cores that run in turns: one that waits for others lets them go on first.

Each core's kernel has a thread of its own, of which only one runs at a time. A core runs until it
waits for a flag that has not been set yet, or ends; then the first one that can go on does.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextvars import copy_context

from vitruvian.sim.davinci.program.program import Core

__all__ = ["Turns"]


class _Stop(BaseException):
    """Ends the threads of the others when one core's kernel has failed."""


class _Task:
    """A core's kernel: what it has set, what it has waited for, what it waits for now."""

    def __init__(self, core: Core, work: Callable[[], None]):
        self.core, self.work = core, work
        self.sets: Counter[tuple[str, int]] = Counter()
        self.waits: Counter[tuple[str, int]] = Counter()
        self.needs: tuple[str, int] | None = None
        self.done = False
        self.error: BaseException | None = None
        self.go = threading.Semaphore(0)
        self.thread: threading.Thread | None = None

    @property
    def group(self) -> int:
        """The group of cores that it is in."""
        return self.core.index // self.core.kind.per_group


class Turns:
    """Runs the kernels of several cores."""

    def __init__(self):
        self.tasks: dict[Core, _Task] = {}
        self.back = threading.Semaphore(0)
        self.stopping = False

    def run(self, works: Iterable[tuple[Core, Callable[[], None]]]) -> None:
        """Run what is to be done for each core, to its end.

        Cores that wait for what never comes run on without it: that the program hangs is for
        `simulate` to say, with every core that does.

        Raises
        ------
        BaseException
            What the first that fails raises; the others then end where they are.
        """
        self.tasks = {core: _Task(core, work) for core, work in works}
        if len(self.tasks) == 1:
            for task in self.tasks.values():
                task.work()
            return
        try:
            while open_ := [t for t in self.tasks.values() if not t.done]:
                task = next((t for t in open_ if self._can_go(t)), open_[0])
                self._turn(task)
                if task.error is not None:
                    raise task.error
        finally:
            self.stopping = True
            for task in self.tasks.values():
                if task.needs is not None and not task.done:
                    self._turn(task)

    def set(self, core: Core, mode: str, register: int) -> None:
        """Note that a core has set a flag."""
        self.tasks[core].sets[mode, register] += 1

    def wait(self, core: Core, mode: str, register: int) -> None:
        """Let others go on until the flag that a core waits for is set."""
        task = self.tasks[core]
        task.waits[mode, register] += 1
        task.needs = mode, register
        if len(self.tasks) > 1 and not self._can_go(task):
            self.back.release()
            task.go.acquire()
            if self.stopping:
                raise _Stop
        task.needs = None

    def _turn(self, task: _Task) -> None:
        """Let one go on until it gives back."""
        if task.thread is None:
            context = copy_context()
            task.thread = threading.Thread(target=context.run, args=(self._work, task), daemon=True)
            task.thread.start()
        else:
            task.go.release()
        self.back.acquire()
        if task.done:
            task.thread.join()

    def _work(self, task: _Task) -> None:
        try:
            task.work()
        except _Stop:
            pass
        except BaseException as error:  # raised where `run` was called
            task.error = error
        task.done = True
        self.back.release()

    def _can_go(self, task: _Task) -> bool:
        if task.needs is None:
            return True
        mode, _ = task.needs
        count = task.waits[task.needs]
        there = [t for t in self.tasks.values() if not t.done or t.core.instructions]
        near = [t for t in there if mode == "kind" or t.group == task.group]
        same = [t for t in near if t.core.kind is task.core.kind]
        partners = [t for t in near if t not in same] if mode == "others" else same
        return bool(partners) and all(t.sets[task.needs] >= count for t in partners)

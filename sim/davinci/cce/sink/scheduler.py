"""Scheduler of the kernels of several cores: only one of them runs at a time.

Each kernel has a thread of its own. A kernel runs until it ends or waits for a flag that is not set
yet. Then the first kernel that can run continues. So the result does not depend on the operating
system's scheduling of threads.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextvars import copy_context

from vitruvian.sim.davinci.program.program import Core


class _Stop(BaseException):
    """The exception that ends the threads of the other kernels when one kernel has failed."""


class _Task:
    """A core's kernel with the flags that it has set, has waited for, and waits for now."""

    def __init__(self, core: Core, work: Callable[[], None]):
        self.core, self.work = core, work
        self.sets: Counter[tuple[str, int]] = Counter()
        self.waits: Counter[tuple[str, int]] = Counter()
        self.needs: tuple[str, int] | None = None
        self.polls = False  # it polls memory, and the others shall run first
        self.done = False
        self.error: BaseException | None = None
        self.go = threading.Semaphore(0)
        self.thread: threading.Thread | None = None

    @property
    def group(self) -> int:
        """Index of the core's group."""
        return self.core.index // self.core.kind.per_group


class Scheduler:
    """Scheduler of the kernels of several cores; see the description of this module."""

    def __init__(self):
        self.tasks: dict[Core, _Task] = {}
        self.back = threading.Semaphore(0)
        self.stopping = False

    def run(self, works: Iterable[tuple[Core, Callable[[], None]]]) -> None:
        """Run the function of each core to its end.

        A core that waits for a flag that is never set runs on without it, so that ``simulate`` can
        report the deadlock with all cores in it.

        Raises
        ------
        BaseException
            The error of the first kernel that fails; the others then stop.
        """
        self.tasks = {core: _Task(core, work) for core, work in works}
        if len(self.tasks) == 1:
            for task in self.tasks.values():
                task.work()
            return
        try:
            open_ = dict.fromkeys(self.tasks.values())  # in order; most tasks end in their turn
            while open_:
                task = self._next(open_)
                self._turn(task)
                if task.error is not None:
                    raise task.error
                if task.done:
                    del open_[task]
        finally:
            self.stopping = True
            for task in self.tasks.values():
                if task.thread is not None and not task.done:
                    self._turn(task)

    def set(self, core: Core, mode: str, register: int) -> None:
        """Record that a core has set a flag."""
        self.tasks[core].sets[mode, register] += 1

    def wait(self, core: Core, mode: str, register: int) -> None:
        """Run other cores until the flag that a core waits for is set."""
        task = self.tasks[core]
        task.waits[mode, register] += 1
        task.needs = mode, register
        # Give way to the other cores: this thread sleeps until the scheduler gives it a turn.
        if len(self.tasks) > 1 and not self._can_go(task):
            self.back.release()
            task.go.acquire()
            if self.stopping:
                raise _Stop
        task.needs = None

    def give_way(self, core: Core) -> None:
        """Let the other cores run first, because a core polls memory."""
        task = self.tasks[core]
        if len(self.tasks) > 1:
            task.polls = True
            self.back.release()
            task.go.acquire()
            if self.stopping:
                raise _Stop

    def _next(self, tasks: Iterable[_Task]) -> _Task:
        """Return the first kernel that can go on, and those that poll memory in turn."""
        task = next((task for task in tasks if not task.polls and self._can_go(task)), None)
        if task is None and (ready := [task for task in tasks if self._can_go(task)]):
            for each in ready:
                each.polls = False
            task = ready[0]
        # If no core can go on, the first one runs on without its flag, see ``run``.
        return task or next(iter(tasks))

    def _turn(self, task: _Task) -> None:
        """Run one kernel until it waits or ends."""
        if task.thread is None:
            # Settings such as NumPy's error state belong to a context, which a new thread lacks.
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
        except BaseException as error:  # ``run`` raises it in its caller's thread
            task.error = error
        task.done = True
        self.back.release()

    def _can_go(self, task: _Task) -> bool:
        if task.needs is None:
            return True
        mode, _ = task.needs
        count = task.waits[task.needs]
        # A core that ended without an instruction takes no part, as in ``lowering``.
        there = [t for t in self.tasks.values() if not t.done or t.core.instructions]
        near = [t for t in there if mode == "kind" or t.group == task.group]
        same = [t for t in near if t.core.kind is task.core.kind]
        partners = [t for t in near if t not in same] if mode == "others" else same
        return bool(partners) and all(t.sets[task.needs] >= count for t in partners)

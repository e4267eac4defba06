"""The branches that the generators of ``golden.sums`` take for a rule."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from vitruvian.golden import sums

FOLDER = str(Path(sums.__file__).parent)
#: A module, a line and the line that ran after it; the first line of a call has 0 in front.
Branch = tuple[str, int, int]


def branches(generate: Callable[[Any], Any], rules: Iterable[Any]) -> set[Branch]:
    """Return the branches that a generator takes for any of the rules."""
    done: list[Any] = []
    taken: set[Branch] = set()
    for rule in rules:
        if rule not in done:
            done.append(rule)
            forget()
            with_trace(lambda rule=rule: generate(rule), taken)
    return taken


def forget() -> None:
    """Forget the results that functions of the package remember."""
    for name, module in list(sys.modules.items()):
        if name.startswith(sums.__name__):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def with_trace(call: Callable[[], Any], taken: set[Branch]) -> None:
    """Call a function, and add the branches of the package to ``taken``."""

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        name, last = frame.f_code.co_filename, 0
        if not name.startswith(FOLDER):
            return None

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal last
            if event == "line":
                taken.add((name, last, frame.f_lineno))
                last = frame.f_lineno
            return step

        return step

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        call()
    finally:
        sys.settrace(before)

"""A pause of Python's cyclic garbage collector while millions of records are made."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Generator[None]:
    """Pause the cyclic garbage collector in a ``with`` block, unless it is off already.

    The collector visits all records again whenever their number has grown by a quarter. The
    instructions of a program are in no reference cycle, so it finds nothing and takes two fifths
    of the time that building them takes. Counted references free memory during the pause, too.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

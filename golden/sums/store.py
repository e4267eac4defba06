"""Modules of generated text: written once, compiled once, and loaded by the hash of the text.

A module lies in the folder of the store of ``vitruvian.common.cache``. Numba keeps the machine code
beside it. Text and name change together, so no code can be loaded that was made from other text.
"""

import hashlib
import importlib.util
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import ModuleType

_FOLDER = "sums"
_one_at_a_time = threading.Lock()  # a module that another thread compiles is not complete


def load(text: str) -> ModuleType:
    """Return the module of a text, compiled.

    If the store cannot be used, the module is compiled for this process alone.
    """
    name = f"vitruvian_sums_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    with _one_at_a_time:
        if name in sys.modules:
            return sys.modules[name]
        path = _stored(name, text)
        if path is not None:
            with suppress(Exception):  # Numba cannot write its machine code, or cannot read it
                return _executed(name, path)
        return _compiled(name, text)


def _stored(name: str, text: str) -> Path | None:
    """Write a text to the store if it is not there, and return its path."""
    from vitruvian.common.cache import check_cache  # here, as only a compiled rule needs it

    try:
        folder = check_cache(write=False) / _FOLDER
        path = folder / f"{name}.py"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}.partial")
            part.write_text(text, encoding="utf-8")
            part.replace(path)
    except OSError:
        return None
    return path


def _executed(name: str, path: Path) -> ModuleType:
    """Import a module from a file."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Numba imports it by its name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _compiled(name: str, text: str) -> ModuleType:
    """Return a module of a text that no file holds; Numba keeps nothing of it."""
    module = ModuleType(name)
    code = compile(text.replace("cache=True", "cache=False"), f"<{name}>", "exec")
    exec(code, module.__dict__)
    sys.modules[name] = module
    return module

"""A type checker knows the type of every name in the public face of ``vitruvian``."""

import dataclasses
import importlib.util
import inspect
import json
import os
import subprocess
import sys
import sysconfig
import textwrap
import venv
from pathlib import Path

import pytest

import vitruvian

#: Annotations that say less than a type checker needs: containers without the type of an element.
BARE = {"dict", "list", "tuple", "set", "Callable", "Sequence", "Mapping", "Iterable", "Iterator"}

#: Smallest share of the symbols of all packages whose type pyright knows; measured: 0.867.
LEAST_SHARE = 0.86


def gaps(thing, name):
    """Return the missing annotations of a function, or of the public methods of a class."""
    if inspect.isclass(thing):
        missing = []
        for key, member in vars(thing).items():
            function = member.fget if isinstance(member, property) else member
            function = getattr(function, "__func__", function)
            public = not key.startswith("_") or key == "__init__"
            generated = key == "__init__" and dataclasses.is_dataclass(thing)
            if public and not generated and inspect.isfunction(function):
                missing += gaps(function, f"{name}.{key}")
        return missing
    signature = inspect.signature(thing)
    annotations = {
        key: parameter.annotation
        for key, parameter in signature.parameters.items()
        if key not in ("self", "cls")
    }
    if not name.endswith(".__init__"):
        annotations["return"] = signature.return_annotation
    return [f"{name}: {key}" for key, hint in annotations.items() if _is_gap(hint)]


def _is_gap(hint):
    text = hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))
    bare = text in BARE and not getattr(hint, "__args__", ())
    return hint is inspect.Signature.empty or bare


@pytest.mark.parametrize("name", vitruvian.__all__)
def test_a_name_of_the_face_is_annotated(name):
    thing = getattr(vitruvian, name)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        assert not gaps(thing, name)
    else:
        assert name == "PRESETS"


def test_missing_annotations_are_found():
    def function(a: int, b, *c: str, d: dict, **e: list[int]):
        return a, b, c, d, e

    class Thing:
        def __init__(self, a) -> None: ...

        def complete(self, a: "dict[str, int]") -> list[int]: ...

        @property
        def size(self): ...

        @classmethod
        def new(cls) -> "tuple": ...

        def _hidden(self, a): ...

    @dataclasses.dataclass
    class Record:
        a: int

    assert gaps(function, "f") == ["f: b", "f: d", "f: return"]
    assert gaps(Thing, "T") == ["T.__init__: a", "T.size: return", "T.new: return"]
    assert not gaps(Record, "R")


def _report(folder: Path, package: Path) -> dict:
    """Return what ``pyright --verifytypes`` says about a package, as if it were installed."""
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    venv.create(folder / "env", with_pip=False, symlinks=True)
    paths = {"base": str(folder / "env"), "platbase": str(folder / "env")}
    site = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    (site / package.name).symlink_to(package)
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pyright", "--outputjson"),
            *("--ignoreexternal", "--verifytypes", package.name),
        ],
        cwd=folder,
        env=os.environ
        | {
            "PATH": f"{folder / 'env' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "VIRTUAL_ENV": str(folder / "env"),
        },
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)["typeCompleteness"]


@pytest.mark.slow
def test_pyright_knows_the_types_of_the_face(root, tmp_path):
    report = _report(tmp_path, root / "vitruvian")
    known = {symbol["name"]: symbol for symbol in report["symbols"]}
    for name in vitruvian.__all__:
        symbol = known[f"vitruvian.{name}"]
        assert symbol["isTypeKnown"], symbol["diagnostics"]
    for name, symbol in known.items():
        # The types of units come from Amaranth, which has no complete ones; PyTorch and JAX are
        # not installed everywhere.
        shared = name.count(".") and not name.startswith(
            (
                *("vitruvian.sim.", "vitruvian.hdl.", "vitruvian.flows.", "vitruvian.torch"),
                *("vitruvian.commands.hardware", "vitruvian.commands.board", "vitruvian.jax"),
            )
        )
        assert symbol["isTypeKnown"] or not shared or not symbol["isExported"], symbol
    assert report["completenessScore"] >= LEAST_SHARE


@pytest.mark.slow
def test_pyright_finds_a_name_without_a_type(tmp_path):
    package = tmp_path / "toy"
    package.mkdir()
    (package / "py.typed").touch()
    (package / "__init__.py").write_text(
        textwrap.dedent("""\
            __all__ = ["known", "unknown"]

            def known(a: int) -> int:
                return a

            def unknown(a, b: dict) -> int:
                return b[a]
            """)
    )
    report = _report(tmp_path, package)
    assert {s["name"]: s["isTypeKnown"] for s in report["symbols"] if s["isExported"]} == {
        "toy.known": True,
        "toy.unknown": False,
    }

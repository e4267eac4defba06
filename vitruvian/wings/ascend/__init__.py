"""The Ascend wing: DaVinci cores, their kernels and operators, networks and rooflines."""

from vitruvian.common.wings import CliCommand, Wing

_HERE = "vitruvian.wings.ascend"


def _command(module: str, text: str, *, main: bool = False) -> CliCommand:
    return CliCommand(module=f"{_HERE}.{module}", text=text, group="cores", main=main)


WING = Wing(
    folders=("vitruvian.sim.davinci", "vitruvian.sim.kernels"),
    commands={
        "kernel": _command("davinci", "run a kernel on simulated DaVinci cores", main=True),
        "cce": _command("davinci", "run a kernel in CCE C", main=True),
        "ascendc": _command("ascendc", "compile, run and check a kernel in AscendC"),
        "roofline": _command(
            "roofline", "say which component bounds a DaVinci kernel, and what to do", main=True
        ),
        "network": _command(
            "network", "time the layers of a whole network on DaVinci cores", main=True
        ),
        "core": _command("core", "describe a core in hardware as a chip of the simulator"),
        "assemble": _command("core", "translate a kernel to machine code of the core"),
        "disassemble": _command("core", "print machine code as text"),
        "digits": _command("digits", "classify handwritten digits on the core in hardware"),
        "knn": _command("neighbours", "find nearest neighbours of points on DaVinci cores"),
        "taylor": _command("series", "evaluate Taylor series of many functions on DaVinci cores"),
        "trace": _command("davinci", "write the timeline of a DaVinci kernel, for Perfetto"),
        "tune": _command("tune", "search for the fastest tiling of a matrix product"),
        "pooling": _command("pooling", "time max pooling in four implementations"),
        "studies": _command(
            "studies", "run case studies: errors, instructions and cycles by precision"
        ),
    },
    names={"load_chip": "vitruvian.sim.davinci", "simulate": "vitruvian.sim.davinci"},
    faces=("ops",),
    modules={
        "checks": (
            "vitruvian.sim.davinci.machine_code.verify",
            "vitruvian.sim.kernels.digits.verify",
            "vitruvian.sim.davinci.riscv.verify",
        ),
        "completion": (f"{_HERE}.completion",),
        "hosted": (f"{_HERE}.hosted",),
        "listed": (f"{_HERE}.listed",),
        "pages": ("vitruvian.sim.davinci.reference",),
    },
)

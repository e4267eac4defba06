"""Files of the probe kit as a program on a device would write them."""

from vitruvian.flows.probes.file import ProbeSection, pack
from vitruvian.golden.fp import DotSpec
from vitruvian.golden.machines import ChainSpec, compute, find
from vitruvian.golden.machines.probe import Cases, cases


def answered(data: bytes, results: list[bytes | None], device: bytes = b"a device") -> bytes:
    """Return a file in which some sections have run; None leaves a section as it is."""
    whole = bytearray(data)
    whole[64 : 64 + len(device)] = device
    for number, d in enumerate(results):
        if d is None:
            continue
        place = 128 + 256 * number
        whole[place + 192] = 1
        count = int.from_bytes(whole[place + 196 : place + 200], "little")
        terms = int.from_bytes(whole[place + 200 : place + 204], "little")
        scales = int.from_bytes(whole[place + 204 : place + 208], "little")
        a, b, c = (
            int.from_bytes(whole[place + i : place + i + 4], "little") for i in (208, 212, 216)
        )
        offset = int.from_bytes(whole[place + 224 : place + 232], "little")
        offset += count * (terms * (a + b) + c + 2 * scales)
        whole[offset : offset + len(d)] = d
    return bytes(whole)


def few(given: Cases, step: int) -> Cases:
    """Return every ``step``-th row."""
    from dataclasses import replace

    parts = {n: getattr(given, n) for n in ("a", "b", "c", "scale_a", "scale_b")}
    return replace(given, **{n: x if x is None else x[::step] for n, x in parts.items()})


def probe_file(stem: str = "avx512_vdpbf16ps", step: int = 1) -> bytes:
    """Return the file of a machine of the table, with its results."""
    machine = find(stem)
    rule = machine.rule
    assert isinstance(rule, DotSpec | ChainSpec) and rule.k is not None
    given = cases(machine.input, rule.output, rule.k)
    given = few(given, step)
    d = compute(rule, given.a, given.b, given.c)
    return answered(pack([ProbeSection(stem, given)], 1), [d.tobytes()])

"""cocotb bench of ``hdl.bus.axi.StreamUnit`` with a core that runs instructions.

Parameters: those of ``sim.bench.bus.cores.component_of``, and the number of ``commands``.
"""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from vitruvian.hdl.mma.issue import fetch_layout, opcodes_of
from vitruvian.sim.bench.bus.bench_stream import AxiStreamBench
from vitruvian.sim.bench.m3xu.mma import draw_opcodes
from vitruvian.sim.rtl.mma import (
    beats_of,
    draw_instructions,
    draw_values,
    expected_results,
    operands_of,
    results_of,
    tiles_of,
)


async def _run(bench: AxiStreamBench) -> None:
    """Run random instructions; compare the requests, the packets and the results."""
    config = bench.core.matrix_unit
    rng = np.random.default_rng(bench.rng.getrandbits(31))
    program = draw_instructions(rng, draw_opcodes(rng, opcodes_of(config), bench.count))
    values = draw_values(rng, program)
    beats, expected = beats_of(program, config), expected_results(program, values, config)
    for name, items in zip("abc", operands_of(config, program, values, beats), strict=True):
        if len(items):
            bench.sources[name].send_nowait(items.tobytes())
    for instruction in program:
        word = instruction.encode().to_bytes(4, "little")
        bench.sources["instruction"].send_nowait(word)
    tiles = tiles_of(config, program, beats)
    packets = []
    for number in range(len(program)):
        packet = np.frombuffer(await bench.packet(), f"<u{config.word_bits // 8}")
        # A packet has the results of one instruction, an item for each of its tiles.
        packets.append(packet.reshape(-1, config.m, config.n))
        count = sum(tile[0] == number for tile in tiles)
        assert len(packets[-1]) == count, f"a packet must have {count} items"
    for instruction, got, d in zip(
        program, results_of(config, program, tiles, np.concatenate(packets)), expected, strict=True
    ):
        bench.board.expect(d.tobytes().hex(), str(instruction))
        bench.board.check(got.tobytes().hex(), bench.cycle)
    layout = fetch_layout(config)
    for beat in range(len(beats["row"])):
        request = int.from_bytes(await bench.packet("fetch"), "little")
        for name, field in layout:
            got = request >> field.offset & (1 << field.width) - 1
            assert got == beats[name][beat], f"{name} of request {beat} (seed {bench.seed})"
    # Long enough for a result or a request that should not be there.
    await ClockCycles(bench.dut.aclk, 2 * bench.unit.latency + 40)
    assert bench.sink.empty() and bench.sinks["fetch"].empty()


@cocotb.test()
@cocotb.parametrize(pausing=("none", "d", "all"))
async def random_instructions(dut: Any, pausing: str) -> None:
    """Run instructions while ports pause; an illegal one is reported and dropped."""
    names = ("instruction", "fetch", "a", "b", "c", "d")
    bench = AxiStreamBench(
        dut, **(dict.fromkeys(names, 0.3) if pausing == "all" else {pausing: 0.8})
    )
    await bench.reset()
    await _run(bench)
    assert not bench.events["event_command_invalid"]
    # A word of zeros is no instruction.
    bench.sources["instruction"].send_nowait(bytes(4))
    await _run(bench)
    assert bench.events["event_command_invalid"]
    bench.board.finish(at_least=2 * bench.count)


@cocotb.test()
async def reset_in_the_middle(dut: Any) -> None:
    """Check that a reset at any time leaves an empty unit, which returns no earlier result."""
    bench = AxiStreamBench(dut, d=0.3, fetch=0.2)
    for _ in range(4):
        await bench.reset()
        task = cocotb.start_soon(_run(bench))
        await ClockCycles(dut.aclk, bench.rng.randrange(20, 150))
        if not task.done():
            task.cancel()
    await bench.reset()
    await _run(bench)
    bench.board.finish(at_least=bench.count)

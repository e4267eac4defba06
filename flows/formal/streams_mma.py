"""Proofs about the issue of matrix instructions and the unit that runs them."""

from dataclasses import replace

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from vitruvian.flows.formal.harness import ProofHarness, Tracker, transfers
from vitruvian.flows.formal.proof import Mutation, Proof
from vitruvian.hdl.cube.ports import Start
from vitruvian.hdl.cube.presets import CONFIGS
from vitruvian.hdl.cube.unit import MatrixUnit
from vitruvian.hdl.mma.issue import BeatPlan, Issue, opcodes_of
from vitruvian.hdl.mma.unit import MmaUnit

_CONFIG = CONFIGS["m3xu"]
#: One element, so that the streams of fractals are narrow.
_SMALL = replace(_CONFIG, m=1, n=1, k=4)
_AHEAD = 2


def _issue(h: ProofHarness) -> None:
    """Follow one tile and one of its blocks, any of them, through every instruction."""
    issue = h.add(Issue(config=_CONFIG))
    h.stable_streams(issue)
    word, beat = issue.i.payload, issue.o.payload
    fetch, control = beat.fetch, beat.control
    plans = {opcode: BeatPlan.of(opcode, _CONFIG) for opcode in opcodes_of(_CONFIG)}
    rows, columns, blocks = Signal(8), Signal(8), Signal(8)
    known, is_complex = Signal(), Signal()
    with h.m.Switch(word.opcode):
        for opcode, plan in plans.items():
            with h.m.Case(opcode.code):
                h.m.d.comb += [
                    known.eq(1),
                    is_complex.eq(plan.is_complex),
                    rows.eq(plan.rows),
                    columns.eq(plan.columns),
                    blocks.eq(plan.blocks),
                ]
    row, column = h.constant("row", len(fetch.row)), h.constant("column", len(fetch.column))
    block = h.constant("block", len(fetch.block))
    sent, ends = transfers(issue.o), transfers(issue.i)
    mine = (fetch.row == row) & (fetch.column == column)
    exists = known & (row < rows) & (column < columns) & (block < blocks)
    # Beats of the tile, of the block, and in all, of the instruction so far.
    hits, next_block = Signal(2), Signal(8)
    hit = sent & mine & (fetch.block == block)
    with h.m.If(ends):
        h.m.d.sync += [hits.eq(0), next_block.eq(0)]
    with h.m.Else():
        # The count stays at 3; one that wraps would hide repeated beats.
        h.m.d.sync += [hits.eq(hits + (hit & (hits != 3)))]
        with h.m.If(sent & mine):
            h.m.d.sync += next_block.eq(next_block + 1)
    h.rule("once", ~hit | (exists & (hits == 0)))
    h.rule("all", ~(ends & exists) | (hits + hit == 1))
    h.rule("rising_blocks", ~(issue.o.valid & mine) | (fetch.block == next_block))
    h.rule("ends_with_beat", ~ends | ~known | sent)
    # The slots of the tile, from its first beat to its last one.
    open_tile, slot = Signal(), Signal(len(control.slot))
    with h.m.If(sent & mine):
        h.m.d.sync += [open_tile.eq(~fetch.last), slot.eq(control.slot)]
    kept = ~(issue.o.valid & mine & open_tile) | (control.slot == slot)
    # The parts of a complex tile have two slots that differ in the lowest bit.
    pair = Mux(is_complex, control.slot ^ 1 ^ slot, control.slot ^ slot)
    same = (control.slot == slot) | (is_complex & (pair == 0))
    h.rule("slot_kept", kept)
    h.rule("slot_alone", ~(issue.o.valid & ~mine & open_tile) | ~same)
    first = fetch.block == 0
    start = Mux(first, Mux(word.accumulate, Start.FROM_C.value, Start.ZERO.value), 2)
    h.rule("start", ~issue.o.valid | (control.start.as_value() == start))
    h.rule("emit", ~issue.o.valid | (control.emit == (fetch.block == blocks - 1)))


def _tagged_issue(self: Issue, platform: object) -> Module:
    """Return the abstract ``Issue``: one beat for each instruction, with the word as its tag."""
    m = Module()
    word = Value.cast(self.i.payload)
    m.d.comb += [
        Value.cast(self.o.payload.fetch).eq(word),
        Value.cast(self.o.payload.control).eq(word),
        self.o.valid.eq(self.i.valid),
        self.i.ready.eq(self.o.ready),
    ]
    return m


def _tagged_unit(self: MatrixUnit, platform: object) -> Module:
    """Return the abstract ``MatrixUnit``: a result with the tags of the beat and its operands."""
    m = Module()
    beat = self.i.payload
    control = Cat(*(getattr(beat, name).as_value() for name in ("precision", "start")))
    m.d.comb += [
        Value.cast(self.o.payload).eq(Cat(control, beat.slot, beat.emit, Value.cast(beat.a)[:4])),
        self.o.valid.eq(self.i.valid),
        self.i.ready.eq(self.o.ready),
    ]
    return m


def _unit(h: ProofHarness) -> None:
    h.abstract(Issue, _tagged_issue)
    h.abstract(MatrixUnit, _tagged_unit)
    unit = h.add(MmaUnit(config=_SMALL, ahead=_AHEAD))
    h.stable_streams(unit)
    shown = Value.cast(unit.o.payload)
    # The tag: precision, two bits of the start, slot and emit.
    width = _SMALL.precision_bits + 2 + _SMALL.slot_bits + 1
    Tracker(
        h,
        entered=transfers(unit.fetch),
        left=transfers(unit.o),
        offered=unit.o.valid,
        expected=Value.cast(unit.fetch.payload)[:width],
        actual=shown[:width],
        most=_AHEAD,
    )
    h.rule("ab_with_beat", transfers(unit.ab) == transfers(unit.o))
    h.rule("ab_kept", shown[width : width + 4] == Value.cast(unit.ab.payload.a)[:4])


PROOFS: tuple[Proof, ...] = (
    Proof(
        name="mma.issue",
        component="Issue, preset m3xu",
        claim="An instruction issues every block of every tile once, in rising order; the slot of "
        "a tile is its own until its last beat; a beat that waits is stable.",
        build=_issue,
        mutations=(
            Mutation(
                name="the number of a beat counts while the output waits",
                owner=Issue,
                function="elaborate",
                old="with m.If(self.o.valid & self.o.ready):",
                new="with m.If(self.o.valid):",
            ),
            Mutation(
                name="the tiles of a group share a slot",
                owner=Issue,
                function="_build_slots",
                old="(place << 1), free + place)",
                new="(place << 1), free)",
            ),
        ),
    ),
    Proof(
        name="mma.unit",
        component=f"MmaUnit, m3xu of 1 × 1 × 4, {_AHEAD} beats ahead; issue and matrix unit "
        "replaced by tags",
        claim="Requests, queued beats and operands are joined one to one, in order.",
        build=_unit,
        mutations=(
            Mutation(
                name="operands are taken without a beat",
                owner=MmaUnit,
                function="elaborate",
                old="self.ab.ready.eq(unit.i.ready & queue.r_rdy)",
                new="self.ab.ready.eq(unit.i.ready)",
            ),
            Mutation(
                name="a request does not wait for room in the queue",
                owner=MmaUnit,
                function="elaborate",
                old="self.fetch.valid.eq(issue.o.valid & queue.w_rdy)",
                new="self.fetch.valid.eq(issue.o.valid)",
            ),
        ),
    ),
)

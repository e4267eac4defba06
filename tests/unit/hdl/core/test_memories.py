"""Memories of the core against arrays: lines, tiles, transposed fractals, and banks."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from vitruvian.hdl.core.buffer import BankedMemory
from vitruvian.hdl.core.tiles import TileMemory

_BLOCK, _FRACTAL = 32, 512


def _simulate(unit, process):
    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(process)
    simulator.run()


def _number(array):
    return int.from_bytes(array.tobytes(), "little")


async def _write(ctx, port, address, data, enable, turned=0):
    """Write a line; return the cycles until it was granted."""
    ctx.set(port.address, address)
    ctx.set(port.data, _number(data))
    ctx.set(port.enable, int(sum(int(bit) << n for n, bit in enumerate(enable))))
    if turned:
        ctx.set(port.turned, 1)
    ctx.set(port.request, 1)
    cycles = 1
    while not ctx.get(port.grant):
        await ctx.tick()
        cycles += 1
    await ctx.tick()
    ctx.set(port.request, 0)
    if turned:
        ctx.set(port.turned, 0)
    return cycles


#: Rows of a tile, bytes of a piece, blocks of a line: those of L0A and L0B.
OPERANDS = [(2, 16, 1), (4, 8, 1), (8, 16, 1), (8, 16, 2), (8, 16, 4), (16, 32, 8), (4, 32, 4)]
#: Those of tiles of fewer bytes than a line, which have more banks than rows.
OPERANDS += [(2, 4, 1), (4, 4, 1), (8, 2, 1), (2, 2, 1), (2, 8, 4), (4, 16, 4)]


@pytest.mark.parametrize(("rows", "piece", "blocks"), OPERANDS)
def test_lines_and_transposed_fractals_become_tiles(rows, piece, blocks):
    fractals = 4
    unit = TileMemory(
        fractals=fractals,
        tile_rows=rows,
        piece_bytes=piece,
        row_bytes=_BLOCK,
        readers=0,
        writers=2,
        blocks=blocks,
        turns=True,
    )
    random = np.random.default_rng(rows * piece * blocks)
    memory = np.zeros((fractals, 16, _BLOCK), np.uint8)
    line = blocks * _BLOCK
    per = _FRACTAL // line

    async def process(ctx):
        for number in range(fractals * per * 2):
            fractal, index = divmod(int(random.integers(fractals * per)), per)
            data = random.integers(0, 256, line, np.uint8)
            enable = random.integers(0, 4, line) > 0
            turned, port = int(number % 2), unit.w[number % 3 % 2]
            if turned:
                # Elements of 16 bits: block r of the fractal is its column r.
                block, on = data.reshape(blocks, 16, 2), enable.reshape(blocks, 16, 2)
                for r in range(blocks):
                    low = 2 * (index * blocks + r)
                    target = memory[fractal, :, low : low + 2]
                    target[on[r]] = block[r][on[r]]
            else:
                target = memory[fractal].reshape(per, line)[index]
                target[enable] = data[enable]
            cycles = await _write(ctx, port, fractal * per + index, data, enable, turned)
            assert cycles == (16 // max(rows, line // piece) if turned else 1)
        for fractal in range(fractals):
            for group in range(16 // rows):
                for column in range(_BLOCK // piece):
                    ctx.set(unit.tile, {"fractal": fractal, "group": group, "column": column})
                    ctx.set(unit.read, 1)
                    await ctx.tick()
                    tile = memory[fractal, group * rows : (group + 1) * rows]
                    for i in range(rows):
                        low = column * piece
                        expected = _number(tile[i, low : low + piece])
                        assert ctx.get(unit.pieces[i]) == expected, (fractal, group, column, i)

    _simulate(unit, process)


def test_of_two_transposed_loads_each_has_its_own_cycles():
    """A port that interrupts another one in the middle of a line does not shorten it."""
    unit = TileMemory(
        fractals=2, tile_rows=4, piece_bytes=8, row_bytes=_BLOCK, readers=0, writers=2, turns=True
    )
    memory = np.zeros((2, 16, 16), np.uint16)
    random = np.random.default_rng(1)
    waiting = [[(f, r) for r in range(16)] for f in range(2)]
    lines = random.integers(0, 1 << 16, (2, 16, 16), np.uint16)

    async def process(ctx):
        for cycle in range(1000):
            for n, port in enumerate(unit.w):
                on = bool(waiting[n]) and (n == 1 or cycle % 3 != 0)
                ctx.set(port.request, on)
                if on:
                    fractal, row = waiting[n][0]
                    ctx.set(port.address, 16 * fractal + row)
                    ctx.set(port.data, _number(lines[fractal, row]))
                    ctx.set(port.enable, (1 << _BLOCK) - 1)
                    ctx.set(port.turned, 1)
            granted = [ctx.get(port.grant) for port in unit.w]
            assert sum(granted) <= 1
            await ctx.tick()
            for n in range(2):
                if granted[n]:
                    waiting[n].pop(0)
        assert waiting == [[], []]
        memory[:] = lines.transpose(0, 2, 1)
        for fractal in range(2):
            for row in range(16):
                tile = {"fractal": fractal, "group": row // 4, "column": row % 4}
                ctx.set(unit.tile, tile)
                ctx.set(unit.read, 1)
                await ctx.tick()
                for i in range(4):
                    low = 4 * (row % 4)
                    piece = memory[fractal, 4 * (row // 4) + i, low : low + 4]
                    assert ctx.get(unit.pieces[i]) == _number(piece)

    _simulate(unit, process)


#: Rows of a tile, bytes of a piece, blocks of a line: those of L0C, with 64 bytes a row.
SUMS = [(4, 16, 1), (4, 16, 2), (8, 32, 1), (8, 32, 4), (16, 64, 2), (16, 64, 8), (2, 16, 1)]
SUMS += [(2, 8, 1), (2, 8, 2), (4, 8, 4), (2, 16, 8)]  # tiles of fewer bytes than a line


@pytest.mark.parametrize(("rows", "piece", "blocks"), SUMS)
def test_tiles_become_lines(rows, piece, blocks):
    fractals = 2
    unit = TileMemory(
        fractals=fractals,
        tile_rows=rows,
        piece_bytes=piece,
        row_bytes=64,
        readers=1,
        writers=1,
        blocks=blocks,
    )
    random = np.random.default_rng(rows * piece * blocks)
    memory = np.zeros((fractals, 16, 64), np.uint8)
    line = blocks * _BLOCK
    per = 1024 // line

    async def process(ctx):
        for index in range(fractals * per):  # a line at a time, then tiles over some of them
            data = random.integers(0, 256, line, np.uint8)
            memory.reshape(-1, line)[index] = data
            await _write(ctx, unit.w[0], index, data, np.ones(line, bool))
        for _ in range(30):
            fractal, group = int(random.integers(fractals)), int(random.integers(16 // rows))
            column = int(random.integers(64 // piece))
            on, width = random.integers(0, 2, rows), random.integers(0, 2, piece)
            values = random.integers(0, 256, (rows, piece), np.uint8)
            tile = memory[fractal, group * rows : (group + 1) * rows]
            kept = tile[:, column * piece : (column + 1) * piece]
            wanted = on[:, None].astype(bool) & width[None].astype(bool)
            kept[wanted] = values[wanted]
            ctx.set(unit.target, {"fractal": fractal, "group": group, "column": column})
            ctx.set(unit.rows, int(sum(int(bit) << n for n, bit in enumerate(on))))
            ctx.set(unit.bytes, int(sum(int(bit) << n for n, bit in enumerate(width))))
            for i in range(rows):
                ctx.set(unit.values[i], _number(values[i]))
            ctx.set(unit.write, 1)
            await ctx.tick()
            ctx.set(unit.write, 0)
        port = unit.r[0]
        for index in range(fractals * per):
            ctx.set(port.address, index)
            ctx.set(port.request, 1)
            await ctx.tick()
            assert ctx.get(port.valid)
            assert ctx.get(port.data) == _number(memory.reshape(-1, line)[index]), index
        # A tile stays, and the port waits, as long as it is asked for.
        last = 64 // piece - 1
        for held in range(4):
            ctx.set(unit.tile, {"fractal": 1, "group": 0, "column": last})
            ctx.set(unit.read, held == 0)
            ctx.set(unit.hold, 1)
            assert not ctx.get(port.grant)
            await ctx.tick()
            for i in range(rows):
                value = _number(memory[1, i, last * piece :])
                assert ctx.get(unit.pieces[i]) == value and not ctx.get(port.valid)
            ctx.set(unit.tile, {"fractal": 0, "group": 0, "column": 0})
        ctx.set(unit.hold, 0)
        await ctx.tick()
        assert ctx.get(port.valid)

    _simulate(unit, process)


#: Rows of a tile, bytes of a piece, blocks of a line: those of wide memories of sums.
WIDE = [
    (2, 8, 1),
    (2, 8, 2),
    (4, 16, 1),
    (4, 16, 2),
    (8, 16, 1),
    (8, 32, 2),
    (4, 64, 2),
    (2, 64, 4),
]


@pytest.mark.parametrize(("rows", "piece", "blocks"), WIDE)
def test_a_wide_memory_has_tiles_of_words_and_of_pairs_of_words(rows, piece, blocks):
    """A fractal of words has rows of 64 bytes, one of pairs has rows of 128 in two fractals."""
    fractals, count = 4, 60
    unit = TileMemory(
        fractals=fractals,
        tile_rows=rows,
        piece_bytes=piece,
        row_bytes=64,
        readers=1,
        writers=1,
        blocks=blocks,
        wide=True,
    )
    random = np.random.default_rng(rows * piece * blocks)
    memory = random.integers(0, 256, (fractals, 16, 64), np.uint8)
    line = blocks * _BLOCK

    def place(wide):
        """Return a random tile: its address, and its bytes in the memory."""
        width = piece * (1 + wide)
        group = int(random.integers(16 // rows))
        # Pairs of fractals begin at any fractal.
        fractal = int(random.integers(fractals - wide))
        column = int(random.integers(64 // piece))
        low = column * width
        both = memory[fractal : fractal + 1 + wide].reshape(16, 64 * (1 + wide))
        tile = both[group * rows : (group + 1) * rows, low : low + width]
        row, within = divmod(group * rows * 64 * (1 + wide) + low, 64)
        address = {
            "fractal": fractal + row // 16,
            "group": row % 16,
            "column": within // piece,
        }
        return address, tile

    async def process(ctx):
        for index, data in enumerate(memory.reshape(-1, line)):
            await _write(ctx, unit.w[0], index, data, np.ones(line, bool))
        for n in range(count):
            wide = bool(random.integers(2))
            address, tile = place(wide)
            on, width = random.integers(0, 2, rows), random.integers(0, 2, tile.shape[1])
            values = random.integers(0, 256, tile.shape, np.uint8)
            wanted = on[:, None].astype(bool) & width[None].astype(bool)
            tile[wanted] = values[wanted]
            ctx.set(unit.target, address)
            ctx.set(unit.target_wide, wide)
            ctx.set(unit.rows, int(sum(int(bit) << i for i, bit in enumerate(on))))
            ctx.set(unit.bytes, int(sum(int(bit) << i for i, bit in enumerate(width))))
            for i, value in enumerate(values.reshape(-1, piece)):
                ctx.set(unit.values[i], _number(value))
            ctx.set(unit.write, 1)
            await ctx.tick()
            ctx.set(unit.write, 0)
            wide = bool(random.integers(2))
            address, tile = place(wide)
            ctx.set(unit.tile, address)
            ctx.set(unit.tile_wide, wide)
            ctx.set(unit.read, 1)
            ctx.set(unit.hold, 1)
            await ctx.tick()
            ctx.set(unit.read, 0)
            ctx.set(unit.hold, 0)
            for i, value in enumerate(tile.reshape(-1, piece)):
                assert ctx.get(unit.pieces[i]) == _number(value), (n, wide, address, i)
        port = unit.r[0]
        for index in range(len(memory.reshape(-1, line))):
            ctx.set(port.address, index)
            ctx.set(port.request, 1)
            await ctx.tick()
            assert ctx.get(port.data) == _number(memory.reshape(-1, line)[index]), index

    _simulate(unit, process)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tile_rows": 16}, "tiles of at most 8 rows, not 16"),
        ({"blocks": 4}, "lines of at most the 64 bytes of a row, not 128"),
    ],
)
def test_a_wide_memory_with_pieces_in_equal_banks_is_refused(options, message):
    shape = {"fractals": 4, "tile_rows": 4, "piece_bytes": 16, "row_bytes": 64}
    with pytest.raises(ValueError, match=message):
        TileMemory(**shape | {"readers": 1, "writers": 1, "wide": True} | options)


@pytest.mark.parametrize("banks", [1, 2, 8])
def test_banks_keep_blocks_and_units_take_turns(banks):
    """Of two ports of a unit the first one goes first; two units take turns at each bank."""
    blocks, units = 64, (2, 1)
    count = sum(units)
    unit = BankedMemory(blocks=blocks, banks=banks, readers=units, writers=units)
    random = np.random.default_rng(banks)
    memory = [0] * blocks
    low = banks.bit_length() - 1
    last = [0] * banks  # the unit that was granted last, at each bank

    def bank(row):
        if not low:
            return 0
        parity = bin(row >> low - 1).count("1") & 1
        return row & (1 << low - 1) - 1 | parity << low - 1

    def grants(rows, asks):
        granted = [False] * count
        for b in range(banks):
            first = [ask and bank(row) == b for row, ask in zip(rows, asks, strict=True)]
            of_unit = [first[0] or first[1], first[2]]
            for step in range(2):
                number = (last[b] + 1 + step) % 2
                if of_unit[number]:
                    granted[2 if number else 0 if first[0] else 1] = True
                    last[b] = number
                    break
        return granted

    async def process(ctx):
        for row in range(blocks):
            memory[row] = int.from_bytes(random.bytes(_BLOCK), "little")
            port = unit.w[row % count]
            ctx.set(port.address, row)
            ctx.set(port.data, memory[row])
            ctx.set(port.enable, (1 << _BLOCK) - 1)
            ctx.set(port.request, 1)
            await ctx.tick()
            ctx.set(port.request, 0)
        for _ in range(200):
            rows = [int(random.integers(blocks)) for _ in range(count)]
            asks = [int(random.integers(4)) > 0 for _ in range(count)]
            for port, row, ask in zip(unit.r, rows, asks, strict=True):
                ctx.set(port.address, row)
                ctx.set(port.request, ask)
            granted = [bool(ctx.get(port.grant)) for port in unit.r]
            assert granted == grants(rows, asks)
            assert ctx.get(unit.waits) == (granted != asks)
            await ctx.tick()
            for port, row, grant in zip(unit.r, rows, granted, strict=True):
                assert ctx.get(port.valid) == grant
                if grant:
                    assert ctx.get(port.data) == memory[row]

    _simulate(unit, process)


class _OneRow(TileMemory):
    """A memory whose tiles are read as if a line had one row."""

    def _turn(self, column, group=None):
        return column[: (self.banks - 1).bit_length()]


def test_a_wrong_skew_is_noticed(monkeypatch):
    monkeypatch.setitem(globals(), "TileMemory", _OneRow)
    test_lines_and_transposed_fractals_become_tiles(8, 16, 1)
    with pytest.raises(AssertionError):
        test_lines_and_transposed_fractals_become_tiles(8, 16, 2)
    # Without the group of rows, a tile of a line that fills all banks is read from wrong ones.
    with pytest.raises(AssertionError):
        test_lines_and_transposed_fractals_become_tiles(4, 4, 1)
    with pytest.raises(AssertionError):
        test_a_wide_memory_has_tiles_of_words_and_of_pairs_of_words(4, 16, 1)


class _LowBits(BankedMemory):
    """A memory whose banks are the low bits of a block."""

    def bank(self, row):
        return row[: (self.banks - 1).bit_length()]


def test_banks_without_the_parity_are_noticed(monkeypatch):
    monkeypatch.setitem(globals(), "BankedMemory", _LowBits)
    with pytest.raises(AssertionError):
        test_banks_keep_blocks_and_units_take_turns(8)

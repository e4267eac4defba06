"""From nodes of a dataflow graph to a program of the element-wise core.

A program has up to three parts. The prologue loads scalars, constants and the identities of the
reductions, and computes scalars. The body computes a step of N elements of each vector, and folds
them into one register per reduction. The epilogue folds the lanes of these registers, and computes
scalars from the results.

Some nodes do not run on the core: divisions, square roots, products with dense matrices, and
reductions other than folds. Its processing elements are those of the OS core (Zhang 2024, §4.4.3),
which do not divide. In the bodies of the applications all divisions have scalar operands.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from vitruvian.golden.sparse.graph import Ewise, Node, Operand, Reduce
from vitruvian.golden.sparse.programs import BINARY, SparseInstruction

#: Identity of each reduction that is a fold.
FOLDS = {"add": 0.0, "min": float("inf"), "max": float("-inf"), "or": 0.0}
_UNARY = ("copy", "abs", "not")


@dataclass(frozen=True, kw_only=True)
class SparseProgram:
    """A program, and the order of the items on the core's streams.

    Attributes
    ----------
    store : tuple of SparseInstruction
    prologue, body, epilogue : int or None
        Address of each part; None if it has no instruction.
    constants : tuple of str or float
        Scalars and numbers that the prologue loads from v, one item each.
    product : str or None
        The vector that the body loads from x.
    vectors : tuple of str
        Vectors that the body loads from v, in this order in each step.
    vector : str or None
        The vector that the body stores in y.
    results : tuple of str
        Vectors that the body stores in w, in this order in each step.
    scalars : tuple of str
        Scalars that the epilogue stores in w, in all lanes.
    registers : int
        Number of registers that the program uses.
    """

    store: tuple[SparseInstruction, ...]
    prologue: int | None
    body: int | None
    epilogue: int | None
    constants: tuple[Operand, ...]
    product: str | None
    vectors: tuple[str, ...]
    vector: str | None
    results: tuple[str, ...]
    scalars: tuple[str, ...]
    registers: int


def runs_on_the_core(node: Node) -> bool:
    """Return True for an element-wise operation or a reduction that the core has."""
    if isinstance(node, Ewise):
        return node.function in (*BINARY, *_UNARY, "select")
    return isinstance(node, Reduce) and node.function in FOLDS


@dataclass(eq=False)
class _Value:
    """A scalar or a vector; a tensor that is written twice is two values."""

    scalar: bool
    folded: bool = False  # it depends on a fold of these nodes
    uses: int = 0  # uses in the body that are still to come
    register: int | None = None


@dataclass
class _ProgramBuilder:
    """The state of a compilation."""

    lanes: int
    limit: int
    free: list[int]
    code: list[SparseInstruction] = field(default_factory=list[SparseInstruction])
    most: int = 0

    def take(self) -> int:
        """Return a free register."""
        if not self.free:
            raise ValueError(f"nodes must need at most {self.limit} registers, not more")
        # The lowest number first, so that a program uses as few registers as it can.
        self.free.sort()
        self.most = max(self.most, self.free[0] + 1)
        return self.free.pop(0)

    def emit(self, op: str, d: int = 0, a: int = 0, b: int = 0) -> None:
        self.code.append(SparseInstruction(op=op, d=d, a=a, b=b))

    def part(self, start: int) -> int | None:
        """End the part that began at an address, and return the address."""
        if len(self.code) == start:
            return None
        self.code[-1] = replace(self.code[-1], end=True)
        return start

    def compute(self, node: Ewise, operands: list[_Value], out: _Value) -> None:
        """Emit a node; registers of operands without further uses become free."""
        registers = [_register(value) for value in operands]
        if node.function == "select":
            condition, then, otherwise = registers
            # The result may replace the third operand, if nothing else needs that register.
            if operands[2].uses == 1 and not operands[2].scalar:
                out.register = otherwise
            else:
                out.register = self.take()
                self.emit("copy", out.register, otherwise)
            self.emit("where", out.register, condition, then)
            self.release(operands, keep=out.register)
            return
        self.release(operands)
        out.register = self.take()
        self.emit(node.function, out.register, *registers)

    def release(self, operands: list[_Value], keep: int | None = None) -> None:
        """Count a use of each operand, and free the registers of vectors that were the last."""
        for value in operands:
            value.uses -= 1
            if not value.uses and not value.scalar and value.register != keep:
                self.free.append(_register(value))


def _register(value: _Value) -> int:
    assert value.register is not None, "a value must be computed before it is used"
    return value.register


class _TensorNames:
    """The values of tensors and numbers, and where each one comes from."""

    def __init__(self, scalars: Collection[str]):
        self.scalars = scalars
        self.current: dict[str, _Value] = {}
        self.external: dict[str, _Value] = {}
        self.numbers: dict[str, tuple[float, _Value]] = {}

    def read(self, operand: Operand) -> _Value:
        if not isinstance(operand, str):
            # The hexadecimal text tells −0 from +0.
            return self.numbers.setdefault(
                float(operand).hex(), (float(operand), _Value(scalar=True))
            )[1]
        if operand not in self.current:
            # The first read of a tensor that nothing has written: it comes from outside.
            value = _Value(scalar=operand in self.scalars)
            self.external[operand] = self.current[operand] = value
        return self.current[operand]


@dataclass(frozen=True, eq=False)
class _CompiledStep:
    """A node with its values."""

    node: Ewise | Reduce
    operands: list[_Value]
    out: _Value


def _resolve(nodes: Sequence[Node], names: _TensorNames) -> list[_CompiledStep]:
    """Return the nodes with their values, and check that the core can run them in one pass."""
    steps: list[_CompiledStep] = []
    for node in nodes:
        if not isinstance(node, (Ewise, Reduce)) or not runs_on_the_core(node):
            raise ValueError(f"nodes must be operations of the core, not {node!r}")
        operands = [names.read(operand) for operand in node.inputs]
        scalar = isinstance(node, Reduce) or all(value.scalar for value in operands)
        folded = isinstance(node, Reduce) or any(value.folded for value in operands)
        if isinstance(node, Reduce) and operands[0].scalar:
            raise ValueError(f"reductions must have a vector, not {node!r}")
        # A fold is complete after the last step, when all elements of the vectors have passed.
        if folded and not scalar:
            raise ValueError(f"vectors must not need a reduction of the same pass, as {node!r}")
        out = _Value(scalar=scalar, folded=folded)
        names.current[node.out] = out
        steps.append(_CompiledStep(node, operands, out))
    return steps


def compile_nodes(
    nodes: Sequence[Node],
    *,
    scalars: Collection[str],
    wanted: Sequence[str],
    product: str | None = None,
    vector: str | None = None,
    lanes: int = 8,
    registers: int = 16,
    instructions: int = 64,
) -> SparseProgram:
    """Compile nodes of a graph to one pass over the vectors.

    Parameters
    ----------
    nodes : sequence of Node
        Element-wise operations and folds, in an order in which they can run.
    scalars : collection of str
        Tensors from elsewhere that are scalars. All others are vectors of one length.
    wanted : sequence of str
        Tensors to store in w.
    product : str, optional
        The tensor that comes from x.
    vector : str, optional
        The tensor to store in y.
    lanes, registers, instructions : int
        Sizes of the core.

    Returns
    -------
    SparseProgram

    Raises
    ------
    ValueError
        If the core does not have an operation, a vector needs a reduction over the same vectors,
        or the registers or the store do not suffice.
    """
    names = _TensorNames(scalars)
    steps = _resolve(nodes, names)
    stored = [*([vector] if vector is not None else []), *wanted]
    ends = {name: names.read(name) for name in stored}
    if vector is not None and ends[vector].scalar:
        raise ValueError(f"vector must be a vector, not the scalar {vector!r}")
    body = [step for step in steps if not step.out.scalar]
    folds = [step for step in steps if isinstance(step.node, Reduce)]
    # Uses are counted before, so that a register is free again after the last of them.
    for value in (*(v for step in (*body, *folds) for v in step.operands), *ends.values()):
        value.uses += 1
    b = _ProgramBuilder(lanes, registers, list(range(registers)))
    constants = _compile_prologue(b, steps, names, folds)
    prologue = b.part(0)

    start = len(b.code)
    loaded, results = _compile_body(b, steps, names, ends, product, vector, wanted)
    at_body = b.part(start)

    start = len(b.code)
    numbers = [name for name in wanted if ends[name].scalar]
    _compile_epilogue(b, steps, folds, [ends[name] for name in numbers])
    epilogue = b.part(start)
    if len(b.code) > instructions:
        raise ValueError(f"nodes must need at most {instructions} instructions, not {len(b.code)}")
    return SparseProgram(
        store=tuple(b.code),
        prologue=prologue,
        body=at_body,
        epilogue=epilogue,
        constants=tuple(constants),
        product=product if product in loaded else None,
        vectors=tuple(name for name in loaded if name != product),
        vector=vector,
        results=tuple(results),
        scalars=tuple(numbers),
        registers=b.most,
    )


def _compile_prologue(
    b: _ProgramBuilder,
    steps: Sequence[_CompiledStep],
    names: _TensorNames,
    folds: Sequence[_CompiledStep],
) -> list[Operand]:
    """Emit the loads and the computation of scalars, and return the operands that are loaded.

    Scalars stay in their registers until the end of the program.
    """
    constants: list[Operand] = []
    outside = [(name, value) for name, value in names.external.items() if value.scalar]
    for operand, value in (*outside, *names.numbers.values()):
        value.register = b.take()
        b.emit("load", value.register, 1)
        constants.append(operand)
    for step in folds:
        step.out.register = b.take()
        # A fold begins with the identity of its operation in every lane.
        b.emit("load", step.out.register, 1)
        constants.append(FOLDS[step.node.function])
    for step in steps:
        # Scalars that depend on a fold have to wait for the epilogue.
        if step.out.scalar and not step.out.folded:
            assert isinstance(step.node, Ewise)
            b.compute(step.node, step.operands, step.out)
    return constants


def _compile_epilogue(
    b: _ProgramBuilder,
    steps: Sequence[_CompiledStep],
    folds: Sequence[_CompiledStep],
    numbers: Sequence[_Value],
) -> None:
    """Emit the end of the folds over all lanes, what depends on them, and the stores of scalars."""
    for step in folds:
        # Exchanges at distances 1, 2, 4, … leave the fold of all lanes in each lane.
        accumulator, other = _register(step.out), b.take()
        for distance in range(b.lanes.bit_length() - 1):
            b.emit("exchange", other, accumulator, distance)
            b.emit(step.node.function, accumulator, accumulator, other)
        b.free.append(other)
    for step in steps:
        if step.out.folded and isinstance(step.node, Ewise):
            b.compute(step.node, step.operands, step.out)
    for value in numbers:
        b.emit("store", 1, _register(value))


def _compile_body(
    b: _ProgramBuilder,
    steps: list[_CompiledStep],
    names: _TensorNames,
    ends: dict[str, _Value],
    product: str | None,
    vector: str | None,
    wanted: Sequence[str],
) -> tuple[list[str], list[str]]:
    """Emit the body, and return the vectors that it loads and those that it stores in w."""
    loaded: list[str] = []
    results: list[str] = []
    sources = {id(value): name for name, value in names.external.items() if not value.scalar}

    def load(value: _Value) -> None:
        if value.register is None and id(value) in sources:
            name = sources[id(value)]
            value.register = b.take()
            b.emit("load", value.register, 0 if name == product else 1)
            loaded.append(name)

    def store(value: _Value) -> None:
        if vector is not None and ends[vector] is value:
            b.emit("store", 0, _register(value))
        for name in wanted:
            if ends[name] is value:
                b.emit("store", 1, _register(value))
                results.append(name)
        # The names of a value count as one use each; none is to come after its stores.
        count = sum(1 for end in ends.values() if end is value)
        if count:
            value.uses -= count - 1
            b.release([value])

    for step in steps:
        if isinstance(step.node, Ewise) and step.out.scalar:
            continue
        for value in step.operands:
            load(value)
        if isinstance(step.node, Reduce):
            accumulator = _register(step.out)
            b.emit(step.node.function, accumulator, accumulator, _register(step.operands[0]))
            b.release(step.operands)
            continue
        b.compute(step.node, step.operands, step.out)
        store(step.out)
        # Nobody reads this value; its register must not stay taken.
        if not step.out.uses and not any(end is step.out for end in ends.values()):
            b.free.append(_register(step.out))
    # Vectors that are stored as they were loaded.
    for value in {id(end): end for end in ends.values()}.values():
        if id(value) in sources:
            load(value)
            store(value)
    return loaded, results

"""Calls: of the source's own functions, of functions that the reader knows, and of intrinsics."""

import math
from collections.abc import Callable

from pycparser import c_ast

from vitruvian.sim.davinci.cce.compile.assignments import Assignments
from vitruvian.sim.davinci.cce.compile.expressions import ADDRESS_SLOT, MACHINE_SLOT
from vitruvian.sim.davinci.cce.compile.parse import position_of
from vitruvian.sim.davinci.cce.compile.printing import printer
from vitruvian.sim.davinci.cce.compile.scope import Expr, Place
from vitruvian.sim.davinci.cce.intrinsics.packed_args import unpack
from vitruvian.sim.davinci.cce.intrinsics.runtime import Call, Machine
from vitruvian.sim.davinci.cce.intrinsics.signature import bind, select
from vitruvian.sim.davinci.cce.intrinsics.table import PIPES, intrinsic_table
from vitruvian.sim.davinci.cce.language.errors import CceError, Position, nearest
from vitruvian.sim.davinci.cce.language.types import (
    DOUBLE,
    FLOAT,
    INT,
    INT64,
    PRIVATE,
    UINT64,
    VOID,
    Pointer,
    Reference,
    Scalar,
    Structure,
    Type,
    common,
    converter,
    integer,
)
from vitruvian.sim.davinci.cce.rewrite.classes import SELF, method_name
from vitruvian.sim.davinci.cce.rewrite.cplusplus import DEFAULT_PREFIX
from vitruvian.sim.davinci.cce.rewrite.toplevel import CAST_PREFIX

__all__ = ["Calls"]

#: What needs no arguments and asks the machine.
_QUERIES: dict[str, Callable[[Machine], int]] = {
    "get_block_idx": lambda m: m.block_idx,
    "get_block_num": lambda m: m.block_num,
    "GetBlockIdx": lambda m: (
        m.block_idx * m.registers.get("subblockdim", 1) + m.registers.get("subblockid", 0)
    ),
    "GetBlockNum": lambda m: m.block_num,
    "get_coreid": lambda m: m.block_idx,
    "get_subblockid": lambda m: m.registers.get("subblockid", 0),
    "get_subblockdim": lambda m: m.registers.get("subblockdim", 1),
    "get_task_ration": lambda m: m.registers.get("subblockdim", 1),
    "get_status": lambda m: 0,
    "get_overflow_status": lambda m: 0,
    "get_data_size": lambda m: 0,
    "get_sys_cnt": lambda m: m.steps,
    "get_ctrl": lambda m: m.registers.get("set_ctrl", 0),
    "get_fpc": lambda m: m.registers.get("set_fpc", 0),
}

#: Functions that print as C's printf does.
_PRINTING = ("printf", "cce_printf", "PRINTF")

#: What stops, or says what cores there are, and does nothing here.
_SILENT = frozenset("assert trap KERNEL_TASK_TYPE KERNEL_TASK_TYPE_DEFAULT InitSocState".split())


def _sqrt(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _finite(apply: Callable[[float], int]) -> Callable:
    """To a whole number; 0 of NaN, and an infinity as large as there is room for."""

    def whole(value):
        if math.isfinite(value):
            return apply(value)
        return 0 if value != value else (1 << 63) - 1 if value > 0 else -(1 << 63)

    return whole


def _rounded_float(apply: Callable[[float], int]) -> Callable:
    """To a whole number of the same type; NaN and infinities stay."""
    return lambda value: apply(value) if math.isfinite(value) else value


#: Functions of one number that give a number of the type named; None for that of the argument.
_FUNCTIONS: dict[str, tuple[Callable, Type | None]] = {
    "sqrt": (_sqrt, None),
    "sqrtf": (_sqrt, FLOAT),
    "abs": (abs, None),
    "fabs": (abs, None),
    "fabsf": (abs, FLOAT),
    "floor": (_rounded_float(math.floor), None),
    "ceil": (_rounded_float(math.ceil), None),
    "bcnt0": (lambda x: 64 - (x & (1 << 64) - 1).bit_count(), INT64),
    "bcnt1": (lambda x: (x & (1 << 64) - 1).bit_count(), INT64),
    "clz": (lambda x: 64 - (x & (1 << 64) - 1).bit_length(), INT64),
    "conv_f322s32r": (_finite(round), INT64),
    "conv_f322s32f": (_finite(math.floor), INT64),
    "conv_f322s32c": (_finite(math.ceil), INT64),
    "conv_f322s32z": (_finite(int), INT64),
}


class Calls(Assignments):
    """Expressions with calls; `function` is what the source's own functions are found with."""

    def function(self, name: str) -> "tuple[Type, list[Type], Callable] | None":
        """Result, parameters and body of one of the source's functions, or None."""
        raise NotImplementedError

    def chosen(self, name: str, nodes: list[c_ast.Node], position: Position) -> str:
        """Which of the source's functions of a name a call is of: an overload, an instance."""
        raise NotImplementedError

    def known(self) -> set[str]:
        """Names of the source's functions."""
        raise NotImplementedError

    def call(self, node: c_ast.FuncCall) -> Expr:
        """Compile a call."""
        here = position_of(node)
        nodes = node.args.exprs if node.args is not None else []
        if isinstance(node.name, c_ast.StructRef):
            name, nodes = self._of_object(node.name, nodes, here)
        elif isinstance(node.name, c_ast.ID):
            name = node.name.name
            own_method = self._own_method(name)
            if own_method is not None:
                name, nodes = own_method, [c_ast.ID(SELF, node.name.coord), *nodes]
        else:
            raise CceError(here, "a call must name its function")
        key = self.chosen(name, nodes, here)
        own = self.function(key)
        if own is not None:
            return self._own(key, own, nodes, here)
        if name.startswith(CAST_PREFIX):
            return self._functional_cast(name.removeprefix(CAST_PREFIX), nodes, here)
        if name in _PRINTING:
            return self._print(name, nodes, here)
        if name in _SILENT:
            return Expr(VOID, lambda f: None, here)
        arguments = [self.value(x) for x in nodes]
        if name in intrinsic_table():
            return self._intrinsic(name, arguments, here)
        simple = self._simple(name, arguments, here)
        if simple is not None:
            return simple
        every = intrinsic_table().keys() | _QUERIES.keys() | _FUNCTIONS.keys() | self.known()
        every |= {"get_imm", "max", "min"}
        raise CceError(here, f"{name} is not a function known here{nearest(name, every)}")

    def _print(self, name: str, nodes: list[c_ast.Node], here: Position) -> Expr:
        """Compile a print: its text goes to the sink, in the order of the kernel's text."""
        literal = nodes[0] if nodes else None
        if not isinstance(literal, c_ast.Constant) or literal.type != "string":
            raise CceError(here, f"{name} must be given its format as a string in quotes")
        arguments = [self.value(x) for x in nodes[1:]]
        make = printer(name, literal.value, [a.type for a in arguments], here)
        gets = tuple(a.get for a in arguments)

        def get(f):
            machine: Machine = f[MACHINE_SLOT]
            machine.step(here)
            machine.print(make(machine, [g(f) for g in gets]), here)

        return Expr(VOID, get, here)

    def _of_object(
        self, node: c_ast.StructRef, nodes: list[c_ast.Node], here: Position
    ) -> tuple[str, list[c_ast.Node]]:
        """Function and arguments of the call of a method."""
        what = node.name if node.type == "." else c_ast.UnaryOp("*", node.name, node.coord)
        type, name = self.type_of(what, decayed=False), node.field.name
        found = method_name(type.name, name) if isinstance(type, Structure) else ""
        if not self.has_function(found):
            raise CceError(here, f"{type} has no method {name}")
        return found, [what, *nodes]

    def _self(self) -> Structure | None:
        """What the function is a method of."""
        me = self.names.find(SELF)
        target = me.type.target if me is not None and isinstance(me.type, Reference) else None
        return target if isinstance(target, Structure) else None

    def _own_method(self, name: str) -> str | None:
        """The function that a name is of within a method."""
        me = self._self()
        found = method_name(me.name, name) if me is not None else ""
        return found if self.has_function(found) else None

    def _on_ID(self, node: c_ast.ID) -> Expr:
        """A member of what a method is of hides what is outside of it."""
        me = self._self() if node.name != SELF else None
        if me is not None and not any(node.name in scope for scope in self.names.scopes[1:]):
            itself = c_ast.ID(SELF, node.coord)
            if node.name == "this":
                return self.expression(c_ast.UnaryOp("&", itself, node.coord))
            if any(node.name == member for member, _, _ in me.members):
                whole = c_ast.StructRef(itself, ".", c_ast.ID(node.name, node.coord), node.coord)
                return self.expression(whole)
        return super()._on_ID(node)

    def has_function(self, name: str) -> bool:
        """Whether the source has a function or a template of that name."""
        raise NotImplementedError

    def _simple(self, name: str, arguments: list[Expr], here: Position) -> Expr | None:
        """What the reader works out itself."""
        if name in _QUERIES:
            self._counted(name, arguments, 0, here)
            ask = _QUERIES[name]
            return Expr(INT64, lambda f: ask(f[MACHINE_SLOT]), here)
        if name == "get_imm":
            self._counted(name, arguments, 1, here)
            return self.cast(arguments[0], UINT64)
        if name in ("max", "min", "fmax", "fmin", "fmaxf", "fminf"):
            self._counted(name, arguments, 2, here)
            return self._extreme(name, arguments, here)
        if name in _FUNCTIONS:
            self._counted(name, arguments, 1, here)
            return self._of_one(name, arguments[0], here)
        return None

    def _counted(self, name: str, arguments: list[Expr], count: int, here: Position) -> None:
        if len(arguments) != count:
            words = "1 argument" if count == 1 else f"{count} arguments"
            raise CceError(here, f"{name} must have {words}, not {len(arguments)}")

    def _extreme(self, name: str, arguments: list[Expr], here: Position) -> Expr:
        a, b = arguments
        if not isinstance(a.type, Scalar) or not isinstance(b.type, Scalar):
            raise CceError(here, f"{name} must be given numbers")
        type = common(a.type, b.type)
        choose = max if "max" in name else min
        return self._folded(type, [self.cast(a, type), self.cast(b, type)], choose, here)

    def _of_one(self, name: str, argument: Expr, here: Position) -> Expr:
        apply, type = _FUNCTIONS[name]
        if not isinstance(argument.type, Scalar):
            raise CceError(here, f"{name} must be given a number, not {argument.type}")
        type = argument.type if type is None else type
        convert = converter(DOUBLE, type)
        if convert is None:
            return self._folded(type, [argument], apply, here)
        return self._folded(type, [argument], lambda x: convert(apply(x)), here)

    def _functional_cast(self, name: str, nodes: list[c_ast.Node], here: Position) -> Expr:
        type = self.names.typedefs.get(name) or integer([name])
        if type is None:
            raise CceError(here, f"{name} is not a type known here")
        if len(nodes) > 1:
            raise CceError(here, f"{name}(...) must have 1 argument, not {len(nodes)}")
        if not nodes:
            return self.cast(Expr(INT, lambda f: 0, here, (0,)), type)
        return self.cast(self.value(nodes[0]), type)._replace(position=here)

    def _own(self, name: str, own, nodes: list[c_ast.Node], here: Position) -> Expr:
        result, parameters, body = own
        nodes = nodes + self._defaults(name, len(nodes), len(parameters))
        if len(nodes) != len(parameters):
            raise CceError(here, f"{name} must have {len(parameters)} arguments, not {len(nodes)}")
        pairs = zip(nodes, parameters, strict=True)
        gets = tuple(self.argument(n, type, here) for n, type in pairs)

        def get(f):
            return body(f[MACHINE_SLOT], [g(f) for g in gets], here)

        if not isinstance(result, Structure):
            return Expr(result, get, here)
        offset, size = self.new_bytes(result), result.size

        def keep(f):  # the function's own variables end with it
            start, memory = get(f), f[MACHINE_SLOT].memory
            at = f[ADDRESS_SLOT] + offset
            memory[at : at + size] = memory[start : start + size]
            return at

        return Expr(result, keep, here, place=Place(None, PRIVATE, keep))

    def _defaults(self, name: str, given: int, wanted: int) -> list[c_ast.Node]:
        """Constants for arguments that are left out."""
        found = [f"{DEFAULT_PREFIX}{name}_{i}" for i in range(given, wanted)]
        if not all(self.names.find(x) for x in found):
            return []
        return [c_ast.ID(x) for x in found]

    def argument(self, node: c_ast.Node, type: Type, here: Position) -> Callable:
        """Give the function for an argument's value; of a reference for its address."""
        if not isinstance(type, Reference):
            expr = self.value(node)
            if isinstance(type, Structure) and (expr.place is None or expr.place.space != PRIVATE):
                raise CceError(here, f"a {type} must be copied to a variable before it is given")
            return self.converted(expr, type)
        expr = self.expression(node)
        place = expr.place
        same = expr.type == type.target and place is not None and place.address is not None
        if place is not None and place.address is not None and same:
            if place.space != type.space:
                raise CceError(here, f"a {type} must not be given something in {place.space}")
            return place.address
        if type.space != PRIVATE:
            raise CceError(here, f"a {type} must be given something in {type.space}")
        get, offset = self.converted(self._decayed(expr), type.target), self.new_bytes(type.target)

        def keep(f):  # a value of its own, for a reference that is only read
            at = f[ADDRESS_SLOT] + offset
            f[MACHINE_SLOT].store(PRIVATE, at, type.target, get(f), here)
            return at

        return keep

    def new_bytes(self, type: Type) -> int:
        """Give an offset in the frame's memory that nothing else uses."""
        raise NotImplementedError

    def _intrinsic(self, name: str, arguments: list[Expr], here: Position) -> Expr:
        types = [a.type for a in arguments]
        signature, _ = select(intrinsic_table()[name], types, here)
        arguments = self._typed(signature, arguments)
        types = [a.type for a in arguments]
        constants = [a.constant for a in arguments]
        if all(c is not None for c in constants):
            return self._fixed(signature, [c[0] for c in constants if c], types, here)
        gets = tuple(a.get for a in arguments)

        def get(f):
            machine: Machine = f[MACHINE_SLOT]
            machine.step(here)
            bound = bind(signature, [g(f) for g in gets], types, here)
            _issue(machine, signature, unpack(signature, bound, here), here)

        return Expr(VOID, get, here)

    def _fixed(self, signature, values, types, here: Position) -> Expr:
        """A call with the same arguments every time: they are checked once."""
        try:
            bound = unpack(signature, bind(signature, values, types, here), here)
        except CceError as error:
            return Expr(VOID, _raise(error), here)

        def get(f):
            f[MACHINE_SLOT].step(here)
            _issue(f[MACHINE_SLOT], signature, bound, here)

        return Expr(VOID, get, here)

    def _typed(self, signature, arguments: list[Expr]) -> list[Expr]:
        """A scalar that goes with vectors as a number of their type, as a call in C makes it."""
        vectors = [
            a.type.target
            for a, p in zip(arguments, signature.parameters, strict=False)
            if isinstance(a.type, Pointer) and p.name in ("src", "dst", "src0")
        ]
        typed = []
        for argument, parameter in zip(arguments, signature.parameters, strict=False):
            if parameter.name == "scalar" and vectors and isinstance(vectors[-1], Scalar):
                argument = self.cast(argument, vectors[-1])
            typed.append(argument)
        return typed


def _raise(error: CceError) -> Callable:
    """A function that reports a mistake when it is reached."""

    def get(f):
        raise error

    return get


def _issue(machine: Machine, signature, bound: dict, here: Position) -> None:
    """Hand an intrinsic to the sink, with the names of pipes and what is behind own pointers."""
    machine.issue(here)
    name, pipe = signature.name, signature.pipe
    arguments = dict(bound)
    for parameter in signature.parameters:
        if parameter.kind == "pipe_t":
            arguments[parameter.name] = _pipe(name, arguments[parameter.name], here)
        elif parameter.kind == "OWN":
            start = arguments[parameter.name].address
            count = 4 if parameter.name == "lists" else 8
            raw = [machine.load(PRIVATE, start + 8 * i, UINT64, here) for i in range(count)]
            arguments[parameter.name] = tuple(raw)
    if pipe in arguments:
        pipe = arguments[pipe]
    if name.startswith("set_") and "config" in arguments:
        machine.registers[name] = arguments["config"]
    machine.sink.issue(Call(name, pipe, arguments, here))


def _pipe(name: str, number: int, here: Position) -> str:
    if number not in PIPES or (PIPES[number] == "ALL" and name != "pipe_barrier"):
        allowed = ", ".join(f"PIPE_{p}" for p in PIPES.values() if p != "ALL")
        raise CceError(here, f"{name}: a pipe must be one of {allowed}, not {number!r}")
    return PIPES[number]

"""Compile one function of the source."""

from collections.abc import Callable, Iterator

from pycparser import c_ast

from vitruvian.sim.davinci.cce.compile.assignments import Assignments
from vitruvian.sim.davinci.cce.compile.calls import Calls
from vitruvian.sim.davinci.cce.compile.context import CompiledFunction, Context
from vitruvian.sim.davinci.cce.compile.declarations import Declarations
from vitruvian.sim.davinci.cce.compile.expressions import ExpressionCompiler
from vitruvian.sim.davinci.cce.compile.parse import position_of
from vitruvian.sim.davinci.cce.compile.statements import StatementCompiler
from vitruvian.sim.davinci.cce.compile.storage import RESULT_SLOT, FrameLayout
from vitruvian.sim.davinci.cce.intrinsics.runtime import CceMachine
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.limits import PARTS_OF_A_STEP
from vitruvian.sim.davinci.cce.language.types import PRIVATE, VOID, Array, Pointer, Type

_DEEPEST = 100  # nesting of calls while a kernel runs


class FunctionCompiler:
    """The compiler of one function, composed of the compilers of its parts.

    Parameters
    ----------
    context : Context
        The state that the parts share.
    """

    def __init__(self, context: Context):
        self.context = context
        self.expressions = ExpressionCompiler(context)
        self.assignments = Assignments(self.expressions)
        self.calls = Calls(self.expressions)
        self.declarations = Declarations(self.calls)
        self.statements = StatementCompiler(self.declarations)

    def function(self, node: c_ast.FuncDef, *, is_entry: bool) -> CompiledFunction:
        """Return the function of a definition; its ``run`` works only after ``compile``.

        Parameters
        ----------
        node : c_ast.FuncDef
            The definition.
        is_entry : bool
            If True, pointers without an address space point to global memory.
        """
        result, _ = self.context.symbols.type_of(node.decl.type.type, self.expressions.count)
        parameters = list(self._parameters(node, is_entry))

        def not_yet(machine, arguments, position):
            message = f"{node.decl.name} must not be called while it is being declared"
            raise CceError(position, message)

        return CompiledFunction(node.decl.name, result, parameters, position_of(node), not_yet)

    def compile(self, function: CompiledFunction, node: c_ast.FuncDef) -> None:
        """Compile the body of a function into ``function.run``.

        The function must be known to its callers before, since it may call itself.
        """
        position = function.position
        stores = [
            self.declarations.parameter(name, type, position) for name, type in function.parameters
        ]
        self.statements.result = function.result
        body = self.statements.statement(node.body)
        weight = 1 + self.context.parts // PARTS_OF_A_STEP
        function.run = _runner(body, stores, self.context.frame, weight)

    def _parameters(self, node: c_ast.FuncDef, is_entry: bool) -> Iterator[tuple[str, Type]]:
        """Yield the name and type of each parameter."""
        arguments = node.decl.type.args
        for index, item in enumerate(arguments.params if arguments else []):
            if isinstance(item, c_ast.EllipsisParam):
                message = "a function must have a fixed number of parameters"
                raise CceError(position_of(item), message)
            type, _ = self.context.symbols.type_of(item, self.expressions.count)
            if type is VOID:  # f(void)
                continue
            if isinstance(type, Array):
                type = Pointer(PRIVATE, type.element)
            if is_entry and isinstance(type, Pointer) and type.space == PRIVATE:
                type = Pointer("GM", type.target)
            yield getattr(item, "name", None) or f"parameter {index}", type


def _runner(
    body: Callable, stores: list[Callable], frame: FrameLayout, weight: int
) -> Callable[[CceMachine, list, SourcePosition], object]:
    """Return the function that makes a frame, stores the arguments in it, and runs the body.

    Parameters
    ----------
    body : callable
        The compiled body, a function of the frame.
    stores : list of callable
        For each parameter, the function that stores a value into a frame.
    frame : FrameLayout
        The size of the frame.
    weight : int
        The steps that a call counts.
    """

    def run(machine: CceMachine, arguments: list, position: SourcePosition):
        machine.step(position, weight)
        machine.depth += 1
        if machine.depth > _DEEPEST:
            raise CceError(position, f"calls must be at most {_DEEPEST} deep")
        # The bytes of the frame are not cleared: C leaves local variables uninitialised, and the
        # compiler of declarations clears what must be zero.
        top = machine.top
        f = [machine, machine.reserve(frame.bytes, position)] + [0] * frame.slots
        for store, value in zip(stores, arguments, strict=True):
            store(f, value)
        body(f)
        machine.top = top
        machine.depth -= 1
        return f[RESULT_SLOT]

    return run

"""The arithmetic of a training run: formats by role, scales of operands, a machine's products."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from vitruvian.golden.fp.codec import to_float
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec
from vitruvian.golden.machines.int_phases import IntPhaseSpec
from vitruvian.golden.machines.phases import PhaseSpec
from vitruvian.golden.machines.products import multiply, rule_of
from vitruvian.golden.machines.spec import ChainSpec, RdnaSpec

Role = Literal["forward", "backward"]

_REACH = 126  # exponent of the largest power of two whose inverse is a normal number of FP32
_SHORT = 8  # bits of the widest formats whose tensors are scaled


@dataclass(frozen=True)
class Arithmetic:
    """The arithmetic of the matrix products of a network, forward and backward.

    The operands of a product are numbers of FP32. Each is rounded to the format of its role:
    activations and weights have the role "forward", gradients of activations "backward".

    Parameters
    ----------
    machine : str
        A machine of the table, for example "h100".
    forward, backward : str
        Formats of the two roles, as in the table ("fp16", "e4m3", "e2m1"). Products of a backward
        pass have operands of both; the machine must have them in both orders.
    instruction : str, optional
        By default the machine's first one that has these formats.
    scaled : bool, optional
        If True, each operand is multiplied by a power of two, so that its largest magnitude is as
        close to the format's largest number as possible, and the result is divided by both powers.
        By default True for formats of up to 8 bits. Rules with block scales have their own scales,
        and those with UE4M3 scales a factor for each operand.

    Raises
    ------
    UserError
        If the table has no such rows.
    """

    machine: str
    forward: str
    backward: str | None = None
    instruction: str | None = None
    scaled: bool | None = None

    def __post_init__(self) -> None:
        if self.backward is None:
            object.__setattr__(self, "backward", self.forward)
        self._rule("forward", "forward")
        self._rule("backward", "forward")
        self._rule("forward", "backward")

    def _formats(self, role_a: Role, role_b: Role) -> str:
        a, b = (str(getattr(self, role)) for role in (role_a, role_b))
        return a if a == b else f"{a}x{b}"

    def _rule(self, role_a: Role, role_b: Role) -> DotSpec | ChainSpec | PhaseSpec | RdnaSpec:
        rule = rule_of(self.machine, self.instruction, self._formats(role_a, role_b), "fp32")
        if isinstance(rule, IntDotSpec | IntPhaseSpec) or rule.output.name != "fp32":
            raise ValueError("formats must be those of a rule with fp32 results")
        if isinstance(rule, PhaseSpec) and rule.shared_bits is not None:
            raise ValueError("formats must be those of a rule without shared exponents")
        return rule

    def product(
        self,
        a: np.ndarray,
        b: np.ndarray,
        roles: tuple[Role, Role] = ("forward", "forward"),
        threads: int | None = None,
    ) -> np.ndarray:
        """Return A·B as the machine computes it from rounded operands.

        Parameters
        ----------
        a, b : (..., M, K), (..., K, N) ndarray of float32
        roles : tuple of str
            The roles of A and B.
        threads : int, optional
            As in ``multiply``.

        Returns
        -------
        (..., M, N) ndarray of float32
        """
        rule = self._rule(*roles)
        scales = rule.scales if isinstance(rule, DotSpec) else None
        factors: list[np.float32] = []
        operands: list[np.ndarray] = []
        for x, format in ((a, rule.input), (b, rule.input_b)):
            scaled = format.width <= _SHORT if self.scaled is None else self.scaled
            factor = (
                _scale(x, to_float(format.max_finite, format)) if scaled and scales is None else 1
            )
            factors.append(np.float32(factor))
            operands.append(x * np.float32(factor))
        d = multiply(
            *operands,
            machine=self.machine,
            instruction=self.instruction,
            input=self._formats(*roles),
            tensor_scale="auto" if scales is not None and scales.format.subnormals else None,
            threads=threads,
        )
        return d / factors[0] / factors[1]


def _scale(x: np.ndarray, largest: np.ndarray) -> float:
    """Return the largest power of two by which no magnitude of x exceeds ``largest``."""
    size = float(np.max(np.abs(x), initial=0.0))
    if not 0 < size < np.inf:
        return 1.0
    return 2.0 ** np.clip(np.floor(np.log2(float(largest) / size)), -_REACH, _REACH)

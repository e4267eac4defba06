"""Exceptions that every package shares, and how a command ends on them."""

__all__ = ["UserError", "WorkError"]


class UserError(ValueError):
    """An argument is wrong; the message is one line that says what is allowed. Exit code 2."""


class WorkError(RuntimeError):
    """A tool or a process failed in the middle of the work; the message says which. Exit code 1."""

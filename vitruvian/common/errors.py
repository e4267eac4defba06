"""Exceptions that all packages share; each has an exit code on the command line."""


class UserError(ValueError):
    """A wrong argument. The message is one line that says what is allowed; exit code 2."""


class WorkError(RuntimeError):
    """A tool or a process that failed during the work. The message names it; exit code 1."""

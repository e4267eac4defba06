"""The one exception that means: the user asked for something that does not exist."""


class UserError(ValueError):
    """What was asked for is not available; the message is one line and says what is."""


def choose(what: str, value: str, allowed) -> str:
    """Return `value` if it is one of `allowed`, else raise `UserError` listing them."""
    names = list(allowed)
    if value not in names:
        raise UserError(f"{what} must be one of {', '.join(names)}, not {shortened(value)}")
    return value


def shortened(value: str, most: int = 60) -> str:
    """Return `value` in quotes for a message, cut off where it is long."""
    return repr(value if len(value) <= most else value[:most] + "…")

"""Pooling window by window in plain NumPy, on arrays with the axes H and W first."""

import numpy as np


def windows(patches):
    """Yield (row, column of the window, pixels), the pixels as ((y, x), (row, column)) in order.

    Only the pixels inside of the image are listed.
    """
    p = patches
    for i, j in np.ndindex(p.rows, p.columns):
        places = []
        for y, x in np.ndindex(*p.kernel):
            row = i * p.stride[0] - p.pad[0] + y * p.dilation[0]
            column = j * p.stride[1] - p.pad[2] + x * p.dilation[1]
            if 0 <= row < p.height and 0 <= column < p.width:
                places.append(((y, x), (row, column)))
        yield i, j, places


def max_pool(x, patches):
    """Return the maxima (Oh, Ow, …), and the position in the kernel of the first, y·Kw + x."""
    y = np.zeros((patches.rows, patches.columns, *x.shape[2:]), x.dtype)
    first = np.zeros(y.shape, np.int64)
    for i, j, places in windows(patches):
        values = np.stack([x[place] for _, place in places])
        at = values.argmax(axis=0)
        y[i, j] = np.take_along_axis(values, at[None], 0)[0]
        first[i, j] = np.array([a * patches.kernel[1] + b for (a, b), _ in places])[at]
    return y, first


def average(x, patches, divisors, by_row=False):
    """Return the quotients of the sums, each rounded and from +0 (``by_row``: first each row's)."""
    y = np.zeros((patches.rows, patches.columns, *x.shape[2:]), x.dtype)
    for i, j, places in windows(patches):
        total, line, current = np.zeros_like(y[i, j]), np.zeros_like(y[i, j]), 0
        for (row, _), place in places:
            if by_row and row != current:
                total, line, current = total + line, np.zeros_like(line), row
            line = line + x[place]
        y[i, j] = (total + line) / x.dtype.type(divisors[i, j])
    return y


def spread(dy, patches, shares, by_column=False):
    """Return the gradient of the pixels.

    Parameters
    ----------
    dy : (Oh, Ow, …) ndarray
    shares : callable
        Returns the part of a window's gradient that a position gets: f(i, j, (y, x), gradient).
    by_column : bool
        If True, the contributions of a column of the kernel are added up first.
    """
    added = {}
    for i, j, places in windows(patches):
        for (y, x), place in places:
            added.setdefault(place, []).append(((x, y) if by_column else (y, x), i, j, (y, x)))
    dx = np.zeros((patches.height, patches.width, *dy.shape[2:]), dy.dtype)
    for place, items in added.items():
        total, line, current = np.zeros_like(dx[place]), np.zeros_like(dx[place]), None
        for order, i, j, position in sorted(items):
            if by_column and current not in (None, order[0]):
                total, line = total + line, np.zeros_like(line)
            current = order[0]
            line = line + shares(i, j, position, dy[i, j])
        dx[place] = total + line
    return dx

"""Im2Col and Col2Im, for one instruction and for a whole image."""

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.validate import check_int
from vitruvian.golden import vector
from vitruvian.golden.scu.patches import ROWS, Patches


def im2col_load(
    image: ArrayLike,
    patches: Patches,
    *,
    position: tuple[int, int] | None = None,
    kernel_position: tuple[int, int] = (0, 0),
    channel: int = 0,
    repeat: int = 1,
    mode: int = 0,
    pad_value: float = 0,
) -> np.ndarray:
    """Return the fractals that one Im2Col load instruction produces.

    Parameters
    ----------
    image : (..., C1, H, W, C0) array_like
    patches : Patches
        The patches of an H × W image.
    position : (int, int), optional
        Row and column of the first pixel of the first patch, by default those of patch 0. Each
        fractal has 16 consecutive patches.
    kernel_position : (int, int)
        Row and column in the kernel of the pixel that is loaded from each patch.
    channel : int
        Group of channels, c₁.
    repeat : int
        Number of fractals.
    mode : int
        0: a repetition goes on to the next position of the kernel, and after the last one to the
        next group of channels. 1: a repetition goes on to the next 16 patches.
    pad_value : number
        Value in the padding and in rows after the last patch.

    Returns
    -------
    (..., repeat, 16, C0) ndarray of the dtype of ``image``

    Raises
    ------
    TypeError, ValueError
        If the shape of ``image``, a position, a channel or the mode is invalid.

    References
    ----------
    Rohwedder 2021, §3.3, which does not specify the rows after the last patch.
    """
    image = _image(image, patches)
    check_int("channel", channel, 0)
    check_int("repeat", repeat, 1)
    position = patches.corner(0) if position is None else position
    *lead, _, _, _, c0 = image.shape
    if mode == 0 and patches.kernel == (1, 1):
        # Each repetition has the same pixels, of the next group of channels.
        _check_groups(image, channel + repeat - 1)
        rows, columns, inside = patches.pixels(position, kernel_position, ROWS)
        groups = image[..., channel : channel + repeat, :, :, :]
        if inside.all():
            return groups[..., rows, columns, :]
        result = np.full((*lead, repeat, ROWS, c0), pad_value, image.dtype)
        result[..., inside, :] = groups[..., rows[inside], columns[inside], :]
        return result
    # Pixels outside the image keep the padding value.
    result = np.full((*lead, repeat, ROWS, c0), pad_value, image.dtype)
    if mode == 1 and channel < image.shape[-4]:
        # The patches follow each other, so that all fractals are one selection of pixels.
        rows, columns, inside = patches.pixels(position, kernel_position, ROWS * repeat)
        flat = result.reshape(*lead, ROWS * repeat, c0)
        flat[..., inside, :] = image[..., channel, rows[inside], columns[inside], :]
        return result
    fractals = patches.walk(position, kernel_position, channel, repeat, mode)
    _check_groups(image, fractals[-1][0])
    for i, (group, rows, columns, inside) in enumerate(fractals):
        result[..., i, inside, :] = image[..., group, rows[inside], columns[inside], :]
    return result


def _check_groups(image: np.ndarray, last: int) -> None:
    """Raise ValueError if an image has no group of channels of this number."""
    if last >= image.shape[-4]:
        raise ValueError(f"channel must be below {image.shape[-4]} in every repetition, not {last}")


def im2col(
    image: ArrayLike, patches: Patches, *, mode: int = 0, pad_value: float = 0
) -> np.ndarray:
    """Return the fractals of all patches of an image, in the order of loads in one mode.

    Parameters
    ----------
    image : (..., C1, H, W, C0) array_like
    patches : Patches
        The patches of an H × W image.
    mode : int
        0: for each group of 16 patches, all positions of the kernel. 1: for each position of the
        kernel, all patches.
    pad_value : number
        Value in the padding and in rows after the last patch.

    Returns
    -------
    ndarray of the dtype of ``image``
        With P = ⌈Oh·Ow / 16⌉, (..., P, C1·Kh·Kw, 16, C0) in mode 0, which is the layout of a left
        matrix operand whose rows are patches; (..., C1·Kh·Kw, P, 16, C0) in mode 1.

    Raises
    ------
    ValueError
        If the shape of ``image`` or the mode is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian.golden.scu import Patches, im2col, to_nc1hwc0
    >>> image = to_nc1hwc0(np.ones((16, 4, 4), np.float16))
    >>> im2col(image, Patches(height=4, width=4, kernel=(2, 2))).shape  # 9 patches in one fractal
    (1, 4, 16, 16)
    """
    image = _image(image, patches)
    if mode not in (0, 1):
        raise ValueError(f"mode must be 0 or 1, not {mode!r}")
    *lead, groups, height, width, c0 = image.shape
    size: int = height * width
    # A last pixel holds the padding, and -1 selects it.
    pixels = np.empty((*lead, groups * size + 1, c0), image.dtype)
    pixels[..., :-1, :] = image.reshape(*lead, groups * size, c0)
    pixels[..., -1, :] = pad_value
    numbers = patches.numbers()  # (Kh·Kw, P, 16)
    first = np.arange(groups, dtype=np.int64).reshape(-1, 1, 1, 1) * (height * width)
    numbers = np.where(numbers < 0, -1, numbers + first)  # (C1, Kh·Kw, P, 16)
    numbers = numbers.reshape(-1, *numbers.shape[-2:])
    if mode == 0:
        numbers = np.swapaxes(numbers, 0, 1)
    return np.take(pixels, numbers, axis=-2)


def col2im_add(
    image: ArrayLike,
    fractals: ArrayLike,
    patches: Patches,
    *,
    position: tuple[int, int] | None = None,
    kernel_position: tuple[int, int] = (0, 0),
    channel: int = 0,
) -> np.ndarray:
    """Return the image after one Col2Im instruction, which adds fractals to the pixels.

    A repetition goes on to the next 16 patches; there is no other mode. So no pixel occurs twice,
    and the instruction makes at most one addition to a pixel, rounded once.

    Parameters
    ----------
    image : (..., C1, H, W, C0) array_like
        Elements of a dtype that ``golden.vector.add`` accepts.
    fractals : (..., repeat, 16, C0) array_like of the same dtype
        Rows in the padding and after the last patch are ignored.
    patches, position, kernel_position, channel
        The same as those of ``im2col_load``.

    Returns
    -------
    (..., C1, H, W, C0) ndarray of the dtype of ``image``

    Raises
    ------
    TypeError, ValueError
        If a shape, a dtype, a position or the channel is invalid.

    References
    ----------
    Rohwedder 2021, §3.4.
    """
    image, fractals = _image(image, patches), np.asarray(fractals)
    check_int("channel", channel, 0, image.shape[-4] - 1)
    if fractals.ndim < 3 or fractals.shape[-2:] != (ROWS, image.shape[-1]):
        raise ValueError(
            f"fractals must be (..., repeat, {ROWS}, {image.shape[-1]}), not {fractals.shape}"
        )
    position = patches.corner(0) if position is None else position
    repeat = fractals.shape[-3]
    rows, columns, inside = patches.pixels(position, kernel_position, ROWS * repeat)
    parts = fractals.reshape(*fractals.shape[:-3], ROWS * repeat, -1)[..., inside, :]
    pixels = (..., channel, rows[inside], columns[inside], slice(None))
    # NumPy's indexed assignment keeps one of several values for a pixel, but no pixel occurs twice.
    result = image.copy()
    result[pixels] = vector.add(image[pixels], parts)
    return result


def col2im(
    fractals: ArrayLike, patches: Patches, *, mode: int = 0, image: ArrayLike | None = None
) -> np.ndarray:
    """Add all patches to an image; this is the adjoint of ``im2col`` if all sums are exact.

    A pixel's addends are added in the order of the Col2Im instructions, of which there is one for
    each position of the kernel: ascending row of the kernel, then ascending column. Each sum is
    rounded.

    Parameters
    ----------
    fractals : (..., P, C1·Kh·Kw, 16, C0) array_like, or (..., C1·Kh·Kw, P, 16, C0) in mode 1
        Fractals in the order in which ``im2col`` returns them.
    patches : Patches
        The patches of an H × W image.
    mode : int
        0 or 1, as for ``im2col``.
    image : (..., C1, H, W, C0) array_like, optional
        The image that the patches are added to, zeros by default.

    Returns
    -------
    (..., C1, H, W, C0) ndarray

    Raises
    ------
    TypeError, ValueError
        If a shape, a dtype or the mode is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian.golden.scu import Patches, col2im, im2col, to_nc1hwc0
    >>> p = Patches(height=2, width=3, kernel=(2, 2))
    >>> image = to_nc1hwc0(np.ones((16, 2, 3), np.float16))
    >>> col2im(im2col(image, p), p)[0, :, :, 0].tolist()  # how many patches have each pixel
    [[1.0, 2.0, 1.0], [1.0, 2.0, 1.0]]
    """
    fractals = np.asarray(fractals)
    if mode not in (0, 1):
        raise ValueError(f"mode must be 0 or 1, not {mode!r}")
    original = fractals.shape
    kh, kw = patches.kernel
    if fractals.ndim >= 4 and mode == 0:
        fractals = np.swapaxes(fractals, -4, -3)
    shape, axes = fractals.shape, ("C1·Kh·Kw", f"{patches.fractals}")
    if len(shape) < 4 or shape[-4] % (kh * kw) or shape[-3:-1] != (patches.fractals, ROWS):
        raise ValueError(
            f"fractals must be (..., {', '.join(axes if mode else axes[::-1])}, {ROWS}, C0) in "
            f"mode {mode} with Kh·Kw = {kh * kw}, not {original}"
        )
    if image is None:
        size = (shape[-4] // (kh * kw), patches.height, patches.width, shape[-1])
        image = np.zeros((*shape[:-4], *size), fractals.dtype)
    result = np.asarray(image)
    for step in range(shape[-4]):
        channel, index = divmod(step, kh * kw)
        part = fractals[..., step, :, :, :]
        result = col2im_add(
            result, part, patches, channel=channel, kernel_position=divmod(index, kw)
        )
    return result


def _image(image: ArrayLike, patches: Patches) -> np.ndarray:
    """Return the image as an array after checking its shape."""
    image = np.asarray(image)
    if image.ndim < 4 or image.shape[-3:-1] != (patches.height, patches.width):
        raise ValueError(
            f"image must be (..., C1, {patches.height}, {patches.width}, C0), not {image.shape}"
        )
    return image

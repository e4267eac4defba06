"""Im2Col and Col2Im: of one instruction, and of a whole image."""

import numpy as np

from vitruvian.golden import vector
from vitruvian.golden.scu.patches import ROWS
from vitruvian.validate import check_int

__all__ = ["col2im", "col2im_add", "im2col", "im2col_load"]


def im2col_load(
    image,
    patches,
    *,
    position=None,
    kernel_position=(0, 0),
    channel=0,
    repeat=1,
    mode=0,
    pad_value=0,
):
    """The fractals that one Im2Col load brings.

    Parameters
    ----------
    image : (..., C1, H, W, C0) ndarray
    patches : Patches
        Of an image of H × W.
    position : (int, int), optional
        First pixel of the first of 16 consecutive patches; that of the first by default.
    kernel_position : (int, int)
        Which pixel of each patch.
    channel : int
        Group of channels, c₁.
    repeat : int
        Fractals.
    mode : int
        What a repetition changes: 0, the position in the kernel, then the group of channels; 1,
        the patches, 16 further.
    pad_value : number
        What stands in the padding, and in rows after the last patch.

    Returns
    -------
    (..., repeat, 16, C0) ndarray

    Raises
    ------
    TypeError, ValueError
        For another shape, and positions and channels that are not there.

    References
    ----------
    Rohwedder 2021, §3.3. What the rows after the last patch hold is not said there.
    """
    image = _image(image, patches)
    check_int("channel", channel, 0)
    check_int("repeat", repeat, 1)
    position = patches.corner(0) if position is None else position
    fractals = patches.walk(position, kernel_position, channel, repeat, mode)
    if fractals[-1][0] >= image.shape[-4]:
        raise ValueError(
            f"channel must be below {image.shape[-4]} to the last repeat, not {fractals[-1][0]}"
        )
    *lead, _, _, _, c0 = image.shape
    result = np.full((*lead, repeat, ROWS, c0), pad_value, image.dtype)
    for i, (group, rows, columns, inside) in enumerate(fractals):
        result[..., i, inside, :] = image[..., group, rows[inside], columns[inside], :]
    return result


def im2col(image, patches, *, mode=0, pad_value=0):
    """All patches of an image, as loads in one of the modes leave them.

    Parameters
    ----------
    image : (..., C1, H, W, C0) ndarray
    patches : Patches
    mode : int
        0: 16 patches after 16 patches, and of each the positions of the kernel; 1: position after
        position, and of each all patches.
    pad_value : number

    Returns
    -------
    (..., P, C1·Kh·Kw, 16, C0) ndarray in mode 0: fractals of the matrix whose rows are patches, as
    the left operand of a product has them; (..., C1·Kh·Kw, P, 16, C0) in mode 1. P = ⌈Oh·Ow / 16⌉.

    Raises
    ------
    ValueError
        As ``im2col_load``.
    """
    image = _image(image, patches)
    kh, kw = patches.kernel
    steps = image.shape[-4] * kh * kw
    if mode == 0:
        starts = [{"position": patches.corner(ROWS * i)} for i in range(patches.fractals)]
        repeat = steps
    else:
        places = [divmod(step, kh * kw) for step in range(steps)]
        starts = [{"channel": c, "kernel_position": divmod(place, kw)} for c, place in places]
        repeat = patches.fractals
    loads = [
        im2col_load(image, patches, repeat=repeat, mode=mode, pad_value=pad_value, **start)
        for start in starts
    ]
    return np.stack(loads, axis=-4)


def col2im_add(image, fractals, patches, *, position=None, kernel_position=(0, 0), channel=0):
    """The image after one Col2Im: fractals added to the pixels that they come from.

    A repetition goes on to the next 16 patches, the only mode that there is: no pixel is met
    twice, so that an instruction is one addition, rounded once, wherever it adds something.

    Parameters
    ----------
    image : (..., C1, H, W, C0) ndarray
        Of a type that ``golden.vector.add`` takes.
    fractals : (..., repeat, 16, C0) ndarray
        Of that type; rows in the padding and after the last patch are dropped.
    patches, position, kernel_position, channel
        As ``im2col_load`` takes them.

    Returns
    -------
    (..., C1, H, W, C0) ndarray

    Raises
    ------
    TypeError, ValueError
        For another shape or type, and positions and channels that are not there.

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
    place = (..., channel, rows[inside], columns[inside], slice(None))
    result = image.copy()
    result[place] = vector.add(image[place], parts)
    return result


def col2im(fractals, patches, *, mode=0, image=None):
    """All patches added to an image: the adjoint of ``im2col`` as far as sums are exact.

    Each pixel's addends come in the order of Col2Im instructions, one for each position of the
    kernel: in rising row of the kernel, then rising column; each sum is rounded.

    Parameters
    ----------
    fractals : (..., P, C1·Kh·Kw, 16, C0) ndarray, or (..., C1·Kh·Kw, P, 16, C0) in mode 1
    patches : Patches
    mode : int
    image : (..., C1, H, W, C0) ndarray, optional
        What is added to; zeros by default.

    Returns
    -------
    (..., C1, H, W, C0) ndarray

    Raises
    ------
    TypeError, ValueError
        For another shape or type, or mode.
    """
    fractals = np.asarray(fractals)
    if mode not in (0, 1):
        raise ValueError(f"mode must be 0 or 1, not {mode!r}")
    wrong = fractals.shape
    kh, kw = patches.kernel
    if fractals.ndim >= 4 and mode == 0:
        fractals = np.swapaxes(fractals, -4, -3)
    shape, given = fractals.shape, ("C1·Kh·Kw", f"{patches.fractals}")
    if len(shape) < 4 or shape[-4] % (kh * kw) or shape[-3:-1] != (patches.fractals, ROWS):
        raise ValueError(
            f"fractals must be (..., {', '.join(given if mode else given[::-1])}, {ROWS}, C0) in "
            f"mode {mode} with Kh·Kw = {kh * kw}, not {wrong}"
        )
    if image is None:
        size = (shape[-4] // (kh * kw), patches.height, patches.width, shape[-1])
        image = np.zeros((*shape[:-4], *size), fractals.dtype)
    for step in range(shape[-4]):
        channel, place = divmod(step, kh * kw)
        part = fractals[..., step, :, :, :]
        where = {"channel": channel, "kernel_position": divmod(place, kw)}
        image = col2im_add(image, part, patches, **where)
    return image


def _image(image, patches):
    image = np.asarray(image)
    if image.ndim < 4 or image.shape[-3:-1] != (patches.height, patches.width):
        raise ValueError(
            f"image must be (..., C1, {patches.height}, {patches.width}, C0), not {image.shape}"
        )
    return image

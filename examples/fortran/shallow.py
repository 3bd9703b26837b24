"""The model of `shallow.F90` in Python alone, and a picture of what either has written.

python shallow.py 100 python.out        the model
python shallow.py --draw picture.png fortran.out.0 fortran.out.1
"""

import sys
from pathlib import Path

import numpy as np

SHAPE = (96, 64, 2)
DT = 0.2


def first_values() -> tuple[np.ndarray, np.ndarray]:
    """Return a hill of water, and squares of dye."""
    i, j, k = np.ogrid[1 : SHAPE[0] + 1, 1 : SHAPE[1] + 1, 1 : SHAPE[2] + 1]
    hill = k * 90.0 / (36 + (i - 30) ** 2 + (j - 32) ** 2)
    squares = ((i - 1) // 8 + (j - 1) // 8) % 2 + 0 * k
    return hill, squares.astype(np.float64)


def run(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Compute the steps, and return the height and the dye."""
    import dlfield as dlf
    from stencils import BACKEND, HALO, accelerate, carry, exchange, finish, rise, start

    shape = [extent + 2 * width for extent, width in zip(SHAPE, HALO, strict=True)]
    h, u, v, dye, out = (dlf.zeros(shape, backend=BACKEND, dims="IJK", halo=HALO) for _ in range(5))
    for field, values in zip((h, dye), first_values(), strict=True):
        field.domain_view.to_numpy()[...] = values
    start(h, u, v, dye, out)
    pairs = (("dye", dye, out), ("out", out, dye))
    for step in range(steps):
        exchange("height")
        accelerate(h, u, v, pull=DT)
        exchange("wind")
        rise(u, v, h, depth=DT)
        name, before, after = pairs[step % 2]
        exchange(name)
        carry(u, v, before, after, dt=DT)
    finish()
    last = pairs[steps % 2][1]
    return h.domain_view.to_numpy(), last.domain_view.to_numpy()


def read(paths: list[str]) -> list[np.ndarray]:
    """Read the height and the dye that the ranks have written, each a part of I."""
    parts = []
    for path in paths:
        values = np.fromfile(path)
        parts.append(values.reshape((-1, *SHAPE[1:], 2), order="F"))
    whole = np.concatenate(parts)
    return [whole[..., 0], whole[..., 1]]


def write(path: str, fields: tuple[np.ndarray, ...]) -> None:
    """Write them as Fortran does."""
    with Path(path).open("wb") as file:
        for values in fields:
            file.write(values.tobytes(order="F"))


def draw(path: str, fields: list[np.ndarray]) -> None:
    """Draw the upper level: water in blue, high is bright; the dye in red."""
    from PIL import Image

    height, dye = (values[:, ::-1, 1].T for values in fields)
    height = (height - height.min()) / (height.max() - height.min())
    dye = dye.clip(0, 1)
    colours = np.stack([255 * dye, 80 + 120 * height, 120 + 135 * height], -1)
    picture = colours.clip(0, 255).astype(np.uint8)
    Image.fromarray(picture.repeat(6, 0).repeat(6, 1)).save(path)


if __name__ == "__main__":
    if sys.argv[1] == "--draw":
        draw(sys.argv[2], read(sys.argv[3:]))
    else:
        write(sys.argv[2], run(int(sys.argv[1])))

"""The dims of a result: their names, and the order of these."""

import operator

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused

EXTENTS = {"I": 2, "J": 3, "K": 4, "0": 5, "1": 6, "x": 7, "y": 8}


def field(names, first=1.0):
    shape = tuple(EXTENTS[name] for name in names)
    return dlf.storage(np.arange(first, first + np.prod(shape)).reshape(shape), dims=tuple(names))


def placed(storage, dims):
    own = [name for name in dims if name in storage.dims]
    array = storage.to_numpy().transpose([storage.dims.index(name) for name in own])
    return array[tuple(slice(None) if name in own else None for name in dims)]


@pytest.mark.source(
    "GDP-3 draft",
    "Broadcasting",
    "fields are combined along dimensions of the same name, in the order I, J, K",
)
@pytest.mark.parametrize(
    ("names", "dims"),
    [
        (["K", "IJK"], "IJK"),
        (["K", "KJI"], "KJI"),
        (["KI", "IJ", "KIJ"], "KIJ"),
        (["y", "xy"], "xy"),
        (["K", "IJ"], "IJK"),
        (["IK", "JK"], "IJK"),
        (["JI", "K"], "IJK"),
        (["1", "K0", "I"], "IK01"),
        (["y", "x"], "yx"),
        (["K", "xI"], "KxI"),
    ],
    ids=str,
)
def test_dims_are_the_first_operand_s_with_all_or_in_gt4py_s_order_or_as_they_come(names, dims):
    operands = [field(one) for one in names]
    conditions, choices = [one > 0 for one in operands[:-1]], operands[1:]
    made = np.select(conditions, choices, 0.0)
    assert (made.dims, made.shape) == (tuple(dims), tuple(EXTENTS[name] for name in dims))
    total = operands[0] + operands[1]
    if len(names) == 2:
        assert total.dims == tuple(dims)
    wanted = operator.add(*(placed(one, total.dims) for one in operands[:2]))
    np.testing.assert_array_equal(total.to_numpy(), wanted)


FORMULAS = {
    "mixing ratio": lambda es, p, _: es / (p - es),
    "virtual temperature": lambda t, q, _: t * (1 + 0.61 * q) / (q + t),
    "hydrostatic pressure": lambda t, ak, bk_ps: ak + bk_ps * t,
    "planes and a volume": lambda t, k, _: (t[:, 0] + t[0]) + t * k,
    "three profiles": lambda t, k, ij: (k + ij) * t + (ij + k) * (k + t),
}


@pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS)
def test_a_formula_with_a_profile_first_needs_no_transpose(formula):
    volume, profile, plane = field("IJK"), field("K", 100.0), field("IJ", 3.0)
    if formula is FORMULAS["planes and a volume"]:
        wanted = volume.to_numpy()[:, :1] + volume.to_numpy()[:1]
        wanted = wanted + volume.to_numpy() * profile.to_numpy()
    else:
        wanted = formula(*(one.to_numpy() for one in (volume, profile, plane[:, :, None])))
    made = formula(volume, profile, plane)
    assert made.dims == ("I", "J", "K")
    np.testing.assert_array_equal(made.to_numpy(), wanted)


def test_names_in_another_order_are_refused_also_in_square_fields():
    square = dlf.zeros((3, 3), dims="IJ")
    with refused(ValueError, "('I', 'J') and ('J', 'I')", 'use transpose("I", "J") of the second'):
        square + square.rename(I="J", J="I")
    assert (square + square.transpose("J", "I").transpose("I", "J")).dims == ("I", "J")


def test_each_two_of_several_operands_have_one_order():
    square = dlf.zeros((3, 3), dims="IJ")
    line = dlf.zeros(3, dims="I")
    with refused(ValueError, "('I', 'J') and ('J', 'I')"):
        np.where(line > 0, square, square.rename(I="J", J="I"))


def test_an_order_that_no_operand_has_alone_is_no_contradiction():
    xy, yz, zx = (dlf.ones((3, 3), dims=names) for names in ("xy", "yz", "zx"))
    made = np.where(xy > 0, yz, zx)
    assert (made.dims, made.shape) == (("x", "y", "z"), (3, 3, 3))


# --- a single input, and what is assigned ---------------------------------------------------------

VALUES = {
    "another order of names": field("JI"),
    "fewer names": field("J"),
    "an extent of 1": dlf.ones((2, 1), dims="IJ"),
    "by position": np.arange(6.0).reshape(2, 3),
    "the last dimension": np.arange(3.0),
    "the three axes of the draft": np.arange(6.0).reshape(2, 3, 1),
    "one of them": np.arange(3.0).reshape(1, 3, 1),
    "a number": 5.0,
}


@pytest.mark.source(
    "GDP-3 draft", "Methods", "assignment does what `numpy.positive` with `out=` does"
)
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_function_of_one_input_writes_into_out_as_an_assignment_does(value):
    assigned, written = dlf.zeros((2, 3), dims="IJ"), dlf.zeros((2, 3), dims="IJ")
    assigned[...] = value
    assert np.positive(value, out=written) is written
    np.testing.assert_array_equal(written, assigned)
    named = value.dims == ("J", "I") if isinstance(value, dlf.Storage) else False
    plain = np.asarray(value).T if named else np.asarray(value)
    plain = plain[..., 0] if plain.ndim == 3 else plain
    np.testing.assert_array_equal(assigned, np.broadcast_to(plain, (2, 3)))


@pytest.mark.parametrize(
    "value",
    [np.ones((2, 3, 2)), np.ones((1, 2, 3)), np.ones((3, 2)), np.ones((2, 3, 1, 1))],
    ids=np.shape,
)
def test_both_refuse_what_fits_nothing_and_write_nothing(value):
    out = dlf.zeros((2, 3), dims="IJ")
    with refused(ValueError, "shape: expected", str(list(value.shape))):
        out[...] = value
    with refused(ValueError, "shape: expected"):
        np.positive(value, out=out)
    assert not out.any()


def test_two_inputs_keep_the_order_of_names_of_out():
    with refused(ValueError, "in the same order"):
        np.add(field("JI"), 1, out=dlf.zeros((2, 3), dims="IJ"))


def test_a_reduction_writes_into_another_order_of_names():
    out = dlf.zeros((3, 2), dims="JI")
    np.sum(field("IJK"), axis="K", out=out)
    np.testing.assert_array_equal(out, field("IJK").to_numpy().sum(2).T)

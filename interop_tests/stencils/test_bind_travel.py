"""Bound stencils of GT4Py go to other processes, which compile them once."""

import copy
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor

import dlfield as dlf
import numpy as np
import pytest
from dlfield.stencils import travel

from support.errors import refused
from support.optional import library
from support.processes import printed_by
from support.stencils import travelling
from support.stencils.next_programs import QUIET, on

gtscript = library("gt4py.cartesian.gtscript")
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval  # noqa: E402

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]
SHAPE = (3, 2, 4)
FACTOR = 3.0


@gtscript.function
def scaled(value):
    return FACTOR * value


def result_of(run, names=("inp", "out")):
    out = np.zeros(SHAPE)
    run(**dict(zip(names, (np.ones(SHAPE), out), strict=True)))
    return out[0, 0, 0]


def local_stencil(weight, backend="numpy", real=np.float64):
    """Return a stencil that no module has, with an external, a function and a closure."""
    more = 10.0

    @gtscript.stencil(backend=backend, externals={"WEIGHT": weight}, dtypes={"real": real})
    def local(inp: Field["real"], out: Field["real"]):
        from __externals__ import WEIGHT

        with computation(PARALLEL), interval(...):
            out = WEIGHT * scaled(inp) + more  # noqa: F841

    return local


@pytest.fixture
def forgotten(monkeypatch):
    """Forget the stencils that have left, as another process knows none of them."""
    monkeypatch.setattr(travel, "_stencils", {})
    monkeypatch.setattr(travel, "_bound", {})


STENCILS = {
    "of a module": (lambda: travelling.shifted, 2.0),
    "of a module, compiled later": (lambda: travelling.lazily_shifted, 3.0),
    "of a function": (lambda: local_stencil(2.0), 16.0),
    "compiled": (lambda: local_stencil(4.0, "gt:cpu_kfirst"), 22.0),
}


@pytest.fixture(scope="module")
def elsewhere():
    """Return what each of `STENCILS` computes in a new process, and its identity there."""
    sent = [pickle.dumps(dlf.bind(make())) for make, _ in STENCILS.values()]
    code = f"import pickle, numpy as np\nfor sent in {sent!r}:\n    run = pickle.loads(sent)\n"
    code += f"    out = np.zeros({SHAPE})\n    run(np.ones({SHAPE}), out)\n"
    code += "    print(out[0, 0, 0], run._gt_id_)\n"
    lines = printed_by("-c", code).splitlines()
    return dict(zip(STENCILS, map(str.split, lines), strict=True))


@pytest.mark.parametrize("kind", STENCILS)
def test_a_new_process_computes_the_same_with_the_code_that_is_cached(kind, elsewhere):
    make, expected = STENCILS[kind]
    run = dlf.bind(make())
    assert result_of(run) == expected
    assert elsewhere[kind] == [str(expected), run._gt_id_]


def test_a_definition_of_a_module_goes_by_its_name_and_any_other_by_its_source():
    assert b"inp + 1.0" not in pickle.dumps(dlf.bind(travelling.shifted))
    assert b"WEIGHT * scaled(inp)" in pickle.dumps(dlf.bind(local_stencil(2.0)))


def test_a_stencil_that_comes_back_is_the_one_that_left():
    run = dlf.bind(travelling.shifted)
    assert pickle.loads(pickle.dumps(run)).stencil is run.stencil


def test_what_arrives_often_is_compiled_once(forgotten, monkeypatch):
    compiled = []
    own = travel.compile_again
    note = lambda *given: compiled.append(given) or own(*given)  # noqa: E731
    sent = pickle.dumps(dlf.bind(local_stencil(5.0)))
    travel._stencils.clear()
    monkeypatch.setattr(travel, "compile_again", note)
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(pickle.loads, [sent] * 8))
    assert len(compiled) == 1
    assert len({*map(id, runs)}) == 1  # so that it warns once
    assert result_of(runs[0]) == 25.0


def test_what_arrives_can_go_on(forgotten):
    run = dlf.bind(local_stencil(6.0))
    sent = pickle.dumps(run)
    travel._stencils.clear()
    arrived = pickle.loads(sent)
    assert arrived.__reduce__()[1][0] == run.__reduce__()[1][0]
    assert result_of(arrived) == 28.0


def test_the_options_of_bind_go_along():
    run = dlf.bind(travelling.shifted, dims={"lon": "I"})
    arrived = pickle.loads(pickle.dumps(run))
    out = dlf.zeros(SHAPE, dims=("lon", "J", "K"))
    arrived(dlf.ones(SHAPE, dims=("lon", "J", "K")), out)
    assert (out.to_numpy() == 2.0).all()


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy])
def test_a_copy_has_the_stencil_itself(again):
    run = dlf.bind(travelling.shifted)
    assert again(run).stencil is run.stencil


@pytest.mark.parametrize("backend", ["embedded", "gtfn_cpu"])
def test_a_program_of_gt4py_next_goes_with_its_backend(backend, forgotten):
    run = dlf.bind(on(backend, "lift"))
    sent = pickle.dumps(run)
    travel._stencils.clear()
    arrived = pickle.loads(sent)
    assert arrived.stencil is not run.stencil
    assert arrived.backend is run.backend
    arrived(values := np.random.default_rng(0).random(SHAPE), out := np.zeros(SHAPE))
    assert np.array_equal(out[..., :-1], values[..., 1:])


def test_a_program_that_arrives_twice_is_one(forgotten):
    sent = pickle.dumps(dlf.bind(on("gtfn_cpu", "lift")))
    travel._stencils.clear()
    assert pickle.loads(sent).stencil is pickle.loads(sent).stencil


def test_one_that_is_bound_with_other_names_is_another():
    runs = [dlf.bind(travelling.shifted, dims={name: "I"}) for name in ("lon", "x")]
    lon, x = (pickle.loads(pickle.dumps(run)) for run in runs)
    assert lon is not x
    lon(dlf.ones(SHAPE, dims=("lon", "J", "K")), np.zeros(SHAPE))
    x(dlf.ones(SHAPE, dims=("x", "J", "K")), np.zeros(SHAPE))


# --- what cannot go ------------------------------------------------------------------------------


def test_what_cannot_be_compiled_elsewhere_is_refused_at_once_with_the_line_to_write():
    stencil = local_stencil(7.0)
    stencil.definition_func._gtscript_["externals"]["handle"] = (one for one in ())
    with pytest.raises(pickle.PicklingError) as caught:
        pickle.dumps(dlf.bind(stencil))
    text = str(caught.value)
    assert text.startswith("local: expected a definition that another process can compile, got ")
    assert "@functools.cache\ndef local_here():\n    return dlfield.bind(local, ...)" in text


def test_types_that_gt4py_does_not_keep_are_refused():
    with pytest.raises(pickle.PicklingError, match="compiled with dtypes=, which GT4Py does not"):
        pickle.dumps(dlf.bind(local_stencil(2.0, real=np.float32)))


# --- who sends them ------------------------------------------------------------------------------


def test_cloudpickle_sends_one_in_a_closure():
    cloudpickle = library("cloudpickle")
    run = dlf.bind(local_stencil(2.0))
    assert pickle.loads(cloudpickle.dumps(lambda: result_of(run)))() == 16.0


def test_a_process_that_is_spawned_gets_one():
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        assert pool.map(result_of, [dlf.bind(travelling.shifted)]) == [2.0]


CLUSTER = """
import numpy as np
import dlfield as dlf
from dask.distributed import Client, LocalCluster
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval


@gtscript.stencil(backend="numpy")
def doubled(inp: Field[np.float64], out: Field[np.float64]):
    with computation(PARALLEL), interval(...):
        out = 2.0 * inp


if __name__ == "__main__":
    run = dlf.bind(doubled)

    def block(number):
        out = np.zeros((2, 2, 2))
        run(np.full((2, 2, 2), float(number)), out)
        return float(out.sum())

    with LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            print(client.gather(client.map(block, range(6))))
"""


def test_a_closure_of_dask_takes_one_of_the_main_script_to_its_workers(tmp_path):
    library("distributed")
    script = tmp_path / "model.py"
    script.write_text(CLUSTER, "utf-8")
    assert printed_by(script, folder=tmp_path).strip() == "[0.0, 16.0, 32.0, 48.0, 64.0, 80.0]"


JOBLIB = """
import numpy as np
import dlfield as dlf
from joblib import Parallel, delayed
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval


@gtscript.stencil(backend="numpy")
def tripled(inp: Field[np.float64], out: Field[np.float64]):
    with computation(PARALLEL), interval(...):
        out = 3.0 * inp


def block(run, number):
    out = np.zeros((2, 2, 2))
    run(np.full((2, 2, 2), float(number)), out)
    return float(out.sum())


if __name__ == "__main__":
    print(Parallel(n_jobs=2)(delayed(block)(dlf.bind(tripled), number) for number in range(3)))
"""


def test_joblib_takes_one_to_its_workers(tmp_path):
    library("joblib")
    script = tmp_path / "model.py"
    script.write_text(JOBLIB, "utf-8")
    assert printed_by(script, folder=tmp_path).strip() == "[0.0, 24.0, 48.0]"


def numbered(factor):
    @gtscript.stencil(backend="numpy")
    def local(inp: Field[np.float64], out: Field[np.float64]):
        with computation(PARALLEL), interval(...):
            out = inp * factor  # noqa: F841

    factor = 10.0  # after it was compiled
    return local


def test_a_definition_goes_with_the_values_that_it_was_compiled_with(forgotten):
    sent = [pickle.dumps(dlf.bind(numbered(factor))) for factor in (2.0, 3.0)]
    travel._stencils.clear()
    assert [result_of(pickle.loads(one)) for one in sent] == [2.0, 3.0]


def test_a_stencil_that_other_values_would_make_another_one_is_refused(forgotten, monkeypatch):
    sent = pickle.dumps(dlf.bind(travelling.scaled_by_a_constant))
    travel._stencils.clear()
    monkeypatch.setattr(travelling, "CONSTANT", 5.0)
    monkeypatch.setattr(travel.cartesian, "is_compiled", lambda *_: False)
    with refused(pickle.UnpicklingError, "scaled_by_a_constant", "names", "externals="):
        pickle.loads(sent)

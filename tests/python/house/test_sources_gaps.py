"""Statements of GDP-3 and its neighbours that no other test shows; docs/sources.md names these."""

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Alignment, DefaultParameters, Field, LayoutMap

from support.no_driver import without_driver
from support.owners import Watch, tracked
from support.stencils.stand_ins import SHAPE, GpuStandIn, field

KINDS = [
    dlf.Storage,
    dlf.CPUStorage,
    dlf.GPUStorage,
    dlf.SoftwareManagedGPUStorage,
    dlf.CUDAManagedGPUStorage,
]


@pytest.mark.source(
    "GDP-3", "Abstract, Motivation and Scope", "storages derive from no class of NumPy"
)
@pytest.mark.source(
    "GDP-3", "Backward Compatibility", "code that needs a subclass of NumPy's array stops working"
)
@pytest.mark.source(
    "GDP-3 draft",
    "Abstract, Motivation and Scope, Backward Compatibility",
    "storages derive from no class of NumPy",
)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_class_of_storages_derives_from_numpy(kind):
    assert not issubclass(kind, np.ndarray)


@pytest.mark.source("GDP-3", "Storage Creation", "`dtype` of `full` is float64 unless given")
@pytest.mark.parametrize("nothing", [{}, {"dtype": None}, {"dtype": dlf.UNSET}], ids=repr)
def test_float64_is_what_full_means_without_a_dtype(nothing):
    assert dlf.full((2,), 1, **nothing).dtype == np.float64


@pytest.mark.source("GDP-3", "Optional Keyword-Only Parameters", "a missing shape is an error")
@pytest.mark.source("GDP-3 draft", "Storage Constructors", "what has no default is an error")
@pytest.mark.parametrize("make", [dlf.empty, dlf.zeros, dlf.ones, dlf.full])
def test_what_allocates_asks_for_a_shape(make):
    with pytest.raises(TypeError, match="shape"):
        make()


@pytest.mark.source(
    "GDP-3", "Optional Keyword-Only Parameters", "a missing option comes first from the preset"
)
@pytest.mark.source(
    "GDP-3 draft",
    "Storage Constructors",
    'a preset may leave options open: "C" and "F" do not decide dims',
    "a missing option comes from the preset, then the data, then a default",
)
def test_a_preset_comes_before_the_data():
    field = dlf.zeros((4, 5), dims="IJ", halo=(1, 0), layout=(1, 0), alignment_size=128)
    copied = dlf.storage(field, defaults="C")
    assert (copied.layout, copied.alignment_size) == ((0, 1), 1)
    assert (copied.dims, copied.halo) == (field.dims, field.halo)


@pytest.mark.source(
    "GDP-3", "Optional Keyword-Only Parameters", "`aligned_index` does not affect origin or domain"
)
def test_an_aligned_index_is_neither_a_halo_nor_an_origin():
    storage = dlf.zeros((4, 5), aligned_index=(1, 2), alignment_size=64)
    assert storage.domain_view.shape == (4, 5)
    assert not hasattr(storage, "__gt_origin__")


@pytest.mark.source(
    "Allocation note", "Default Origin", "an object may have an attribute `default_origin`"
)
def test_an_origin_under_the_name_of_the_note_comes_along():
    class Placed(np.ndarray):
        default_origin = (1, 2)

    assert dlf.as_storage(np.zeros((3, 4)).view(Placed)).__gt_origin__ == (1, 2)


@pytest.mark.source(
    "GDP-3",
    "Attributes and Properties",
    "`acquire` and `touch` of the host are `device_to_host` and `set_host_modified`",
)
def test_the_functions_of_the_data_interface_are_those_of_the_host():
    interface = dlf.zeros(3).__gt_data_interface__[None]
    assert interface["acquire"].__name__ == "device_to_host"
    assert interface["touch"].__name__ == "set_host_modified"


def test_a_description_alone_keeps_no_memory():
    source, watch = tracked(np.zeros(3))
    storage = dlf.as_storage(source)
    described, whole = storage.__array_interface__, Watch(storage)
    del source, storage
    assert (watch.freed, whole.freed, described["shape"]) == (True, True, (3,))


@pytest.mark.source("GDP-3 draft", "Storage Constructors", '`managed` is False, "gt4py" or "cuda"')
def test_managed_false_of_the_draft_is_answered_with_the_values_there_are():
    with pytest.raises(ValueError, match="managed: expected None, 'gt4py' or 'cuda', got False"):
        dlf.zeros(3, managed=False)


@pytest.mark.source("GDP-3 draft", "Storage Constructors", "`value` is what `full` fills with")
def test_a_missing_value_to_fill_with_is_named():
    with pytest.raises(TypeError, match="fill_value"):
        dlf.full((2,), value=1)


SPOKEN = {
    "layout": ("F", LayoutMap[0, 1, 2], np.zeros(SHAPE)),
    "alignment": ("gtmc", Alignment[1], np.zeros((3, 5, 4)).transpose(0, 2, 1)),  # rows of four
}


@pytest.mark.source("GDP-3 draft", "Annotation of Stencils", "given parameters override the preset")
@pytest.mark.parametrize(("preset", "said", "given"), SPOKEN.values(), ids=SPOKEN)
def test_what_an_annotation_says_itself_wins_over_its_preset(preset, said, given):
    def bound(*parameters):
        fields = {"out": Field[float, DefaultParameters[preset], *parameters]}
        return dlf.bind(lambda out: out.fill(1.0), fields=fields)

    with pytest.raises(BufferError, match="argument 'out'"):
        bound()(given)
    assert not given.any()
    bound(said)(given)
    assert given.all()


@pytest.mark.source(
    "GDP-3", "Data Interface", "the CUDA array interface of a CuPy array can be passed on unchanged"
)
@without_driver
def test_a_cuda_array_interface_is_taken_under_gpu_as_it_is():
    class Passed:
        def __init__(self, array):
            said = {**array.__array_interface__, "version": 3, "stream": 1}
            self.__gt_data_interface__ = {"gpu": said}

    array, stencil = np.zeros(SHAPE), GpuStandIn(inp=field("READ"))
    dlf.bind(stencil)(Passed(array))
    shown = stencil.seen["inp"].__cuda_array_interface__
    assert (shown["data"], shown["shape"]) == ((array.ctypes.data, False), SHAPE)

"""What docs/derivatives.md says of each framework, and the tests that show it."""

import ast
import functools
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "derivatives.md"

#: For each row of "What works": the tests of torch, and of JAX. None: a cell that says nothing.
SHOWN = {
    "compiled": (
        ["test_a_compiled_program_is_one_graph_and_computes_the_same"],
        ["test_it_computes_inside_and_outside_of_jit"],
    ),
    "exported": (
        ["test_a_program_is_exported_with_every_extent_dynamic"],
        ["test_jax_exports_a_program_where_the_call_is_named"],
    ),
    "reverse mode": (
        [
            "test_gradients_are_those_of_finite_differences",
            "test_gradients_of_views",
            "test_the_gradient_of_torch_func",
            "test_a_checkpoint_computes_again_and_gives_the_same_gradient",
        ],
        ["test_gradients", "test_jacobians", "test_gradients_through_a_scan_and_a_checkpoint"],
    ),
    "forward mode": (
        ["test_forward_derivatives_are_refused"],
        [
            "test_forward_derivatives_with_a_tangent",
            "test_forward_mode_without_a_tangent_is_refused",
        ],
    ),
    "second derivatives": (
        ["test_second_derivatives_are_refused"],
        [
            "test_products_with_a_hessian_of_a_linear_stencil",
            "test_a_second_derivative_by_what_the_tangent_depends_on_is_refused",
        ],
    ),
    "batches": (
        [
            "test_a_call_in_each_element_of_a_batch",
            "test_gradients_of_a_batch_and_of_each_of_its_elements",
        ],
        ["test_batches", "test_gradients_of_batches"],
    ),
    "loops": (
        ["test_a_gradient_through_a_loop_of_calls"],
        ["test_loops_and_branches", "test_gradients_through_a_scan_and_a_checkpoint"],
    ),
    "halo exchange": (
        [
            "test_the_gradient_of_torch_is_the_transpose",
            "test_a_second_derivative_of_torch_is_that_of_the_transpose",
            "test_functions_of_torch_transform_the_exchange",
        ],
        [
            "test_the_gradient_of_jax_is_the_transpose",
            "test_a_batch_of_jax_is_exchanged_element_by_element",
            "test_a_model_of_jax_on_four_ranks_has_the_gradient_of_one",
        ],
    ),
    "in place": (
        [
            "test_out_is_written_and_its_halo_stays",
            "test_what_out_overwrites_is_noticed_by_autograd",
        ],
        ["test_a_donated_field_is_updated_in_its_own_memory"],
    ),
    "on a GPU": (
        [
            "test_the_output_is_a_tensor_of_the_gpu_with_the_values",
            "test_gradients_are_right_on_a_stream_of_torch",
            "test_a_graph_of_cuda_cannot_record_the_operator",
        ],
        ["test_a_stencil_of_the_gpu_is_refused_for_jax"],
    ),
    "several devices": (None, ["test_shards_along_an_axis_without_reach"]),
    "modes": (["test_no_grad_inference_mode_and_autocast_change_nothing"], None),
    "errors": (
        ["test_errors_of_the_stencil_name_the_argument"],
        ["test_an_error_of_the_stencil_has_its_text_and_the_next_call_is_right"],
    ),
}


def rows():
    """Return the cells of the table, by the name of the row."""
    text = PAGE.read_text("utf-8").split("## What works")[1].split("**Traps**")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {name.strip("| "): both for name, *both in cells if name.strip("| ")}


@functools.cache
def names_of_tests():
    files = ["interop_tests/*/test_*.py", "tests/gpu/interop/test_*.py"]
    trees = [ast.parse(file.read_text("utf-8")) for pattern in files for file in ROOT.glob(pattern)]
    return {node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_row_of_the_table_is_shown_by_tests():
    assert list(rows()) == list(SHOWN)


@pytest.mark.parametrize("row", SHOWN)
def test_a_cell_says_something_where_tests_show_it(row):
    for cell, tests in zip(rows()[row], SHOWN[row], strict=True):
        assert (cell.strip("| ") == "\N{EN DASH}") is (tests is None)


@pytest.mark.parametrize("row", SHOWN)
def test_the_tests_of_a_row_exist(row):
    known = names_of_tests()
    missing = [name for tests in SHOWN[row] for name in tests or () if name not in known]
    assert missing == []

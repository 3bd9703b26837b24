"""Tensors over storages, and storages over tensors, in the processes of torch."""

import dlfield as dlf
import pytest

from support.optional import library
from support.processes import run_in_subprocess

library("torch")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_storage_over_a_shared_tensor_is_written_by_another_process(method, tmp_path):
    program = tmp_path / "shared.py"
    program.write_text(
        """
import dlfield as dlf, torch
import torch.multiprocessing as processes

def work(tensor):
    dlf.as_storage(tensor, dims="IJ", halo={"I": 1}).domain_view[...] = 5.0

if __name__ == "__main__":
    tensor = torch.zeros(4, 3).share_memory_()
    storage = dlf.as_storage(tensor)
    child = processes.get_context(METHOD).Process(target=work, args=(tensor,))
    child.start()
    child.join()
    print(child.exitcode, storage.ptr == tensor.data_ptr(), storage.to_numpy()[:, 0].tolist())
""".replace("METHOD", repr(method))
    )
    code = f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')"
    expected = "0 True [0.0, 5.0, 5.0, 0.0]"
    if method == "spawn":  # which imports the program anew
        command = f"[sys.executable, {str(program)!r}]"
        code = f"import subprocess, sys; subprocess.run({command}, check=True)"
    assert run_in_subprocess(code, warnings="ignore") == expected


def test_a_storage_goes_through_a_queue_of_torch_with_its_names():
    code = """
import dlfield as dlf
import torch.multiprocessing as processes

def work(queue):
    made = dlf.zeros((4, 3), dims="IJ", halo={"I": 1})
    made.domain_view[...] = 2.0
    queue.put(made)

if __name__ == "__main__":
    context = processes.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=work, args=(queue,))
    child.start()
    got = queue.get()
    child.join()
    print(got.dims, got.halo, got.to_torch()[:, 0].tolist())
"""
    halo = dlf.zeros((4, 3), dims="IJ", halo={"I": 1}).halo
    expected = f"('I', 'J') {halo} [0.0, 2.0, 2.0, 0.0]"
    assert run_in_subprocess(code, warnings="ignore") == expected


def test_workers_of_a_data_loader_return_tensors_over_storages():
    code = """
import dlfield as dlf
import torch

class Fields(torch.utils.data.Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, at):
        field = dlf.zeros((4, 3), dims="IJ", halo={"I": 1}, layout=(0, 1))
        field.domain_view[...] = float(at)
        return field.to_torch()

if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(
        Fields(), batch_size=2, num_workers=2, multiprocessing_context="fork"
    )
    for batch in loader:
        field = dlf.as_storage(batch, dims=("member", "I", "J"), halo={"I": 1})
        print(field.ptr == batch.data_ptr(), field.sum(("I", "J")).tolist())
"""
    expected = "True [0.0, 6.0]\nTrue [12.0, 18.0]\nTrue [24.0, 30.0]"
    assert run_in_subprocess(code, warnings="ignore") == expected

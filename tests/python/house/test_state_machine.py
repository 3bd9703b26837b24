"""Random acts on storages and hostile objects: a state machine in a process of its own."""

from support.processes import end_of_module, expect_success


def test_random_acts_with_hostile_objects_end_no_process_and_leave_every_storage_as_numpy_does():
    done = end_of_module("support.state_machine", "60", "30", timeout=240)
    expect_success(done, "support.state_machine")
    assert int(done.stdout) > 600

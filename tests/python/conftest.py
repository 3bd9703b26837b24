"""One profile of hypothesis, checked messages, and quick collections of garbage."""

from hypothesis import settings

from support.forms import check_messages
from support.garbage import libraries_are_not_searched as libraries_are_not_searched

check_messages()

# A loaded machine may be slow, and a failure should come back at the next run.
settings.register_profile("dlfield", deadline=None, derandomize=True, max_examples=150)
settings.load_profile("dlfield")

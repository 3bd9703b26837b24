"""One profile of hypothesis, checked messages, and quick collections of garbage."""

from hypothesis import HealthCheck, settings

from support.forms import check_messages
from support.garbage import libraries_are_not_searched as libraries_are_not_searched

check_messages()

# A loaded machine may be slow, and so is one under AddressSanitizer, where hypothesis writes its
# tables of Unicode for most of a minute. A failure should come back at the next run.
settings.register_profile(
    "dlfield",
    deadline=None,
    derandomize=True,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("dlfield")

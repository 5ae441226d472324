from collections.abc import Iterator

import pytest

from rsr.common.randomness import one_thread


@pytest.fixture(autouse=True, scope="package")
def small_networks_in_one_thread() -> Iterator[None]:
    """Threads would only wait for one another."""
    with one_thread():
        yield

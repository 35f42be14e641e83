"""One webhook for all tests here."""

from collections.abc import Iterator

import pytest

from tests.webhook.running import Webhook, running_webhook


@pytest.fixture(scope="session")
def webhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    with running_webhook(tmp_path_factory.mktemp("webhook")) as running:
        yield running

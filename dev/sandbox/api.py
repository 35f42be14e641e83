"""A small synchronous client for the sandbox's API server, for set-up and tests.

The product's client is `bridge.kube`.
"""

import base64
import json
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import httpx

from sandbox.errors import SandboxError
from slurmruntime.model.objects import JsonDict

_TIMEOUT_S = 30.0


class ApiError(SandboxError):
    """The API server refused, or did not answer."""

    def __init__(self, method: str, path: str, status: int, message: str) -> None:
        super().__init__(f"API server: {method} {path}: {status or 'no answer'}: {message}")
        self.status = status
        """0 if there was no answer."""
        self.message = message


class Api:
    """Sends requests with the credentials of one of our kubeconfigs.

    Objects are plain dictionaries.
    """

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        context = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
        )
        headers = {}
        if "tokenFile" in user:
            headers["Authorization"] = f"Bearer {Path(user['tokenFile']).read_text().strip()}"
        else:
            _load(context, user)
        self._http = httpx.Client(
            base_url=cluster["server"],
            verify=context,
            headers=headers,
            timeout=_TIMEOUT_S,
            trust_env=False,
        )

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        params: Mapping[str, str] | None = None,
    ) -> JsonDict:
        """Send a request and return the decoded answer.

        Raises:
            ApiError: the status is not 2xx, or there was no answer.
        """
        content = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": content_type}
        # Given any parameters, even none, httpx would drop those in the path.
        url = httpx.URL(path).copy_merge_params(params or {})
        try:
            answer = self._http.request(method, url, content=content, headers=headers)
        except httpx.TransportError as error:
            raise ApiError(method, path, 0, str(error)) from error
        if not answer.is_success:
            raise ApiError(method, path, answer.status_code, _message(answer))
        decoded: JsonDict = answer.json()
        return decoded

    def get(self, path: str, **params: str) -> JsonDict:
        """Read an object or a list."""
        return self.request("GET", path, params=params)

    def changes(self, path: str, since: str, params: Mapping[str, str]) -> list[JsonDict]:
        """Return the successive states of a collection's objects, oldest first.

        Args:
            path: the collection.
            since: the resourceVersion to start after; the API server keeps them for about a minute.
            params: selectors.

        Raises:
            ApiError: that version is too old (410), or there was no answer.
        """
        watch = {"watch": "1", "timeoutSeconds": "1", "resourceVersion": since}
        try:
            answer = self._http.get(path, params={**params, **watch})
        except httpx.TransportError as error:
            raise ApiError("GET", path, 0, str(error)) from error
        if not answer.is_success:
            raise ApiError("GET", path, answer.status_code, _message(answer))
        events = [json.loads(line) for line in answer.text.splitlines()]
        for event in events:
            if event["type"] == "ERROR":
                status = event["object"]
                raise ApiError("GET", path, int(status["code"]), str(status["message"]))
        return [event["object"] for event in events]

    def create(self, path: str, body: object) -> JsonDict:
        """POST an object to a collection."""
        return self.request("POST", path, body)

    def patch(self, path: str, body: object) -> JsonDict:
        """Change an object with a merge patch."""
        return self.request("PATCH", path, body, content_type="application/merge-patch+json")

    def delete(self, path: str, **options: object) -> JsonDict:
        """Delete an object; `options` are DeleteOptions, such as gracePeriodSeconds=0."""
        return self.request("DELETE", path, options or None)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _load(context: ssl.SSLContext, user: Mapping[str, str]) -> None:
    # The ssl module reads client certificates only from files.
    with tempfile.NamedTemporaryFile() as pem:
        pem.write(base64.b64decode(user["client-certificate-data"]))
        pem.write(base64.b64decode(user["client-key-data"]))
        pem.flush()
        context.load_cert_chain(pem.name)


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return answer.text[:500]

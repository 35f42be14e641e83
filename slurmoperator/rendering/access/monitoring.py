"""The ServiceMonitor by which Prometheus' operator finds slurmctld's metrics.

Source: <https://prometheus-operator.dev/docs/api-reference/api/#monitoring.coreos.com/v1.ServiceMonitor>.
"""

from typing import Any, Final

from slurmoperator.objects.controller import ControllerMetrics, ScrapedPath, ScrapeMonitor
from slurmoperator.objects.parts import AddedMetadata
from slurmoperator.rendering.body import Body, BodyOwner, made

SERVICE_MONITOR: Final = ("monitoring.coreos.com/v1", "ServiceMonitor")
_PAGES: Final = tuple(
    ScrapedPath(path=f"/metrics/{each}") for each in ("jobs", "nodes", "partitions", "scheduler")
)


def service_monitor(
    owner: BodyOwner, service: str, metrics: ControllerMetrics | None
) -> tuple[Body, ...]:
    """Return the ServiceMonitor if there is to be one.

    Args:
        owner: whose metrics they are.
        service: the name of its Service for clients, and of the ServiceMonitor.
        metrics: what the user wants.
    """
    monitor = metrics.service_monitor if metrics else None
    if monitor is None or not monitor.enabled:
        return ()
    api_version, kind = SERVICE_MONITOR
    spec = {
        "selector": {"matchLabels": owner.selecting},
        "namespaceSelector": {"matchNames": [owner.metadata.namespace]},
        "endpoints": [
            _endpoint(owner, service, monitor, endpoint) for endpoint in monitor.endpoints or _PAGES
        ],
    }
    added = AddedMetadata(annotations=monitor.annotations, labels=monitor.labels)
    return (made(owner, kind, service, api_version=api_version, added=added, parts={"spec": spec}),)


def _endpoint(
    owner: BodyOwner, service: str, monitor: ScrapeMonitor, page: ScrapedPath
) -> dict[str, Any]:
    """Return one page; the headless Services select the same pods, which are to be read once."""
    wishes = {
        "interval": page.interval or monitor.interval,
        "scrapeTimeout": page.scrape_timeout or monitor.scrape_timeout,
    }
    once = {
        "action": "keep",
        "sourceLabels": ["__meta_kubernetes_service_name"],
        "regex": service,
    }
    return {
        "path": page.path,
        "port": owner.app,
        "scheme": "http",
        "relabelings": [once],
        **{key: each for key, each in wishes.items() if each},
    }

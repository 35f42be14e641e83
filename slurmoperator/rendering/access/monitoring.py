"""Renders the ServiceMonitor by which the Prometheus operator finds slurmctld's metrics.

Source: <https://prometheus-operator.dev/docs/api-reference/api/#monitoring.coreos.com/v1.ServiceMonitor>.
"""

from typing import Final

from slurmoperator.objects.controller import ControllerMetrics, MetricsPage, ScrapeMonitor
from slurmoperator.objects.parts import ExtraMetadata
from slurmoperator.rendering.body import BodyOwner, owned_body
from slurmruntime.model.objects import JsonDict, JsonObject

SERVICE_MONITOR: Final = ("monitoring.coreos.com/v1", "ServiceMonitor")
_PAGES: Final = tuple(
    MetricsPage(path=f"/metrics/{name}") for name in ("jobs", "nodes", "partitions", "scheduler")
)


def service_monitor(
    owner: BodyOwner, service: str, metrics: ControllerMetrics | None
) -> tuple[JsonObject, ...]:
    """Return the ServiceMonitor for an owner's Service, under the Service's name, if it is enabled."""
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
    added = ExtraMetadata(annotations=monitor.annotations, labels=monitor.labels)
    return (
        owned_body(
            owner, kind, service, api_version=api_version, added=added, parts={"spec": spec}
        ),
    )


def _endpoint(
    owner: BodyOwner, service: str, monitor: ScrapeMonitor, page: MetricsPage
) -> JsonDict:
    """Return one endpoint, limited to one Service: the headless ones select the same pods, which must be scraped only once."""
    timing = {
        "interval": page.interval or monitor.interval,
        "scrapeTimeout": page.scrape_timeout or monitor.scrape_timeout,
    }
    once = {"action": "keep", "sourceLabels": ["__meta_kubernetes_service_name"], "regex": service}
    return {
        "path": page.path,
        "port": owner.app,
        "scheme": "http",
        "relabelings": [once],
        **{key: value for key, value in timing.items() if value},
    }

"""Evidence, restoring, circuit breaker, orphans; no import of `controllers.{nodes,webhook}`."""

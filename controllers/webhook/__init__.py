"""Issue the webhook's certificates, and test it; no import of `controllers.{nodes,pods}`."""

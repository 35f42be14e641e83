"""The settings: schema, sources and reference documentation. May import `bridge.domain`."""

"""Access to daemons: Services, TLS by a side-car, scraping by Prometheus, and NetworkPolicies."""

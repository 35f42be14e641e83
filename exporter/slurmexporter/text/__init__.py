"""Metric families and samples, their budget, and Prometheus' text format."""

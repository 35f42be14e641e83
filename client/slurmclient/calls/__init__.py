"""Performing operations: API versions, retries, and what an answer means."""

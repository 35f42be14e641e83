"""Performing operations: versions, repetition, what an answer means."""

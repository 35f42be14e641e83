"""Performing operations: API versions, retries, and what an answer means.

`caller` performs an operation and retries it where that is safe, `dialect` negotiates the API
version, `answers` turns refusals into errors, `streaming` reads a list while it arrives, and
`speaker` does all of this as one user, for the resources to build on.
"""

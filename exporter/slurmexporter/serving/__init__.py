"""The pages, kept as bytes, and the HTTP server.

`pages` renders chapters after readings and joins them for a scrape, `self_page` says how the exporter
itself does, `app` answers HTTP.
"""

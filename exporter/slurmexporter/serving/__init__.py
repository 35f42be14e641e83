"""The pages, kept as bytes, and the HTTP server.

`pages` renders chapters after readings and joins them for a scrape, `self_page` has the exporter's
metrics about itself, `app` answers HTTP.
"""

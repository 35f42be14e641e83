"""Write the pages and files that are made from code: `make docs` runs everything here, and tests fail while they differ.

It may import anything. No program imports it, and neither the image nor the site contains it.
"""

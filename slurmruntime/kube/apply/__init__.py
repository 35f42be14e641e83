"""Create objects and keep them as desired, by server-side apply.

`ownership` decides whether an object is ours and as desired: pure. `writes` reads, applies and deletes. `owned_objects` does so
for all objects that one object owns. `custom` reads the owners, which are of our own kinds, and writes their status and
finalizer.
"""

"""The programs of companions that controllers of 0.1 still create with an image of ours, in the middle of an upgrade or by `companion_image`.

They do not name the new modules: whatever they print is the output of a user's job.
"""

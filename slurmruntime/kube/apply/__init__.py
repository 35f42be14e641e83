"""Objects that we make and keep as they should be, by server-side apply.

`standing` decides whether an object is ours, and whether it is as it should be: pure. `writes` reads, applies and deletes.
`belongings` does so for all that belongs to one object. `custom` reads, tells and holds the objects of our own kinds, to which they belong.
"""

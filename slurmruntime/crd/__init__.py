"""Kubernetes objects of our own kinds: what their types stand on, and how a definition is made from types.

`fields` has the base of all types, common bounds and rules in CEL, `metadata` what we read of an object's metadata, `schema` turns types
into what a CustomResourceDefinition may say, and `restapis` has where the slurmrestd of a RestApi is, for who makes it and who asks it.
"""

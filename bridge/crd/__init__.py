"""Kubernetes objects of our own kinds: what their types stand on, and how a definition is made from types.

`fields` has the base of all types, common bounds and rules in CEL, `metadata` what we read of an object's metadata, and
`schema` turns types into what a CustomResourceDefinition may say.
"""

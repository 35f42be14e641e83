"""Kubernetes objects of our own kinds: the base of their types, and the conversion of types into definitions.

`fields` has the base of all types, common bounds and rules in CEL; `metadata` what we read of an object's metadata; `schema`
turns types into the schema of a CustomResourceDefinition; `restapis` says where the slurmrestd of a RestApi is, for the
program that creates it and for its clients.
"""

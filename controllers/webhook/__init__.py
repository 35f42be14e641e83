"""The controllers' work for the webhook: issue its certificates and test whether it answers.

It does not depend on `controllers.pods` or `controllers.nodes`.
"""

"""What the controllers do for the webhook: its certificates, and trying whether it answers.

It knows neither `controllers.pods` nor `controllers.nodes`.
"""

"""For people who look: why a pod waits, what the queue holds, how nodes stand, what is wrong with an installation.

It may enter `lifecycle` and `model`. No rule stands on it.
"""

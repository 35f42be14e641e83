"""The reservation in which the workers of a NodeSet are replaced, if that is scheduled."""

"""What one look at a NodeSet makes of its facts: pure, from the workers that it should have to its status.

`look` holds the facts and the outcome of acting, `planning` makes the plan, `workers` and `placing` are its first steps, `status`
reports all of that, and `troubles` says why a worker does not serve.
"""
